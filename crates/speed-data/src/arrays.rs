//! A dataset of NumPy arrays: four files in a folder.

use std::path::Path;

use speed_npy::{ByteArray, WholeNumbers};

use crate::error::{FileProblem, io_error};
use crate::places::read_limited;
use crate::{DataError, Dataset, ImageShape, Split};

/// Bytes of a file at most.
const MAX_FILE: u64 = 8 << 30;

/// Loads `train_images.npy`, `train_labels.npy`, `test_images.npy` and `test_labels.npy` from `folder`: images of dtype uint8 and shape
/// (n, height, width) or (n, height, width, channels) with 1 or 3 channels, labels whole numbers of shape (n,) from 0 on. Images keep
/// their order: teachers hold consecutive ones.
///
/// # Errors
/// Names the file, what was expected and what was found.
pub fn load(folder: &Path) -> Result<Dataset, DataError> {
    let [train, test] = ["train", "test"].map(|half| {
        let (shape, pixels) = read(folder, &format!("{half}_images.npy"), images)?;
        let name = format!("{half}_labels.npy");
        let labels = read(folder, &name, labels)?;
        let (expected, found) = (pixels.len() / shape.pixels(), labels.len());
        if found != expected {
            return Err(bad(folder, &name, FileProblem::Count { what: "labels", expected, found }));
        }
        Ok::<_, DataError>((shape, pixels, labels))
    });
    let (train, test) = (train?, test?);
    if train.0 != test.0 {
        return Err(bad(folder, "test_images.npy", FileProblem::Shape { expected: train.0, found: test.0 }));
    }
    let classes = 1 + usize::from(train.2.iter().chain(&test.2).copied().max().unwrap_or(0));
    if classes < 2 {
        return Err(bad(folder, "train_labels.npy", FileProblem::OneClass));
    }
    let split = |(shape, pixels, labels)| Split::new(shape, classes, pixels, labels);
    Dataset::new("arrays", split(train)?, split(test)?)
}

fn bad(folder: &Path, name: &str, problem: FileProblem) -> DataError {
    DataError::BadFile { path: folder.join(name), problem, content_of: None }
}

fn read<T>(folder: &Path, name: &str, parse: fn(&[u8]) -> Result<T, FileProblem>) -> Result<T, DataError> {
    let path = folder.join(name);
    let bytes = read_limited(&path, MAX_FILE).map_err(io_error("read", &path))?;
    parse(&bytes).map_err(|problem| bad(folder, name, problem))
}

fn images(bytes: &[u8]) -> Result<(ImageShape, Vec<u8>), FileProblem> {
    let array = ByteArray::parse(bytes)?;
    let axes = |found: &[usize]| FileProblem::Axes {
        expected: "images x height x width, or images x height x width x 1 or 3 channels",
        found: found.to_vec(),
    };
    let shape = match array.shape[..] {
        [_, height, width] => ImageShape { channels: 1, height, width },
        [_, height, width, channels @ (1 | 3)] => ImageShape { channels, height, width },
        _ => return Err(axes(&array.shape)),
    };
    if !shape.is_possible() || array.shape[0] == 0 {
        return Err(axes(&array.shape));
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

fn labels(bytes: &[u8]) -> Result<Vec<u8>, FileProblem> {
    // From the header alone: an array of images in this place would be unpacked to eight times its length.
    let found = speed_npy::shape(bytes)?;
    if found.len() != 1 {
        return Err(FileProblem::Axes { expected: "labels", found });
    }
    let WholeNumbers { values, .. } = WholeNumbers::parse(bytes)?;
    let label =
        |(index, &found): (usize, &i64)| u8::try_from(found).map_err(|_| FileProblem::LargeLabel { index, found });
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

    /// Two training images and one test image, 2 x 1, three channels.
    fn write(folder: &Path) {
        let images: Vec<u8> = (0..12).collect();
        for (name, bytes) in [
            ("train_images.npy", npy("|u1", "(2, 2, 1, 3)", &images)),
            ("train_labels.npy", npy("<i8", "(2,)", &[2_i64, 0].map(i64::to_le_bytes).concat())),
            ("test_images.npy", npy("|u1", "(1, 2, 1, 3)", &images[..6])),
            ("test_labels.npy", npy("|u1", "(1,)", &[1])),
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
        assert_eq!((data.train.classes(), data.train.labels()), (3, &[2, 0][..]));
        assert_eq!(data.train.pixels(1), [6, 9, 7, 10, 8, 11]);
        assert_eq!(data.test.labels(), [1]);
    }

    #[test]
    fn other_arrays_are_refused_by_name() {
        let folder_of_zeros = tempfile::tempdir().expect("a temporary folder");
        write(folder_of_zeros.path());
        assert!(refused("train_images.npy", &npy("|u1", "(2, 6)", &[0; 12])).contains("images x height x width"));
        assert!(refused("train_images.npy", &npy("|u1", "(2, 2, 1, 2)", &[0; 8])).contains("found [2, 2, 1, 2]"));
        assert!(refused("train_images.npy", &npy("|u1", "(2, 0, 1, 3)", &[])).contains("found [2, 0, 1, 3]"));
        assert!(refused("test_images.npy", &npy("<f4", "(1, 2, 1, 3)", &[0; 24])).contains("uint8"));
        assert!(
            refused("test_images.npy", &npy("|u1", "(1, 3, 1, 3)", &[0; 9])).contains("expected 3x2x1, found 3x3x1")
        );
        assert!(
            refused("train_labels.npy", &npy("<i2", "(2,)", &[0, 1, 0, 0]))
                .contains("label 0: expected 0 to 255, found 256")
        );
        assert!(refused("train_labels.npy", &npy("|u1", "(2, 1)", &[0, 0])).contains("expected labels"));
        assert!(refused("train_labels.npy", &npy("|u1", "(3,)", &[0, 0, 1])).contains("labels: expected 2, found 3"));
        assert!(refused("train_labels.npy", &npy("|u1", "(2, 2, 1, 3)", &[0; 12])).contains("expected labels"));
        assert!(refused("test_images.npy", &npy("|u1", "(0, 2, 1, 3)", &[])).contains("found [0, 2, 1, 3]"));
        fs::write(folder_of_zeros.path().join("train_labels.npy"), npy("|u1", "(2,)", &[0, 0])).expect("a file");
        fs::write(folder_of_zeros.path().join("test_labels.npy"), npy("|u1", "(1,)", &[0])).expect("a file");
        assert!(load(folder_of_zeros.path()).expect_err("one class").to_string().contains("2 classes"));
        assert!(refused("train_labels.npy", b"no array").contains("not an .npy array"));
    }
}
