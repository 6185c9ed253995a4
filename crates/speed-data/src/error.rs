//! Faults of data, with their remedies.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use speed_core::{printable, printable_path};

use crate::ImageShape;
use crate::checksum::Checksum;

/// An error of this crate. Its text is complete: it includes the cause, so callers do not need `source()` to explain
/// it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// An image shape with a zero or beyond what memory can address.
    #[error("impossible image shape {shape} (channels x height x width)")]
    Shape {
        /// The shape.
        shape: ImageShape,
    },
    /// A number of classes that labels of one byte cannot represent.
    #[error("impossible number of classes: expected 1 to 256, found {found}")]
    Classes {
        /// The requested number.
        found: usize,
    },
    /// Pixels and labels whose numbers do not fit together.
    #[error("{images} images of {shape} need {} pixel values, found {found}", (*.images as u128) * (.shape.pixels() as u128))]
    PixelCount {
        /// The shape of one image.
        shape: ImageShape,
        /// Number of labels.
        images: usize,
        /// Number of pixel values.
        found: usize,
    },
    /// A label that is not a class.
    #[error("label of image {index}: expected below {classes}, found {label}")]
    Label {
        /// The image.
        index: usize,
        /// Its label.
        label: u8,
        /// Number of classes.
        classes: usize,
    },
    /// Training and test images of different shape or classes.
    #[error("training images are {} with {} classes, test images {} with {} classes", .train.0, .train.1, .test.0, .test.1)]
    Halves {
        /// Shape and classes of the training images.
        train: (ImageShape, usize),
        /// Shape and classes of the test images.
        test: (ImageShape, usize),
    },
    /// Images from which street digits cannot be made.
    #[error("handwriting must have one channel and an image of every class, found {images} images of {shape}")]
    Handwriting {
        /// The shape of its images.
        shape: ImageShape,
        /// Number of images.
        images: usize,
    },
    /// A partition for zero teachers.
    #[error("expected at least one teacher, found 0")]
    NoTeachers,
    /// More teachers than images.
    #[error("too many teachers: {teachers} teachers need at least {teachers} images, found {images}")]
    TooManyTeachers {
        /// Number of teachers.
        teachers: usize,
        /// Number of images.
        images: usize,
    },
    /// A dataset that this crate does not know.
    #[error("unknown dataset `{}`: expected {}", printable(.name), join(.known))]
    UnknownDataset {
        /// The requested name.
        name: String,
        /// The names of the datasets that are published as files.
        known: Vec<&'static str>,
    },
    /// No directory holds the dataset.
    #[error("dataset {name} not found; looked in {}; get it with `speed data fetch {name}`", join_paths(.looked))]
    NotFound {
        /// The dataset.
        name: &'static str,
        /// Every searched directory, in order.
        looked: Vec<PathBuf>,
    },
    /// A file of a dataset is not in any of the searched directories.
    #[error("file {file} is missing; looked for {}; get it with `speed data fetch {name}`", join_paths(.looked))]
    MissingFile {
        /// The dataset.
        name: &'static str,
        /// The file's name without `.gz`.
        file: &'static str,
        /// Every path tried, in order.
        looked: Vec<PathBuf>,
    },
    /// A file or directory that exists but has the wrong content.
    #[error("{}: {problem}", printable_path(.path))]
    BadFile {
        /// The file or directory.
        path: PathBuf,
        /// The fault, with the expected and the found, and often the next step.
        problem: String,
    },
    /// An operation of the operating system failed.
    #[error("cannot {action} {}: {error}", printable_path(.path))]
    Io {
        /// The action, as a verb.
        action: &'static str,
        /// The path.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The `mnist` crate read other data than our own checks.
    #[error("the {part} from the mnist crate differ from the checked files")]
    Disagreement {
        /// One of the four arrays.
        part: &'static str,
    },
    /// An invalid file is in the place of a download.
    #[error("{error}; it is not overwritten: move it away, then fetch again")]
    InTheWay {
        /// The fault of the file.
        error: Box<DataError>,
    },
    /// Another process downloads the same file.
    #[error("another process is downloading {}; wait until it has finished", printable_path(.path))]
    Busy {
        /// The unfinished file.
        path: PathBuf,
    },
    /// No mirror gave a valid file.
    #[error("{0}")]
    Download(Box<DownloadError>),
}

/// A failed download, with instructions for a download by hand.
#[derive(Debug)]
#[non_exhaustive]
pub struct DownloadError {
    /// The dataset.
    pub name: &'static str,
    /// Address and reason of every mirror that failed.
    pub attempts: Vec<(String, String)>,
    /// The archive in which the files are published, if they are not published one by one.
    pub archive: &'static str,
    /// Place and checksum of each missing file.
    pub wanted: Vec<(PathBuf, Checksum)>,
}

impl fmt::Display for DownloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot download {}:", self.name)?;
        if self.attempts.is_empty() {
            write!(f, "\n  no mirror was given")?;
        }
        for (url, reason) in &self.attempts {
            write!(f, "\n  {url}: {reason}")?;
        }
        if !self.archive.is_empty() {
            write!(f, "\n  these files are part of {}", self.archive)?;
        }
        write!(f, "\ndownload these files by hand and put them here:")?;
        for (path, checksum) in &self.wanted {
            write!(f, "\n  {}\n    {checksum}", printable_path(path))?;
        }
        write!(f, "\nthen run `speed data check {}`", self.name)
    }
}

/// Turns an [`io::Error`] into a [`DataError`] that names the failed action and the file.
pub(crate) fn io_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> DataError {
    move |error| DataError::Io { action, path: path.to_path_buf(), error }
}

/// Creates the error of a file or directory with the wrong content.
pub(crate) fn bad_file(path: &Path, problem: impl fmt::Display) -> DataError {
    DataError::BadFile { path: path.to_path_buf(), problem: problem.to_string() }
}

/// Checks a number of images or labels.
pub(crate) fn check_count(what: &str, expected: usize, found: usize) -> Result<(), String> {
    if expected == found { Ok(()) } else { Err(format!("wrong number of {what}: expected {expected}, found {found}")) }
}

/// Checks the shape of images.
pub(crate) fn check_shape(expected: ImageShape, found: ImageShape) -> Result<(), String> {
    let wrong = || format!("wrong images: expected {expected}, found {found} (channels x height x width)");
    if expected == found { Ok(()) } else { Err(wrong()) }
}

fn join(names: &[&str]) -> String {
    names.join(" or ")
}

fn join_paths(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| printable_path(path)).collect::<Vec<_>>().join(", ")
}
