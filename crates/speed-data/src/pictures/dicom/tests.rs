//! Files of mixed kinds against a computation from pydicom's formulas, and hostile files.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::*;
use crate::pictures::decode::decode;

const IMPLICIT: &str = "1.2.840.10008.1.2";
const EXPLICIT: &str = "1.2.840.10008.1.2.1";
const PATIENT: &str = "SECRET^NAME";

/// The tag, the value representation and the value of an element.
type Element<Value> = ((u16, u16), [u8; 2], Value);

/// A file as its elements, in any order.
#[derive(Clone)]
struct File {
    syntax: String,
    elements: Vec<Element<Vec<u8>>>,
}

impl File {
    fn new(syntax: &str) -> Self {
        let mut file = Self { syntax: syntax.into(), elements: Vec::new() };
        file.text((0x0010, 0x0010), b"PN", PATIENT);
        file
    }

    fn set(&mut self, tag: (u16, u16), kind: &[u8; 2], mut value: Vec<u8>) {
        if value.len() % 2 == 1 {
            value.push(if kind == b"OB" { 0 } else { b' ' });
        }
        self.elements.retain(|element| element.0 != tag);
        self.elements.push((tag, *kind, value));
    }

    fn text(&mut self, tag: (u16, u16), kind: &[u8; 2], value: &str) {
        self.set(tag, kind, value.into());
    }

    fn whole(&mut self, (tag, _): Attribute, value: u16) {
        self.set(tag, b"US", value.to_le_bytes().into());
    }

    fn bytes(&self) -> Vec<u8> {
        let mut uid = self.syntax.clone();
        if uid.len() % 2 == 1 {
            uid.push('\0');
        }
        let mut information = Vec::new();
        add(&mut information, true, ((2, 0x0010), *b"UI", uid.as_bytes()));
        let mut file = vec![0; MARK];
        file.extend(b"DICM");
        add(&mut file, true, ((2, 0), *b"UL", &(information.len() as u32).to_le_bytes()));
        file.extend(information);
        let mut elements = self.elements.clone();
        elements.sort_by_key(|element| element.0);
        for (tag, kind, value) in &elements {
            add(&mut file, self.syntax != IMPLICIT, (*tag, *kind, value));
        }
        file
    }

    fn refused(&self) -> String {
        refused(&self.bytes())
    }
}

fn add(file: &mut Vec<u8>, is_explicit: bool, ((group, element), kind, value): Element<&[u8]>) {
    file.extend([group.to_le_bytes(), element.to_le_bytes()].concat());
    let length = value.len() as u32;
    match (is_explicit, &kind) {
        (true, b"OB" | b"OW" | b"SQ" | b"UN") => {
            file.extend(kind);
            file.extend([0, 0]);
            file.extend(length.to_le_bytes());
        }
        (true, _) => {
            file.extend(kind);
            file.extend((length as u16).to_le_bytes());
        }
        (false, _) => file.extend(length.to_le_bytes()),
    }
    file.extend(value);
}

fn refused(bytes: &[u8]) -> String {
    let text = decode(bytes.to_vec()).expect_err("refused");
    assert!(!text.contains("SECRET"), "{text}");
    text
}

/// A grey picture of 3 rows and 5 columns with 12 of 16 bits.
fn grey_file(syntax: &str) -> File {
    let mut file = File::new(syntax);
    describe(&mut file, [3, 5, 1], [16, 12], false, "MONOCHROME2");
    file.set(PIXELS.0, b"OW", (0..15_u16).flat_map(|value| (value * 273).to_le_bytes()).collect());
    file
}

fn describe(
    file: &mut File,
    [rows, columns, samples]: [u16; 3],
    [allocated, stored]: [u16; 2],
    is_signed: bool,
    colours: &str,
) {
    for (attribute, value) in [
        (SAMPLES, samples),
        (ROWS, rows),
        (COLUMNS, columns),
        (BITS_ALLOCATED, allocated),
        (BITS_STORED, stored),
        (HIGH_BIT, stored - 1),
        (SIGN, is_signed.into()),
    ] {
        file.whole(attribute, value);
    }
    file.text(PHOTOMETRIC.0, b"CS", colours);
}

/// An item with an element, and a sequence within it, of a stated or an open length.
fn items(draw: &mut StdRng, is_explicit: bool, depth: usize) -> Vec<u8> {
    let mut content = Vec::new();
    // Like the picture's own elements, which it must not replace.
    add(&mut content, is_explicit, (ROWS.0, *b"US", &7_u16.to_le_bytes()));
    if depth > 0 {
        let inner = items(draw, is_explicit, depth - 1);
        add(&mut content, is_explicit, ((0x0040, 0x0260), *b"SQ", &inner));
    }
    let is_open = draw.random();
    let length = if is_open { u32::MAX } else { content.len() as u32 };
    let mut found = [&[0xfe, 0xff, 0, 0xe0][..], &length.to_le_bytes(), &content].concat();
    if is_open {
        found.extend([0xfe, 0xff, 0x0d, 0xe0, 0, 0, 0, 0]);
    }
    found
}

/// Draws a grey picture and computes its levels by pydicom's formulas.
fn draw_grey(draw: &mut StdRng, file: &mut File, [rows, columns]: [u16; 2]) -> Vec<u8> {
    let [allocated, stored] =
        [[8, 8], [8, 6], [16, 8], [16, 10], [16, 12], [16, 14], [16, 16]][draw.random_range(0..7)];
    let (is_signed, is_inverted): (bool, bool) = (draw.random(), draw.random());
    let colours = if is_inverted { "MONOCHROME1" } else { "MONOCHROME2" };
    describe(file, [rows, columns, 1], [allocated, stored], is_signed, colours);
    let [low, high] =
        if is_signed { [-(1_i64 << (stored - 1)), (1 << (stored - 1)) - 1] } else { [0, (1 << stored) - 1] };
    let values: Vec<i64> = (0..rows * columns).map(|_| draw.random_range(low..=high)).collect();
    let mut pixels = Vec::new();
    for value in &values {
        // The bits above the stored ones are of no meaning.
        let unused = draw.random_range(0..1_i64 << (16 - stored)) << stored;
        let bits = (value.rem_euclid(1 << stored) + unused) as u16;
        pixels.extend(&bits.to_le_bytes()[..usize::from(allocated / 8)]);
    }
    file.set(PIXELS.0, if allocated == 8 { b"OB" } else { b"OW" }, pixels);
    let rescales = [None, Some((1.0, -1024.0)), Some((0.5, 3.25)), Some((-2.0, 100.0))];
    let rescale = rescales[draw.random_range(0..4)];
    if let Some((slope, intercept)) = rescale {
        file.text(SLOPE.0, b"DS", &format!(" {slope} "));
        file.text(INTERCEPT.0, b"DS", &intercept.to_string());
    }
    let (slope, intercept) = rescale.unwrap_or((1.0, 0.0));
    let values: Vec<f64> = values.into_iter().map(|value| value as f64 * slope + intercept).collect();
    let [y_min, y_max] = [low, high].map(|value| value as f64 * slope + intercept);
    let (mut center, mut width) =
        ((y_min + y_max) / 2.0 + f64::from(draw.random_range(-9..9_i32)), (high - low) as f64 / 3.0);
    let is_exact = match draw.random_range(0..5) {
        0 => None,
        1 => {
            file.text(WINDOW_FUNCTION.0, b"CS", "LINEAR_EXACT");
            Some(true)
        }
        2 => {
            (center, width) = (values[0] + 0.5, 1.0);
            Some(false)
        }
        _ => Some(false),
    };
    let parts: Vec<f64> = if let Some(is_exact) = is_exact {
        file.text(WINDOW_CENTER.0, b"DS", &format!("{center:.3}\\40"));
        file.text(WINDOW_WIDTH.0, b"DS", &format!("{width:.3}\\400"));
        let [center, width] = [center, width].map(|value| format!("{value:.3}").parse::<f64>().expect("a number"));
        let (center, width) = if is_exact { (center, width) } else { (center - 0.5, width - 1.0) };
        let output = |value: f64| {
            if value <= center - width / 2.0 {
                y_min
            } else if value > center + width / 2.0 {
                y_max
            } else {
                ((value - center) / width + 0.5) * (y_max - y_min) + y_min
            }
        };
        values.into_iter().map(|value| (output(value) - y_min) / (y_max - y_min)).collect()
    } else {
        let least = values.iter().copied().reduce(f64::min).expect("a value");
        let largest = values.iter().copied().reduce(f64::max).expect("a value");
        let range = if largest > least { largest - least } else { 1.0 };
        values.into_iter().map(|value| (value - least) / range).collect()
    };
    parts.into_iter().map(|part| (255.0 * if is_inverted { 1.0 - part } else { part }).round() as u8).collect()
}

fn draw_colours(draw: &mut StdRng, file: &mut File, [rows, columns]: [u16; 2]) -> Vec<u8> {
    describe(file, [rows, columns, 3], [8, 8], false, "RGB");
    let area = usize::from(rows * columns);
    let expected: Vec<u8> = (0..3 * area).map(|_| draw.random()).collect();
    let is_planar: bool = draw.random();
    file.whole(PLANAR, is_planar.into());
    let stored = if is_planar {
        [0, 1, 2].into_iter().flat_map(|channel| expected[channel..].iter().step_by(3).copied()).collect()
    } else {
        expected.clone()
    };
    file.set(PIXELS.0, b"OB", stored);
    expected
}

#[test]
fn a_thousand_files_of_mixed_kinds_are_within_one_level_of_the_formulas() {
    let mut draw = StdRng::seed_from_u64(1);
    let mut exact = 0;
    for number in 0..1000 {
        let syntax = [IMPLICIT, EXPLICIT][number % 2];
        let mut file = File::new(syntax);
        let size = [0; 2].map(|_| draw.random_range(1..20));
        let is_colour = number % 7 == 0;
        let expected =
            if is_colour { draw_colours(&mut draw, &mut file, size) } else { draw_grey(&mut draw, &mut file, size) };
        if draw.random() {
            let depth = draw.random_range(0..4);
            let items = items(&mut draw, syntax == EXPLICIT, depth);
            file.set((0x0008, 0x1140), b"SQ", items);
        }
        if draw.random() {
            file.set((0x0029, 0x1010), b"UN", vec![7; draw.random_range(0..50)]);
            file.text(FRAMES.0, b"IS", "1");
        }
        let found = decode(file.bytes()).unwrap_or_else(|problem| panic!("file {number}: {problem}"));
        assert_eq!([found.height(), found.width()], size.map(u32::from), "file {number}");
        assert_eq!(found.color().has_color(), is_colour, "file {number}");
        let found = found.into_bytes();
        assert_eq!(found.len(), expected.len());
        assert!(found.iter().zip(&expected).all(|(&found, &expected)| found.abs_diff(expected) <= 1), "file {number}");
        exact += usize::from(found == expected);
    }
    assert!(exact > 900, "{exact} of 1000 files are equal");
}

#[test]
fn unsupported_files_are_refused_by_name() {
    let with = |change: &dyn Fn(&mut File)| {
        let mut file = grey_file(EXPLICIT);
        change(&mut file);
        file.refused()
    };
    for (words, text) in [
        (
            "Number of Frames (0028,0008): expected 1, found 12; save each frame",
            with(&|f| f.text(FRAMES.0, b"IS", "12")),
        ),
        ("found JPEG Baseline (Process 1); decompress", with(&|f| f.syntax = "1.2.840.10008.1.2.4.50".into())),
        ("RLE Lossless", with(&|f| f.syntax = "1.2.840.10008.1.2.5".into())),
        ("Explicit VR Big Endian", with(&|f| f.syntax = "1.2.840.10008.1.2.2".into())),
        ("found an unknown one", with(&|f| f.syntax = "1.2.SECRET".into())),
        ("Pixel Data (7fe0,0010): expected pixels, found none", with(&|f| f.elements.retain(|e| e.0 != PIXELS.0))),
        ("found PALETTE COLOR with 1", with(&|f| f.text(PHOTOMETRIC.0, b"CS", "PALETTE COLOR"))),
        ("found another one or none with 1", with(&|f| f.text(PHOTOMETRIC.0, b"CS", PATIENT))),
        ("Bits Allocated (0028,0100): expected 8 or 16", with(&|f| f.whole(BITS_ALLOCATED, 32))),
        ("High Bit (0028,0102): expected 11, found 15", with(&|f| f.whole(HIGH_BIT, 15))),
        ("Rows (0028,0010): expected 1 to 10000, found 10001", with(&|f| f.whole(ROWS, 10_001))),
        ("Rows (0028,0010): expected 1 to 10000, found none", with(&|f| f.elements.retain(|e| e.0 != ROWS.0))),
        ("Rows (0028,0010): expected one whole number", with(&|f| f.text(ROWS.0, b"LO", PATIENT))),
        ("Rescale Slope (0028,1053): expected a decimal number", with(&|f| f.text(SLOPE.0, b"DS", PATIENT))),
        ("Rescale Slope (0028,1053)", with(&|f| f.text(SLOPE.0, b"DS", "inf"))),
        (
            "Modality LUT Sequence",
            with(&|f| f.set(MODALITY_TABLE.0, b"SQ", items(&mut StdRng::seed_from_u64(1), true, 0))),
        ),
        ("VOI LUT Sequence", with(&|f| f.set(WINDOW_TABLE.0, b"SQ", items(&mut StdRng::seed_from_u64(1), true, 0)))),
        (
            "found SIGMOID",
            with(&|f| {
                f.text(WINDOW_CENTER.0, b"DS", "1");
                f.text(WINDOW_WIDTH.0, b"DS", "1");
                f.text(WINDOW_FUNCTION.0, b"CS", "SIGMOID");
            }),
        ),
        (
            "Window Width (0028,1051): expected at least 1",
            with(&|f| {
                f.text(WINDOW_CENTER.0, b"DS", "1");
                f.text(WINDOW_WIDTH.0, b"DS", "0.5");
            }),
        ),
    ] {
        assert!(text.starts_with("DICOM, ") && text.contains(words), "{words:?} is not in {text:?}");
    }
}

#[test]
fn sizes_that_are_wrong_are_refused_before_memory_is_taken() {
    let mut file = grey_file(EXPLICIT);
    file.whole(ROWS, 10_000);
    file.whole(COLUMNS, 10_000);
    assert!(file.refused().contains("expected 200000000 bytes of 10000 rows, 10000 columns"), "{}", file.refused());
    // Lengths of elements, at the end and within a sequence, that are larger than the file.
    for syntax in [IMPLICIT, EXPLICIT] {
        let whole = grey_file(syntax).bytes();
        for length in [u32::MAX - 1, 1 << 31, 0x10_0000, 31] {
            let mut file = whole.clone();
            let place = file.len() - 30 - 4;
            file[place..place + 4].copy_from_slice(&length.to_le_bytes());
            assert!(refused(&file).contains("complete elements"), "{}", refused(&file));
        }
    }
}

#[test]
fn sequences_without_end_and_delimiters_without_start_are_refused() {
    let start = |length: usize| {
        let mut file = File::new(EXPLICIT).bytes();
        (0..length).for_each(|_| {
            file.extend(b"\x08\x00\x40\x11SQ\0\0\xff\xff\xff\xff");
            file.extend(b"\xfe\xff\x00\xe0\xff\xff\xff\xff");
        });
        file
    };
    assert!(refused(&start(1_000_000)).contains("at most 64 sequences and items"));
    assert!(refused(&start(3)).contains("complete elements"));
    let [item, item_end, sequence_end]: [&[u8]; 3] =
        [b"\xfe\xff\x00\xe0\x08\0\0\0", b"\xfe\xff\x0d\xe0\0\0\0\0", b"\xfe\xff\xdd\xe0\0\0\0\0"];
    for depth in 0..3 {
        for first in [item, item_end, sequence_end] {
            for second in [item, item_end, sequence_end] {
                for third in [item, item_end, sequence_end] {
                    refused(&[&start(depth), first, second, third, item].concat());
                }
            }
        }
    }
    let mut open = start(0);
    open.extend(b"\x08\x00\x40\x11SQ\0\0\xff\xff\xff\xff");
    for delimiter in [item_end, sequence_end] {
        refused(&[&open, delimiter, item, item].concat());
    }
}

#[test]
fn cut_and_changed_files_do_not_panic() {
    let mut draw = StdRng::seed_from_u64(2);
    for syntax in [IMPLICIT, EXPLICIT] {
        let mut file = grey_file(syntax);
        file.text(WINDOW_CENTER.0, b"DS", "1000");
        file.text(WINDOW_WIDTH.0, b"DS", "500");
        file.set((0x0008, 0x1140), b"SQ", items(&mut draw, syntax == EXPLICIT, 2));
        let whole = file.bytes();
        decode(whole.clone()).expect("a picture");
        for cut in MARK + 4..whole.len() {
            refused(&whole[..cut]);
        }
        for _ in 0..20_000 {
            let mut changed = whole.clone();
            for _ in 0..draw.random_range(1..6) {
                let place = draw.random_range(MARK + 4..changed.len());
                changed[place] = match draw.random_range(0..3) {
                    0 => draw.random(),
                    1 => changed[place] ^ (1 << draw.random_range(0..8)),
                    _ => [0, 1, 0x7f, 0xfe, 0xff][draw.random_range(0..5)],
                };
            }
            if draw.random_range(0..4) == 0 {
                changed.truncate(draw.random_range(MARK + 4..changed.len()));
            }
            if let Err(text) = decode(changed) {
                assert!(!text.contains("SECRET"), "{text}");
            }
        }
    }
}

#[test]
fn a_constant_picture_is_black_or_white() {
    for (colours, level) in [("MONOCHROME2", 0), ("MONOCHROME1", 255)] {
        let mut file = grey_file(EXPLICIT);
        file.text(PHOTOMETRIC.0, b"CS", colours);
        file.set(PIXELS.0, b"OW", [0, 7].repeat(15));
        assert_eq!(decode(file.bytes()).expect("a picture").into_bytes(), [level; 15]);
    }
}

#[test]
fn the_patient_id_is_read_and_is_in_no_message() {
    const NEXT: &str = "give a CSV file with the columns file and patient";
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("IM0001");
    let id_of = |bytes: &[u8]| {
        std::fs::write(&path, bytes).expect("a file");
        let found = crate::pictures::patient_id(&path).map_err(|error| error.to_string());
        if let Err(text) = &found {
            assert!(text.contains("IM0001") && !text.contains("SECRET"), "{text}");
        }
        found
    };
    let mut draw = StdRng::seed_from_u64(3);
    for syntax in [IMPLICIT, EXPLICIT] {
        let mut file = grey_file(syntax);
        let missing = id_of(&file.bytes()).expect_err("no id");
        assert!(missing.contains("Patient ID (0010,0020)") && missing.contains("found none") && missing.contains(NEXT));
        // An id within a sequence is not the picture's.
        let mut item = Vec::new();
        add(&mut item, syntax == EXPLICIT, (PATIENT_ID.0, *b"LO", b"SECRET 8"));
        let item = [&[0xfe, 0xff, 0, 0xe0][..], &(item.len() as u32).to_le_bytes(), &item].concat();
        file.set((0x0008, 0x1140), b"SQ", [item, items(&mut draw, syntax == EXPLICIT, 2)].concat());
        assert_eq!(id_of(&file.bytes()), Err(missing.clone()));
        for (value, expected) in [(" SECRET 7 ", "SECRET 7"), ("SECRET\u{e9}", "SECRET\u{e9}")] {
            file.text(PATIENT_ID.0, b"LO", value);
            assert_eq!(id_of(&file.bytes()).as_deref(), Ok(expected));
            assert_eq!(decode(file.bytes()).expect("a picture").width(), 5);
        }
        let whole = file.bytes();
        for cut in MARK + 4..whole.len() {
            let _ = id_of(&whole[..cut]);
        }
        for value in [&b""[..], b"  ", b"\0\0"] {
            file.set(PATIENT_ID.0, b"LO", value.to_vec());
            assert_eq!(id_of(&file.bytes()), Err(missing.clone()));
        }
        for value in [&b"SECRET\xe9 "[..], b"\x1b$BSECRET"] {
            file.set(PATIENT_ID.0, b"LO", value.to_vec());
            let other = id_of(&file.bytes()).expect_err("another encoding");
            assert!(other.contains("found another encoding") && other.contains(NEXT), "{other}");
        }
    }
    let png = id_of(b"\x89PNG\r\n\x1a\n").expect_err("no DICOM file");
    assert!(png.contains("expected a DICOM file with a patient id") && png.contains(NEXT), "{png}");
}
