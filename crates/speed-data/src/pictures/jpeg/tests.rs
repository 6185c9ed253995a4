//! JPEG files that `scripts/jpeg-fixtures` writes with Pillow, complete and damaged.

use rand::{Rng, RngExt};
use speed_core::random::Streams;

use super::*;
use crate::pictures::decode::decode;

/// Every supported file, with its colours.
const GOOD: [(&str, &[u8], ColorSpace); 8] = [
    ("baseline", include_bytes!("../fixtures/baseline.jpg"), ColorSpace::YCbCr),
    ("restarts", RESTARTS, ColorSpace::YCbCr),
    ("progressive", PROGRESSIVE, ColorSpace::YCbCr),
    ("progressive-restarts", include_bytes!("../fixtures/progressive-restarts.jpg"), ColorSpace::YCbCr),
    ("grey", GREY, ColorSpace::Luma),
    ("rgb", include_bytes!("../fixtures/rgb.jpg"), ColorSpace::RGB),
    ("cmyk-adobe", CMYK_ADOBE, ColorSpace::CMYK),
    ("turned", include_bytes!("../fixtures/turned.jpg"), ColorSpace::YCbCr),
];
const RESTARTS: &[u8] = include_bytes!("../fixtures/restarts.jpg");
const PROGRESSIVE: &[u8] = include_bytes!("../fixtures/progressive.jpg");
const GREY: &[u8] = include_bytes!("../fixtures/grey.jpg");
const CMYK_ADOBE: &[u8] = include_bytes!("../fixtures/cmyk-adobe.jpg");
const END: &[u8] = b"\xff\xd9";

fn places(bytes: &[u8], marker: u8) -> Vec<usize> {
    (0..bytes.len() - 1).filter(|&place| bytes[place..].starts_with(&[0xff, marker])).collect()
}

/// Returns the place of the first byte of the coded data of the last scan.
fn coded(bytes: &[u8]) -> usize {
    let scan = *places(bytes, 0xda).last().expect("a scan");
    scan + 2 + usize::from(u16::from_be_bytes([bytes[scan + 2], bytes[scan + 3]]))
}

#[track_caller]
fn refused(parts: &[&[u8]], words: &str) {
    let text = check(&parts.concat()).expect_err(words);
    assert!(text.contains(words), "{words:?} is not in {text:?}");
}

#[test]
fn complete_files_are_accepted_with_the_meaning_of_their_values() {
    for (name, bytes, colours) in GOOD {
        let found = |parts: &[&[u8]]| check(&parts.concat()).unwrap_or_else(|problem| panic!("{name}: {problem}"));
        assert_eq!(found(&[bytes]), colours, "{name}");
        // Telephones append films and previews; the picture ends at its end marker.
        assert_eq!(found(&[bytes, b"\xff\xd8 a preview"]), colours, "{name}");
        // Any number of bytes 0xff may precede a marker.
        assert_eq!(found(&[&bytes[..bytes.len() - 2], b"\xff\xff", END]), colours, "{name}");
    }
}

#[test]
fn incomplete_data_is_refused() {
    const GAP: usize = 32;
    let (mut seen, mut all) = (0, 0);
    for (name, bytes, _) in GOOD {
        let (start, end) = (coded(bytes), bytes.len() - 2);
        for cut in 2..bytes.len() {
            assert!(check(&bytes[..cut]).is_err(), "{name} cut to {cut} bytes");
            assert!(
                cut >= end || check(&[&bytes[..cut], END].concat()).is_err(),
                "{name} cut to {cut} bytes, and ended"
            );
        }
        assert!(check(&[&bytes[..end], b"\x55\x55\xff\xd9"].concat()).is_err(), "{name}: bytes at the end");
        assert!(check(&[&bytes[..end], &bytes[start..]].concat()).is_err(), "{name}: the data of a scan twice");
        // One missing byte may be one or two coefficients, which cannot be detected. In longer gaps, ends of blocks are missing.
        let gaps = start..end.saturating_sub(GAP);
        let is_seen = |place: &usize| check(&[&bytes[..*place], &bytes[place + GAP..]].concat()).is_err();
        all += gaps.len();
        seen += gaps.filter(is_seen).count();
    }
    assert!(5 * seen > 4 * all, "{seen} of {all} gaps are seen");
}

#[test]
fn damaged_and_unsupported_parts_are_named_with_their_place() {
    let (data, end) = (coded(GREY), GREY.len() - 2);
    refused(&[&GREY[..end]], &format!("expected a marker at byte {end}, found the end of the file; copy or create"));
    let words = format!("expected more bits in unit 0 of 20 of scan 1, in the data at byte {data}, found other bits");
    refused(&[&GREY[..data], END], &words);
    // A code of ones only is not in any table.
    refused(&[&GREY[..data + 100], &[0xff, 0].repeat(4), &GREY[data + 108..]], "expected a Huffman code in unit");
    refused(&[&GREY[..end], b"\x55", END], "expected a marker after 20 units of scan 1");
    let [first, ninth] = places(RESTARTS, 0xd0)[..] else { panic!("two restart markers of number 0") };
    let second = places(RESTARTS, 0xd1)[0];
    let words = format!("expected the restart marker ffd0 at byte {first}, found ffd1");
    refused(&[&RESTARTS[..first], &RESTARTS[second..]], &words);
    refused(&[&RESTARTS[..first], &RESTARTS[ninth..]], "expected the restart marker ffd3");
    let missing = "expected scans of every coefficient's last bit";
    // Between two scans there may be tables; the cut is before them.
    refused(&[&PROGRESSIVE[..*places(PROGRESSIVE, 0xc4).last().expect("tables")], END], missing);
    refused(&[&GREY[..end], &GREY[places(GREY, 0xda)[0]..]], "expected baseline or progressive JPEG");
    let meaning = "expected Adobe's marker with the meaning of the colours";
    refused(&[include_bytes!("../fixtures/cmyk.jpg")], meaning);
    let adobe = places(CMYK_ADOBE, 0xee)[0] + 15;
    refused(&[&CMYK_ADOBE[..adobe], &[1], &CMYK_ADOBE[adobe + 1..]], meaning);
    let frame = places(GREY, 0xc0)[0];
    // The marker's kind (lossless, hierarchical, arithmetic codes), the bits, the height, the number of channels.
    for (place, byte) in [(1, 0xc3), (1, 0xc5), (1, 0xc9), (1, 0xf7), (4, 12), (6, 0), (9, 2), (9, 3)] {
        let mut found = GREY.to_vec();
        found[frame + place] = byte;
        let words = format!(
            "10000 rows and columns and 335544320 bytes unpacked at byte {frame}, found ff{:x}",
            found[frame + 1]
        );
        refused(&[&found], &words);
    }
    // A huge picture takes no memory.
    let frame = places(PROGRESSIVE, 0xc2)[0];
    refused(&[&PROGRESSIVE[..frame + 5], &[0xff; 4], &PROGRESSIVE[frame + 9..]], "10000 rows and columns");
}

#[test]
fn no_bytes_make_the_check_or_the_decoder_panic() {
    let mut stream = Streams::new(1).stream("mutations", 0);
    let mut accepted = 0;
    for turn in 0..20_000 {
        let mut bytes = GOOD[turn % GOOD.len()].1.to_vec();
        for _ in 0..stream.random_range(1..4) {
            let place = stream.random_range(2..bytes.len());
            match stream.random_range(0..5) {
                0 => bytes[place] = stream.random(),
                1 => bytes[place] ^= 1 << stream.random_range(0..8),
                2 => bytes.truncate(place.max(20)),
                3 => bytes.insert(place, stream.random()),
                _ => {
                    let end = bytes.len().min(place + 8);
                    stream.fill_bytes(&mut bytes[place..end]);
                }
            }
        }
        accepted += usize::from(decode(bytes).is_ok());
    }
    assert!(accepted > 100, "the mutations never reached the decoder: {accepted}");
}
