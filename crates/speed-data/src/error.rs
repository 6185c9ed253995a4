//! Faults of data, with their remedies.

use crate::ImageShape;
use crate::checksum::Checksum;
use crate::idx::IdxError;
use crate::mat::MatError;
use crate::pictures::Size;
use speed_core::npy::NpyError;
use speed_core::{printable, printable_path};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

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
    /// A file that exists but has the wrong content.
    #[error("{}: {problem}{}", printable_path(.path), hint(*.content_of))]
    BadFile {
        /// The file.
        path: PathBuf,
        /// The fault.
        problem: FileProblem,
        /// The known file whose content it has instead, if any (swapped files).
        content_of: Option<&'static str>,
    },
    /// A directory of pictures that is not a dataset.
    #[error("{}: {problem}", printable_path(.path))]
    Pictures {
        /// The directory or the picture.
        path: PathBuf,
        /// The fault.
        problem: PictureProblem,
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

/// The fault of a file that is not the expected one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileProblem {
    /// The gzip stream is broken or ends early.
    #[error("damaged or truncated gzip file: {reason}")]
    Gzip {
        /// The decoder's message.
        reason: String,
    },
    /// More bytes than the file can have.
    #[error("too long: expected {expected} bytes of content, found more than {limit}")]
    TooLong {
        /// Bytes of the expected content.
        expected: u64,
        /// The number of bytes after which reading stopped.
        limit: u64,
    },
    /// Not an idx file of the right kind and length.
    #[error("{0}")]
    Idx(#[from] IdxError),
    /// Another number of images or labels.
    #[error("wrong number of {what}: expected {expected}, found {found}")]
    Count {
        /// `images` or `labels`.
        what: &'static str,
        /// As published.
        expected: usize,
        /// As in the header.
        found: usize,
    },
    /// Images of another size.
    #[error("wrong image size: expected {}x{}, found {}x{}", .expected.0, .expected.1, .found.0, .found.1)]
    Dimensions {
        /// Height and width as published.
        expected: (usize, usize),
        /// Height and width in the header.
        found: (usize, usize),
    },
    /// Not a MATLAB file with images and labels.
    #[error("{0}")]
    Mat(Box<MatError>),
    /// Not an array of the expected kind.
    #[error("{0}")]
    Npy(#[from] NpyError),
    /// An array with other axes.
    #[error("wrong axes: expected {expected}, found {found:?}")]
    Axes {
        /// The required axes.
        expected: &'static str,
        /// The lengths of the axes.
        found: Vec<usize>,
    },
    /// A label that does not fit in a byte.
    #[error("label {index}: expected 0 to 255, found {found}")]
    LargeLabel {
        /// Index of the label.
        index: usize,
        /// Its value.
        found: i64,
    },
    /// Labels of one class.
    #[error("expected labels of at least 2 classes, found only {found}")]
    OneClass {
        /// The label of all images.
        found: u8,
    },
    /// Labels that are not the numbers from 0 to K-1.
    #[error(
        "expected classes numbered 0 to {}, found the labels {}: {}", .found.len() - 1, ranges(.found),
        if is_from_one(.found) { "subtract 1, in both halves" } else { "renumber them in the same way in both halves" }
    )]
    Numbering {
        /// The labels in use, in order.
        found: Vec<u8>,
    },
    /// A test image of a class without training images.
    #[error("label {index}: expected a class of the training images, 0 to {}, found {found}", .classes - 1)]
    OtherClass {
        /// Index of the label.
        index: usize,
        /// Its value.
        found: u8,
        /// Number of classes of the training images.
        classes: usize,
    },
    /// A class of training images without test images.
    #[error("expected test images of every class: class {class} of the training images has none")]
    NoTest {
        /// The class.
        class: u8,
    },
    /// An archive that is damaged or lacks a file.
    #[error("damaged or incomplete archive: {reason}")]
    Archive {
        /// The fault.
        reason: String,
    },
    /// Images of another shape.
    #[error("wrong images: expected {expected}, found {found} (channels x height x width)")]
    Shape {
        /// As published.
        expected: ImageShape,
        /// As in the file.
        found: ImageShape,
    },
    /// A label that is not a class.
    #[error("label {index}: expected {first} to {}, found {found}", usize::from(*.first) + .classes - 1)]
    Label {
        /// Index of the label.
        index: usize,
        /// Its value.
        found: u8,
        /// The label of the first class.
        first: u8,
        /// Number of classes.
        classes: usize,
    },
    /// A file of the right format whose content is not the published one.
    #[error("wrong checksum: expected {expected}, found {found}")]
    Checksum {
        /// The published checksum.
        expected: Checksum,
        /// The checksum of this file, in hexadecimal.
        found: String,
    },
}

impl From<MatError> for FileProblem {
    fn from(error: MatError) -> Self {
        Self::Mat(Box::new(error))
    }
}

/// The fault of a directory of pictures.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PictureProblem {
    /// An image of another size or other channels than those of a trained network.
    #[error(
        "expected an image of {expected}, found {found} (channels x height x width); the model changes neither its size nor its \
         channels"
    )]
    OtherShape {
        /// The shape of the network's images.
        expected: ImageShape,
        /// The shape of this one.
        found: ImageShape,
    },
    /// Directories within directories, more than expected.
    #[error("expected at most {max} folders within folders, found more")]
    Depth {
        /// The largest depth.
        max: usize,
    },
    /// A number of directories that is not a possible number of classes.
    #[error("expected a folder for each of 2 to 256 classes, found {found}")]
    Classes {
        /// Number of directories.
        found: usize,
    },
    /// A name that is not Unicode text.
    #[error("expected a name in Unicode, found other bytes; rename the file or folder")]
    Name,
    /// A directory without a picture.
    #[error("expected PNG or JPEG pictures in the folder, found none")]
    Empty,
    /// A directory that is not one of the expected classes.
    #[error("expected a folder of one of the classes {}, found another one", printable(&classes.join(", ")))]
    UnknownClass {
        /// The names of the expected classes.
        classes: Vec<String>,
    },
    /// A class of test pictures that no training picture has.
    #[error("expected a class of the training pictures, found another one")]
    OtherClass,
    /// More pictures than are read into memory.
    #[error("expected at most {limit} bytes of pixels, found more")]
    TooMany {
        /// The limit.
        limit: u64,
    },
    /// A picture that cannot be read.
    #[error("cannot be read as a PNG or JPEG picture: {reason}")]
    Decode {
        /// The decoder's message.
        reason: String,
    },
    /// A picture of 16 bits that uses a small part of their range.
    #[error(
        "a picture of 16 bits whose largest value is {found} of 65535: its values may have 10 to 14 bits, and would be read as nearly black; \
         save it with values over all 16 bits, or with 8 bits"
    )]
    Range {
        /// The largest value.
        found: u16,
    },
    /// A picture outside the directories of the classes.
    #[error(
        "expected one folder for each class, found a picture outside of them; move it into the folder of its class"
    )]
    NoClass,
    /// A picture that would take too much memory.
    #[error("expected a picture of at most {max_side} rows and columns and {max_bytes} bytes unpacked, found more")]
    Huge {
        /// Largest number of rows or columns.
        max_side: u32,
        /// Largest number of bytes.
        max_bytes: u64,
    },
    /// A picture with more values than a training accepts.
    #[error(
        "{found} (height x width) in {channels} channels: expected at most {max} values to learn from; resize all \
         pictures, for example with `data.size = \"32x32\"` or `--size 32x32`"
    )]
    Large {
        /// Height and width.
        found: Size,
        /// Channels of every picture.
        channels: usize,
        /// Largest number of values.
        max: usize,
    },
    /// A picture of an unsupported kind, or a directory, within a class.
    #[error("expected PNG or JPEG pictures in a class's folder, found {what}")]
    NotRead {
        /// The kind of file found.
        what: &'static str,
    },
    /// A class of training pictures without test pictures.
    #[error("expected test pictures of every class: class {class:?} of the training pictures has none")]
    NoTest {
        /// The class.
        class: String,
    },
    /// A picture of another size than the first one.
    #[error(
        "expected {expected} like the other pictures, found {found} (height x width); set `data.size` or `--size` to resize all of them"
    )]
    Size {
        /// Height and width of the first picture.
        expected: Size,
        /// Height and width of this one.
        found: Size,
    },
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

fn is_from_one(labels: &[u8]) -> bool {
    labels.iter().zip(1..).all(|(&label, expected): (_, u16)| u16::from(label) == expected)
}

fn join(names: &[&str]) -> String {
    names.join(" or ")
}

fn join_paths(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| printable_path(path)).collect::<Vec<_>>().join(", ")
}

fn hint(content_of: Option<&str>) -> String {
    content_of.map_or_else(String::new, |file| format!(" (the content is that of {file}: were files swapped?)"))
}
