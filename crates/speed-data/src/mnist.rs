//! MNIST, read by the `mnist` crate after our own checks.
//!
//! The crate panics on every bad file, does not check lengths, and concatenates training and test images before it
//! splits them. So it only sees content with the published checksums, and its result is compared with our own reading
//! of the same bytes.

use std::fs;
use std::io;
use std::path::Path;

use ::mnist::MnistBuilder;

use crate::catalog::MNIST;
use crate::error::{bad_file, io_error};
use crate::verify::{self, Loaded};
use crate::{DataError, Dataset, Split, idx};

const TRAIN: u32 = 60_000;
const TEST: u32 = 10_000;

/// Loads the 60000 training and 10000 test images from the four published files, each gzip (`.gz`) or uncompressed,
/// in `dir` or `dir/mnist`.
///
/// # Errors
/// Names the file, the expected and the found content: a missing file, [`DataError::BadFile`] (gzip, length, header,
/// count, labels, checksum, swapped files), or a failure of reading.
pub fn load(dir: &Path) -> Result<Dataset, DataError> {
    let mut contents = Vec::with_capacity(MNIST.files.len());
    for file in MNIST.files {
        let path = verify::find_required(&MNIST, file, dir)?;
        if let Loaded::Idx(content) = verify::read(&MNIST, file, &path)? {
            contents.push((path, content));
        }
    }

    // The crate reads files by name from one directory. It gets exactly the bytes that were checked, so a file that
    // changes in the meantime, or four files in two directories, cannot make it panic.
    let folder = tempfile::Builder::new().prefix("speed-mnist-").tempdir();
    let folder = folder.map_err(io_error("create a folder in", &std::env::temp_dir()))?;
    for (file, (_, content)) in MNIST.files.iter().zip(&contents) {
        let path = folder.path().join(file.name);
        fs::write(&path, content).map_err(io_error("write", &path))?;
    }
    let base = folder.path().to_str().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidFilename, "not UTF-8"));
    let base = base.map_err(io_error("use the temporary folder", folder.path()))?;
    let data = MnistBuilder::new()
        .label_format_digit()
        .base_path(base)
        .training_set_length(TRAIN)
        .validation_set_length(0)
        .test_set_length(TEST)
        .finalize();

    let parts = [
        ("training images", &data.trn_img),
        ("training labels", &data.trn_lbl),
        ("test images", &data.tst_img),
        ("test labels", &data.tst_lbl),
    ];
    for (i, ((part, theirs), (path, content))) in parts.into_iter().zip(&contents).enumerate() {
        let ours =
            if i % 2 == 0 { idx::read_images(content).map(|images| images.pixels) } else { idx::read_labels(content) };
        if ours.map_err(|error| bad_file(path, error))? != theirs {
            return Err(DataError::Other(format!("the {part} from the mnist crate differ from the checked files")));
        }
    }
    let train = Split::new(MNIST.shape, MNIST.classes, data.trn_img, data.trn_lbl)?;
    let test = Split::new(MNIST.shape, MNIST.classes, data.tst_img, data.tst_lbl)?;
    Dataset::new(MNIST.name, train, test)
}
