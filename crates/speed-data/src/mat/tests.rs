//! Files in the form that scipy writes, and malformed files.

use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;

use super::*;

const LIMIT: u64 = 1 << 20;

/// Returns an element. Up to four bytes are stored in its tag, as by MATLAB and scipy.
fn element(kind: u32, bytes: &[u8]) -> Vec<u8> {
    if bytes.len() <= 4 {
        let mut small = [0; 4];
        small[..bytes.len()].copy_from_slice(bytes);
        return [&(kind | (bytes.len() as u32) << 16).to_le_bytes()[..], &small].concat();
    }
    let padding = vec![0; bytes.len().next_multiple_of(8) - bytes.len()];
    [&kind.to_le_bytes()[..], &(bytes.len() as u32).to_le_bytes(), bytes, &padding].concat()
}

fn array(name: &str, class: u8, dims: &[i32], kind: u32, numbers: &[u8]) -> Vec<u8> {
    let dims: Vec<u8> = dims.iter().flat_map(|size| size.to_le_bytes()).collect();
    let parts = [
        element(6, &[class, 0, 0, 0, 0, 0, 0, 0]),
        element(5, &dims),
        element(1, name.as_bytes()),
        element(kind, numbers),
    ];
    element(14, &parts.concat())
}

fn packed(array: &[u8]) -> Vec<u8> {
    let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
    zlib.write_all(array).expect("memory");
    let bytes = zlib.finish().expect("memory");
    // A compressed element has no padding.
    [&15_u32.to_le_bytes()[..], &(bytes.len() as u32).to_le_bytes(), &bytes].concat()
}

fn file(arrays: &[Vec<u8>]) -> Vec<u8> {
    let mut header = b"MATLAB 5.0 MAT-file Platform: posix".to_vec();
    header.resize(124, b' ');
    [&header[..], &[0, 1, b'I', b'M'], &arrays.concat()].concat()
}

/// Returns two images of 2 rows, 4 columns and 3 channels; value = 100 image + 20 channel + 4 row + column.
fn images() -> Vec<u8> {
    let mut values = Vec::new();
    for (image, channel) in (0..2).flat_map(|image| (0..3).map(move |channel| (image, channel))) {
        for (column, row) in (0..4).flat_map(|column| (0..2).map(move |row| (column, row))) {
            values.push(100 * image + 20 * channel + 4 * row + column);
        }
    }
    array("X", 9, &[2, 4, 3, 2], 2, &values)
}

fn labels() -> Vec<u8> {
    array("y", 9, &[2, 1], 2, &[10, 1])
}

/// Returns a compressed file of these images and labels in SVHN's format. Each image is given in the order of the file: column by column,
/// channel by channel.
pub(crate) fn svhn_file(side: usize, images: &[Vec<u8>], labels: &[u8]) -> Vec<u8> {
    let (side, count) = (side as i32, images.len() as i32);
    let images = array("X", 9, &[side, side, 3, count], 2, &images.concat());
    file(&[packed(&images), packed(&array("y", 9, &[count, 1], 2, labels))])
}

fn read(bytes: &[u8]) -> Result<MatImages, MatError> {
    read_images(bytes, LIMIT)
}

#[track_caller]
fn refused(bytes: &[u8], words: &str) {
    let error = read(bytes).err().expect("a bad file").to_string();
    assert!(error.contains(words), "{words:?} is not in {error:?}");
}

#[test]
fn images_and_labels_compressed_or_not_in_any_order_beside_other_arrays() {
    let other = array("info", 4, &[1, 2], 4, &[b'h', 0, b'i', 0]);
    let doubles: Vec<u8> = [10.0_f64, 1.0].iter().flat_map(|value| value.to_le_bytes()).collect();
    let wide = array("y", 6, &[1, 2], 9, &doubles);
    for arrays in [
        vec![packed(&images()), packed(&labels())],
        vec![images(), labels()],
        vec![packed(&other), labels(), other.clone(), packed(&images())],
        vec![packed(&wide), images()],
        // Doubles with integer values are often stored as bytes.
        vec![images(), array("y", 6, &[2, 1], 2, &[10, 1])],
    ] {
        let found = read(&file(&arrays)).expect("a file");
        assert_eq!(found.shape, ImageShape { channels: 3, height: 2, width: 4 });
        assert_eq!(found.labels, [10, 1]);
        let expected: Vec<u8> = (0..2).flat_map(|i| (0..24).map(move |p| 100 * i + 20 * (p / 8) + p % 8)).collect();
        assert_eq!(found.pixels, expected);
    }
}

#[test]
fn every_cut_is_refused_and_no_flipped_bit_panics() {
    let bytes = file(&[packed(&images()), packed(&labels())]);
    for end in 0..bytes.len() {
        assert!(read(&bytes[..end]).is_err(), "cut to {end}");
    }
    let (expected, mut passed) = (read(&bytes).expect("a file"), 0);
    for bit in 0..8 * bytes.len() {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        // Some flipped bits change nothing: text of the header, a copy of equal bytes from another place, and unused bits at the end of a
        // stream.
        if let Ok(found) = read(&damaged) {
            assert!(found.pixels == expected.pixels && found.labels == expected.labels, "bit {bit}");
            passed += usize::from(bit / 8 >= 124);
        }
    }
    assert!(passed < 16, "{passed} flipped bits were not noticed");
}

#[test]
fn a_bomb_is_not_unpacked() {
    let endless = array("Z", 9, &[1 << 20, 1 << 5, 1, 1], 2, &vec![0; 32 << 20]);
    let bomb = file(&[packed(&endless)]);
    assert!(bomb.len() < 100_000);
    refused(&bomb, "too long");
    let images = array("X", 9, &[1024, 1024, 1, 32], 2, &vec![0; 32 << 20]);
    refused(&file(&[packed(&images)]), "too long");
    // The header promises more than the file contains.
    let mut promise = array("X", 9, &[32, 32, 3, 2], 2, &[0; 6144]);
    promise.truncate(200);
    refused(&file(&[packed(&promise)]), "truncated");
}

#[test]
fn wrong_orders_types_and_sizes_are_named() {
    let with = |array: Vec<u8>| file(&[packed(&array), packed(&labels())]);
    refused(
        &with(array("X", 9, &[2, 2, 4, 3], 2, &[0; 48])),
        "dimensions of `X`: expected height, width, 1 or 3 channels",
    );
    refused(&with(array("X", 9, &[2, 24], 2, &[0; 48])), "height, width, channel, image, found [2, 24]");
    refused(&with(array("X", 6, &[2, 4, 3, 2], 9, &[0; 384])), "`X`: expected unsigned bytes");
    refused(&with(array("X", 9, &[2, 4, 3, 2], 1, &[0; 48])), "`X`: expected unsigned bytes");
    refused(&with(array("X", 9, &[2, 4, 3, 3], 2, &[0; 48])), "expected 72 bytes, found 48 bytes");
    refused(&with(array("X", 9, &[-2, 4, 3, 2], 2, &[0; 48])), "negative");
    refused(&with(array("X", 9, &[i32::MAX; 4], 2, &[0; 48])), "dimensions of `X`");
    // Zero images of a size that exceeds the memory.
    for dims in [[i32::MAX, i32::MAX, 1, 0], [1 << 15, 1 << 15, 3, 0]] {
        refused(&with(array("X", 9, &dims, 2, &[])), "and at least one image");
    }
    refused(&with(array("X", 4, &[2, 4, 3, 2], 2, &[0; 48])), "an array of real numbers, found class 4");
    refused(&with(array("W", 9, &[2, 4, 3, 2], 2, &[0; 48])), "array `X` is missing");
    refused(&file(&[images()]), "array `y` is missing");
    refused(&file(&[images(), labels(), packed(&labels())]), "two arrays `y`");
    refused(&file(&[images(), array("y", 9, &[3, 1], 2, &[1, 2, 3])]), "2 images and 3 labels");
    refused(
        &file(&[images(), array("y", 6, &[2, 1], 9, &[[0; 8], 1.5_f64.to_le_bytes()].concat())]),
        "label 1: expected an integer",
    );
    refused(&file(&[images(), array("y", 6, &[2, 1], 9, &f64::NAN.to_le_bytes().repeat(2))]), "found NaN");
    refused(&file(&[images(), array("y", 9, &[2, 2], 2, &[1; 4])]), "one row or one column");
    refused(&file(&[element(15, b"no zlib at all")]), "damaged");
    refused(&file(&[packed(&element(2, &[1; 8]))]), "expected an array");
    refused(&file(&[packed(&[images(), images()].concat())]), "nothing after it");
}

#[test]
fn bytes_behind_arrays_are_refused() {
    let good = file(&[packed(&images()), packed(&labels())]);
    for more in [&[0; 8][..], &[0; 64], &[1, 0, 4, 0, 1, 2, 3, 4], &element(2, &[7; 20])] {
        refused(&[&good[..], more].concat(), "expected an array (type 14 or 15)");
    }
    refused(&[&good[..], b"more"].concat(), "within a tag");
    // Within the array's element, after its numbers.
    let array = |name: &str, more: &[u8]| {
        let mut bytes = if name == "X" { images() } else { labels() };
        bytes.extend(more);
        let length = (bytes.len() - 8) as u32;
        bytes[4..8].copy_from_slice(&length.to_le_bytes());
        bytes
    };
    for more in [[0; 8], [9; 8]] {
        refused(
            &file(&[packed(&array("X", &more)), labels()]),
            "`X`: expected nothing after its numbers, found 8 more",
        );
        refused(&file(&[images(), array("y", &more)]), "`y`: expected nothing after its numbers, found 8 more");
    }
}

#[test]
fn files_of_other_kinds_are_named() {
    let mut bytes = file(&[]);
    refused(&bytes, "array `X` is missing");
    bytes[124..128].copy_from_slice(&[1, 0, b'M', b'I']);
    refused(&bytes, "big-endian");
    bytes[124..128].copy_from_slice(&[0, 2, b'I', b'M']);
    refused(&bytes, "HDF5");
    refused(b"", "it ends within the header");
    refused(&[0; 500], "not a MATLAB file of level 5");
}
