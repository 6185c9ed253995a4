//! JPEG files that `scripts/jpeg-fixtures` writes with Pillow, complete and with missing parts.

use rand::{Rng, RngExt};
use speed_core::random::Streams;

use super::*;

/// Every supported file, with its colours.
const GOOD: [(&str, &[u8], Colours); 8] = [
    ("baseline", include_bytes!("../fixtures/baseline.jpg"), Colours::YCbCr),
    ("restarts", RESTARTS, Colours::YCbCr),
    ("progressive", PROGRESSIVE_FILE, Colours::YCbCr),
    ("progressive-restarts", include_bytes!("../fixtures/progressive-restarts.jpg"), Colours::YCbCr),
    ("grey", GREY, Colours::Grey),
    ("rgb", include_bytes!("../fixtures/rgb.jpg"), Colours::Rgb),
    ("cmyk-adobe", include_bytes!("../fixtures/cmyk-adobe.jpg"), Colours::Cmyk),
    ("turned", include_bytes!("../fixtures/turned.jpg"), Colours::YCbCr),
];
const RESTARTS: &[u8] = include_bytes!("../fixtures/restarts.jpg");
const PROGRESSIVE_FILE: &[u8] = include_bytes!("../fixtures/progressive.jpg");
const GREY: &[u8] = include_bytes!("../fixtures/grey.jpg");
const CMYK: &[u8] = include_bytes!("../fixtures/cmyk.jpg");

/// Returns the places of a marker.
fn places(bytes: &[u8], marker: u8) -> Vec<usize> {
    (0..bytes.len() - 1).filter(|&place| bytes[place..].starts_with(&[0xff, marker])).collect()
}

/// Returns the place of the first byte of the coded data of the last scan.
fn coded(bytes: &[u8]) -> usize {
    let scan = *places(bytes, SCAN).last().expect("a scan");
    scan + 2 + usize::from(u16::from_be_bytes([bytes[scan + 2], bytes[scan + 3]]))
}

#[track_caller]
fn refused(bytes: &[u8], words: &str) {
    let text = check(bytes).expect_err(words).to_string();
    assert!(text.contains(words), "{words:?} is not in {text:?}");
}

#[test]
fn complete_files_are_accepted_with_the_meaning_of_their_values() {
    for (name, bytes, colours) in GOOD {
        assert_eq!(check(bytes), Ok(colours), "{name}");
        // Telephones append films and previews; the picture ends at its end marker.
        assert_eq!(check(&[bytes, b"\xff\xd8 a preview"].concat()), Ok(colours), "{name}");
        // Any number of bytes 0xff may precede a marker.
        let end = bytes.len() - 2;
        assert_eq!(check(&[&bytes[..end], b"\xff\xff", &bytes[end..]].concat()), Ok(colours), "{name}");
    }
}

#[test]
fn every_cut_is_refused_with_and_without_an_end_marker() {
    for (name, bytes, _) in GOOD {
        for cut in 2..bytes.len() {
            assert!(check(&bytes[..cut]).is_err(), "{name} cut to {cut} bytes");
            if cut < bytes.len() - 2 {
                let ended = [&bytes[..cut], b"\xff\xd9"].concat();
                assert!(check(&ended).is_err(), "{name} cut to {cut} bytes, and ended");
            }
        }
    }
    refused(&GREY[..GREY.len() - 2], "it is cut off: expected the end marker at byte 482, found the end of the file");
    refused(
        &[&GREY[..GREY.len() - 9], b"\xff\xd9"].concat(),
        "its coded data ends early: expected 20 units of 1 blocks",
    );
    let empty = [&GREY[..coded(GREY)], b"\xff\xd9"].concat();
    refused(&empty, "expected 20 units of 1 blocks in scan 1, found 0");
}

#[test]
fn damaged_coded_data_is_refused() {
    const GAP: usize = 32;
    let (mut shorter, mut all) = (0, 0);
    for (name, bytes, _) in GOOD {
        let (start, end) = (coded(bytes), bytes.len() - 2);
        assert!(check(&[&bytes[..end], b"\x55\x55\xff\xd9"].concat()).is_err(), "{name}: bytes at the end");
        assert!(check(&[&bytes[..end], &bytes[start..]].concat()).is_err(), "{name}: the data of a scan twice");
        // One missing byte may be one or two coefficients, which cannot be detected. In longer gaps, ends of blocks are missing.
        let is_seen = |place: &usize| check(&[&bytes[..*place], &bytes[place + GAP..]].concat()).is_err();
        shorter += (start..end.saturating_sub(GAP)).filter(is_seen).count();
        all += (start..end.saturating_sub(GAP)).len();
    }
    assert!(5 * shorter > 4 * all, "{shorter} of {all} gaps are seen");
    // A code of ones only is not in any table.
    let middle = coded(GREY) + 100;
    let ones = [&GREY[..middle], &[0xff, 0].repeat(4), &GREY[middle + 8..]].concat();
    refused(&ones, "its coded data is damaged: expected a Huffman code in unit");
}

#[test]
fn restart_intervals_are_all_needed_in_their_order() {
    let restarts: Vec<usize> = places(RESTARTS, RESTART).into_iter().chain(places(RESTARTS, RESTART + 1)).collect();
    assert!(restarts.len() >= 2, "{restarts:?}");
    let (first, second) = (restarts[0], *places(RESTARTS, RESTART + 1).first().expect("a second one"));
    refused(&[&RESTARTS[..first], &RESTARTS[second..]].concat(), "expected the next restart marker");
    let ninth = places(RESTARTS, RESTART)[1];
    let words = "expected 12 units of 4 blocks in scan 1, found 4";
    refused(&[&RESTARTS[..first], &RESTARTS[ninth..]].concat(), words);
    let mut other = RESTARTS.to_vec();
    other[first + 1] += 3;
    refused(&other, "expected the next restart marker at byte");
}

#[test]
fn missing_scans_are_refused() {
    let scans = places(PROGRESSIVE_FILE, SCAN);
    assert!(scans.len() > 5);
    for &scan in &scans[1..] {
        assert!(check(&[&PROGRESSIVE_FILE[..scan], b"\xff\xd9"].concat()).is_err(), "without scans from {scan} on");
    }
    // Between two scans there may be tables; the cut is before them.
    let tables = *places(PROGRESSIVE_FILE, HUFFMAN).last().expect("tables");
    let words = "expected every coefficient in full, found component 1 without scans of some of them";
    refused(&[&PROGRESSIVE_FILE[..tables], b"\xff\xd9"].concat(), words);
    let twice = [&GREY[..GREY.len() - 2], &GREY[places(GREY, SCAN)[0]..]].concat();
    refused(&twice, "every coefficient's bits once");
}

#[test]
fn kinds_that_are_not_read_are_named() {
    refused(CMYK, "four colour channels without Adobe's marker");
    let frame = places(GREY, BASELINE)[0];
    let with = |place: usize, byte: u8| {
        let mut bytes = GREY.to_vec();
        bytes[place] = byte;
        bytes
    };
    for (marker, words) in [(0xc3, "lossless"), (0xc5, "hierarchical"), (0xc9, "arithmetic codes"), (0xf7, "lossless")]
    {
        refused(&with(frame + 1, marker), words);
    }
    refused(&with(frame + 4, 12), "12 bits");
    refused(&with(frame + 9, 2), "a width and three bytes for each component");
    refused(&with(frame + 6, 0), "found a height after the picture");
    let two = [&GREY[..frame + 3], &[14, 8, 0, 28, 0, 40, 2, 1, 0x11, 0, 2, 0x11, 0], &GREY[frame + 13..]].concat();
    refused(&two, "a number of colour channels other than 1, 3 or 4");
    let adobe = places(GOOD[6].1, APP14)[0];
    let mut unknown = GOOD[6].1.to_vec();
    unknown[adobe + 15] = 1;
    refused(&unknown, "colour channels whose meaning Adobe's marker does not define");
}

#[test]
fn a_huge_picture_takes_no_memory() {
    let frame = places(PROGRESSIVE_FILE, PROGRESSIVE)[0];
    let mut bytes = PROGRESSIVE_FILE.to_vec();
    bytes[frame + 5..frame + 9].fill(0xff);
    assert_eq!(check(&bytes), Err(JpegError::Huge));
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
        accepted += usize::from(super::super::decode::decode(bytes).is_ok());
    }
    assert!(accepted > 100, "the mutations never reached the decoder: {accepted}");
}
