//! A dataset of NumPy arrays in four files of a directory.

use std::collections::BTreeSet;
use std::path::Path;

use speed_core::npy::{ByteArray, WholeNumbers};
use speed_core::read_regular;

use crate::error::{bad_file, check_count, check_shape, io_error};
use crate::split::check_labels;
use crate::{DataError, Dataset, ImageShape, Split};

/// Largest size of a file, in bytes.
const MAX_FILE: u64 = 8 << 30;

/// Loads `train_images.npy`, `train_labels.npy`, `test_images.npy` and `test_labels.npy` from `folder`: images of dtype uint8 and shape
/// (n, height, width) or (n, height, width, channels) with 1 or 3 channels, labels of shape (n,) that are integers (of any integer or float
/// dtype). The labels are the classes 0 to K-1, and both halves have images of every class. Images keep their order, and each teacher holds
/// consecutive images.
///
/// # Errors
/// Names the file, the expected and the found content.
pub fn load(folder: &Path) -> Result<Dataset, DataError> {
    let (train, test) = (half(folder, "train")?, half(folder, "test")?);
    let of = |name: &str| folder.join(name);
    check_shape(train.0, test.0).map_err(|problem| bad_file(&of("test_images.npy"), problem))?;
    let classes = classes(&train.2, &test.2).map_err(|(name, problem)| bad_file(&of(name), problem))?;
    let split = |(shape, pixels, labels)| Split::new(shape, classes, pixels, labels);
    Dataset::new("arrays", split(train)?, split(test)?)
}

/// Loads arrays as [`load`] does, with public images without labels in `public_images.npy`. The test split has the public images,
/// whose labels are 0, and then those of `test_images.npy`, which may be missing with its labels. Also returns the number of
/// public images.
///
/// # Errors
/// Names the file, the expected and the found content.
pub fn load_with_public(folder: &Path) -> Result<(Dataset, usize), DataError> {
    let (shape, train_pixels, train_labels) = half(folder, "train")?;
    let (found, mut pixels) = read(folder, "public_images.npy", images)?;
    let of = |name: &str| folder.join(name);
    check_shape(shape, found).map_err(|problem| bad_file(&of("public_images.npy"), problem))?;
    let unlabelled = pixels.len() / shape.pixels();
    let mut labels = vec![0; unlabelled];
    let is_there = |name: &str| of(name).symlink_metadata().is_ok();
    let mut in_test = None;
    if is_there("test_images.npy") || is_there("test_labels.npy") {
        let (found, test_pixels, test_labels) = half(folder, "test")?;
        check_shape(shape, found).map_err(|problem| bad_file(&of("test_images.npy"), problem))?;
        pixels.extend(test_pixels);
        labels.extend_from_slice(&test_labels);
        in_test = Some(test_labels);
    }
    let classes = classes(&train_labels, in_test.as_ref().unwrap_or(&train_labels));
    let classes = classes.map_err(|(name, problem)| bad_file(&of(name), problem))?;
    let train = Split::new(shape, classes, train_pixels, train_labels)?;
    Ok((Dataset::new("arrays", train, Split::new(shape, classes, pixels, labels)?)?, unlabelled))
}

fn half(folder: &Path, half: &str) -> Result<(ImageShape, Vec<u8>, Vec<u8>), DataError> {
    let (shape, pixels) = read(folder, &format!("{half}_images.npy"), images)?;
    let name = format!("{half}_labels.npy");
    let labels = read(folder, &name, labels)?;
    let counted = check_count("labels", pixels.len() / shape.pixels(), labels.len());
    counted.map_err(|problem| bad_file(&folder.join(name), problem))?;
    Ok((shape, pixels, labels))
}

/// Loads labelled images from two files, in the form that [`load`] reads, for a given number of classes.
///
/// # Errors
/// Names the file, the expected and the found content.
pub fn load_labelled(images_file: &Path, labels_file: &Path, classes: usize) -> Result<Split, DataError> {
    let (shape, pixels) = read_file(images_file, images)?;
    let labels = read_file(labels_file, labels)?;
    let checked = check_count("labels", pixels.len() / shape.pixels(), labels.len());
    let checked = checked.and_then(|()| check_labels(&labels, 0, classes));
    checked.map_err(|problem| bad_file(labels_file, problem))?;
    Split::new(shape, classes, pixels, labels)
}

/// Loads images without labels from a file, in the form that [`load`] reads, for a model of `classes` classes. Every label
/// is 0.
///
/// # Errors
/// Names the file, the expected and the found content.
pub fn load_unlabelled(file: &Path, classes: usize) -> Result<Split, DataError> {
    let (shape, pixels) = read_file(file, images)?;
    let count = pixels.len() / shape.pixels();
    Split::new(shape, classes, pixels, vec![0; count])
}

/// Returns the number of classes. It is known only from the labels, so no class may be missing.
fn classes(train: &[u8], test: &[u8]) -> Result<usize, (&'static str, String)> {
    const TRAIN: &str = "train_labels.npy";
    const TEST: &str = "test_labels.npy";
    let (in_train, in_test): (BTreeSet<u8>, BTreeSet<u8>) =
        (train.iter().copied().collect(), test.iter().copied().collect());
    let found: Vec<u8> = in_train.iter().copied().collect();
    if let [only] = found[..] {
        return Err((TRAIN, format!("expected labels of at least 2 classes, found only {only}")));
    }
    if found.iter().zip(0..).any(|(&label, expected)| label != expected) {
        let is_from_one = found.iter().zip(1..).all(|(&label, expected)| u16::from(label) == expected);
        let next =
            if is_from_one { "subtract 1, in both halves" } else { "renumber them in the same way in both halves" };
        let last = found.len() - 1;
        let found = ranges(&found);
        return Err((TRAIN, format!("expected classes numbered 0 to {last}, found the labels {found}: {next}")));
    }
    if let Some((index, &found)) = test.iter().enumerate().find(|(_, label)| !in_train.contains(label)) {
        let last = in_train.len() - 1;
        let expected = format!("expected a class of the training images, 0 to {last}");
        return Err((TEST, format!("label {index}: {expected}, found {found}")));
    }
    match in_train.difference(&in_test).next() {
        Some(class) => {
            Err((TEST, format!("expected test images of every class: class {class} of the training images has none")))
        }
        None => Ok(in_train.len()),
    }
}

/// Formats sorted labels as `0, 2, 5 to 7`, with at most eight such parts.
fn ranges(labels: &[u8]) -> String {
    const MAX_PARTS: usize = 8;
    let part = |run: &[u8]| match *run {
        [first, .., last] => format!("{first} to {last}"),
        _ => run.iter().map(u8::to_string).collect(),
    };
    let parts: Vec<String> = labels.chunk_by(|&left, &right| left + 1 == right).map(part).collect();
    let more = if parts.len() > MAX_PARTS { " and more" } else { "" };
    parts[..parts.len().min(MAX_PARTS)].join(", ") + more
}

fn read<T>(folder: &Path, name: &str, parse: fn(&[u8]) -> Result<T, String>) -> Result<T, DataError> {
    read_file(&folder.join(name), parse)
}

fn read_file<T>(path: &Path, parse: fn(&[u8]) -> Result<T, String>) -> Result<T, DataError> {
    let bytes = read_regular(path, MAX_FILE).map_err(io_error("read", path))?;
    parse(&bytes).map_err(|problem| bad_file(path, problem))
}

/// The axes that images must have.
const IMAGES: &str = "images x height x width, or images x height x width x 1 or 3 channels, at least one of each";
const CHANNELS_FIRST: &str = "images x height x width x channels, as numpy.moveaxis(images, 1, -1) puts them";
const TWO_WAYS: &str = "exactly one axis that can be the channels (images of one channel: images x height x width)";
const LABELS: &str = "labels on one axis (for one-hot rows: rows.argmax(axis=1), otherwise labels.ravel())";

fn images(bytes: &[u8]) -> Result<(ImageShape, Vec<u8>), String> {
    let array = ByteArray::parse(bytes).map_err(|error| error.to_string())?;
    let axes = |expected| wrong_axes(expected, &array.shape);
    let shape = match array.shape[..] {
        [_, 1 | 3, _, 1 | 3] => return Err(axes(TWO_WAYS)),
        [_, height, width] => ImageShape { channels: 1, height, width },
        [_, height, width, channels @ (1 | 3)] => ImageShape { channels, height, width },
        [_, 1 | 3, _, _] => return Err(axes(CHANNELS_FIRST)),
        _ => return Err(axes(IMAGES)),
    };
    if !shape.is_possible() || array.shape[0] == 0 {
        return Err(axes(IMAGES));
    }
    let area = shape.height * shape.width;
    let mut pixels = Vec::with_capacity(array.values.len());
    for image in array.values.chunks_exact(shape.pixels()) {
        for channel in 0..shape.channels {
            pixels.extend((0..area).map(|place| image[place * shape.channels + channel]));
        }
    }
    Ok((shape, pixels))
}

fn wrong_axes(expected: &str, found: &[usize]) -> String {
    format!("wrong axes: expected {expected}, found {found:?}")
}

fn labels(bytes: &[u8]) -> Result<Vec<u8>, String> {
    // Only the header is read first, because an array of images in this place would be unpacked to eight times its length.
    let found = speed_core::npy::shape(bytes).map_err(|error| error.to_string())?;
    if found.len() != 1 {
        return Err(wrong_axes(LABELS, &found));
    }
    let WholeNumbers { values, .. } = WholeNumbers::parse(bytes).map_err(|error| error.to_string())?;
    let label = |(index, &found): (usize, &i64)| {
        u8::try_from(found).map_err(|_| format!("label {index}: expected 0 to 255, found {found}"))
    };
    values.iter().enumerate().map(label).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn npy(descr: &str, shape: &str, values: &[u8]) -> Vec<u8> {
        let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
        [b"\x93NUMPY\x01\x00", [header.len() as u8, 0].as_slice(), header.as_bytes(), values].concat()
    }

    fn refused(name: &str, bytes: &[u8]) -> String {
        let folder = tempfile::tempdir().expect("a temporary folder");
        write(folder.path());
        fs::write(folder.path().join(name), bytes).expect("a file");
        let text = load(folder.path()).expect_err("a bad file").to_string();
        assert!(text.contains(name), "{text}");
        text
    }

    /// Two training images and two test images, 2 x 1, three channels.
    fn write(folder: &Path) {
        let images: Vec<u8> = (0..12).collect();
        for (name, bytes) in [
            ("train_images.npy", npy("|u1", "(2, 2, 1, 3)", &images)),
            ("train_labels.npy", npy("<i8", "(2,)", &[1_i64, 0].map(i64::to_le_bytes).concat())),
            ("test_images.npy", npy("|u1", "(2, 2, 1, 3)", &images)),
            ("test_labels.npy", npy("|u1", "(2,)", &[0, 1])),
        ] {
            fs::write(folder.join(name), bytes).expect("a file");
        }
    }

    #[test]
    fn images_become_channels_first() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        write(folder.path());
        let data = load(folder.path()).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(data.train.shape(), ImageShape { channels: 3, height: 2, width: 1 });
        assert_eq!((data.train.classes(), data.train.labels()), (2, &[1, 0][..]));
        assert_eq!(data.train.pixels(1), [6, 9, 7, 10, 8, 11]);
        assert_eq!(data.test.labels(), [0, 1]);
    }

    #[test]
    fn public_arrays_without_labels_come_before_the_test_arrays() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        write(folder.path());
        let public = folder.path().join("public_images.npy");
        let load = || load_with_public(folder.path());
        assert!(load().expect_err("refused").to_string().contains("public_images.npy"));
        fs::write(&public, npy("|u1", "(1, 4, 1, 3)", &[0; 12])).expect("a file");
        let text = load().expect_err("refused").to_string();
        assert!(text.contains("public_images.npy") && text.contains("expected 3x2x1, found 3x4x1"), "{text}");
        fs::write(&public, npy("|u1", "(1, 2, 1, 3)", &[8; 6])).expect("a file");
        let (data, unlabelled) = load().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((unlabelled, data.test.labels()), (1, &[0, 0, 1][..]));
        assert_eq!((data.test.pixels(0), data.test.pixels(1)), (&[8; 6][..], &[0, 3, 1, 4, 2, 5][..]));
        fs::remove_file(folder.path().join("test_images.npy")).expect("a file");
        assert!(load().expect_err("refused").to_string().contains("test_images.npy"));
        fs::remove_file(folder.path().join("test_labels.npy")).expect("a file");
        let (data, unlabelled) = load().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((unlabelled, data.test.len(), data.test.classes()), (1, 1, 2));
    }

    #[test]
    fn other_arrays_are_refused_by_name_with_the_next_step() {
        let array = |descr: &str, shape: &str, length: usize| npy(descr, shape, &vec![0; length]);
        for (name, bytes, words) in [
            ("train_images.npy", array("|u1", "(2, 6)", 12), "images x height x width"),
            ("train_images.npy", array("|u1", "(2, 2, 1, 2)", 8), "found [2, 2, 1, 2]"),
            ("train_images.npy", array("|u1", "(2, 0, 1, 3)", 0), "found [2, 0, 1, 3]"),
            ("train_images.npy", array("|u1", "(2, 3, 4, 2)", 48), "numpy.moveaxis(images, 1, -1)"),
            ("train_images.npy", array("|u1", "(2, 3, 2, 1)", 12), "exactly one axis that can be the channels"),
            ("train_images.npy", array("|u1", "(2, 2, 1, 3)", 13), "expected 12 entries, found 13"),
            ("test_images.npy", array("<f4", "(2, 2, 1, 3)", 48), "uint8"),
            ("test_images.npy", array("|u1", "(2, 4, 1, 3)", 24), "expected 3x2x1, found 3x4x1"),
            ("test_images.npy", array("|u1", "(0, 2, 1, 3)", 0), "found [0, 2, 1, 3]"),
            ("train_labels.npy", npy("<i2", "(2,)", &[0, 1, 0, 0]), "label 0: expected 0 to 255, found 256"),
            (
                "train_labels.npy",
                array("|u1", "(2, 2)", 4),
                "expected labels on one axis (for one-hot rows: rows.argmax",
            ),
            ("train_labels.npy", array("|u1", "(2, 2, 1, 3)", 12), "expected labels"),
            ("train_labels.npy", npy("|u1", "(3,)", &[0, 0, 1]), "labels: expected 2, found 3"),
            ("train_labels.npy", npy("|b1", "(2,)", &[0, 1]), "expected numbers, found dtype '|b1'"),
            ("train_labels.npy", npy("|u1", "(2,)", &[0, 1, 1]), "nothing after 2 entries, found 1"),
            ("train_labels.npy", b"no array".to_vec(), "not an .npy array"),
        ] {
            let text = refused(name, &bytes);
            assert!(text.contains(words), "{words:?} is not in {text:?}");
        }
    }

    #[test]
    fn labels_count_from_0_and_are_the_same_in_both_halves() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let load = |train: &[u8], test: &[u8]| {
            for (half, labels) in [("train", train), ("test", test)] {
                let count = labels.len();
                let write = |name: &str, bytes| fs::write(folder.path().join(format!("{half}_{name}.npy")), bytes);
                write("images", npy("|u1", &format!("({count}, 2, 2)"), &vec![0; 4 * count])).expect("a file");
                write("labels", npy("|u1", &format!("({count},)"), labels)).expect("a file");
            }
            load(folder.path()).map(|data| data.train.classes()).map_err(|error| error.to_string())
        };
        assert_eq!(load(&[2, 0, 1], &[0, 2, 1, 1]), Ok(3));
        let refused = |train: &[u8], test: &[u8], words: &str| {
            let text = load(train, test).expect_err(words);
            assert!(text.contains(words), "{words:?} is not in {text:?}");
        };
        refused(&[1, 2, 3], &[1, 2, 3], "found the labels 1 to 3: subtract 1");
        refused(&[0, 2, 5, 6, 7], &[0, 2, 5, 6, 7], "found the labels 0, 2, 5 to 7: renumber them");
        refused(
            &[0, 1],
            &[0, 1, 2],
            "test_labels.npy: label 2: expected a class of the training images, 0 to 1, found 2",
        );
        refused(&[0, 1, 2], &[0, 1], "expected test images of every class: class 2 of the training images has none");
        refused(&[0, 0], &[0], "2 classes, found only 0");
        refused(&[7, 7], &[7], "2 classes, found only 7");
    }
}
