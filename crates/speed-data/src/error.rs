//! Faults of data, with their remedies.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use speed_core::printable_path;

use crate::ImageShape;

/// An error of this crate. Its text is complete: it includes the cause, so callers do not need `source()` to explain
/// it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages describe the fields")]
pub enum DataError {
    /// No directory holds the dataset.
    #[error("dataset {name} not found; looked in {}; get it with `speed data fetch {name}`", join_paths(.looked))]
    NotFound {
        name: &'static str,
        /// Every searched directory, in order.
        looked: Vec<PathBuf>,
    },
    /// A file or directory that exists but has the wrong content.
    #[error("{}: {problem}", printable_path(.path))]
    BadFile {
        path: PathBuf,
        /// The fault, with the expected and the found, and often the next step.
        problem: String,
    },
    /// Any other refusal or failure, with the expected and the found, and often the next step.
    #[error("{0}")]
    Other(String),
}

/// Turns an [`io::Error`] into a [`DataError`] that names the failed action and the file.
pub(crate) fn io_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> DataError {
    move |error| DataError::Other(format!("cannot {action} {}: {error}", printable_path(path)))
}

pub(crate) fn bad_file(path: &Path, problem: impl fmt::Display) -> DataError {
    DataError::BadFile { path: path.to_path_buf(), problem: problem.to_string() }
}

pub(crate) fn check_count(what: &str, expected: usize, found: usize) -> Result<(), String> {
    if expected == found { Ok(()) } else { Err(format!("wrong number of {what}: expected {expected}, found {found}")) }
}

pub(crate) fn check_shape(expected: ImageShape, found: ImageShape) -> Result<(), String> {
    let wrong = || format!("wrong images: expected {expected}, found {found} (channels x height x width)");
    if expected == found { Ok(()) } else { Err(wrong()) }
}

pub(crate) fn join_paths(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| printable_path(path)).collect::<Vec<_>>().join(", ")
}
