//! Faults of files of votes and queries.

use speed_accountant::AccountError;
use speed_core::VotesError;

/// The fault of a file of votes or queries: found and expected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InputFault {
    /// The file cannot be read.
    #[error("cannot read: {0}")]
    Unreadable(#[source] std::io::Error),
    /// The file is no `.npy` array of whole numbers.
    #[error(transparent)]
    Npy(Box<dyn std::error::Error + Send + Sync>),
    /// The array has not two dimensions.
    #[error("expected two dimensions{expected}, found shape {shape:?}")]
    Dimensions {
        /// The meaning of the two, if there is only one.
        expected: &'static str,
        /// The lengths of its axes.
        shape: Vec<usize>,
    },
    /// The array is neither labels nor histograms of the config's size.
    #[error(
        "shape {rows} x {columns} is neither labels of {teachers} teachers for {pool} pool images nor {pool} histograms: set \
         ensemble.teachers and data.pool_images to what the file holds"
    )]
    Size {
        /// Rows of the array.
        rows: usize,
        /// Columns of the array.
        columns: usize,
        /// Teachers of the config.
        teachers: usize,
        /// Pool images of the config.
        pool: usize,
    },
    /// The array has no row, or fewer than two columns.
    #[error("expected at least one row of at least two classes, found shape {rows} x {columns}")]
    Empty {
        /// Rows of the array.
        rows: usize,
        /// Columns of the array.
        columns: usize,
    },
    /// A label is no class.
    #[error("teacher {teacher}, image {image}: class {found}, expected 0 to {max}")]
    Class {
        /// The teacher.
        teacher: usize,
        /// The image.
        image: usize,
        /// The label.
        found: i64,
        /// The last class.
        max: usize,
    },
    /// Histograms have other classes than the images.
    #[error("histograms of {found} classes, the data has {expected}")]
    Classes {
        /// Classes of the histograms.
        found: usize,
        /// Classes of the images.
        expected: usize,
    },
    /// A count is no number of teachers.
    #[error("row {row}: a count is negative or too large")]
    Count {
        /// The row.
        row: usize,
    },
    /// A histogram does not hold one vote for each teacher.
    #[error("row {row} sums to {found}, expected ensemble.teachers = {teachers}")]
    Sum {
        /// The row.
        row: usize,
        /// Its sum.
        found: u64,
        /// Teachers of the config.
        teachers: usize,
    },
    /// The values make no votes.
    #[error(transparent)]
    Votes(#[from] VotesError),
    /// There are more or fewer indices than queries.
    #[error("shape {shape:?}, expected queries.count = {expected} indices")]
    IndexCount {
        /// The lengths of the array's axes.
        shape: Vec<usize>,
        /// Queries of the config.
        expected: usize,
    },
    /// The array of indices has more than one row.
    #[error("expected one row of indices, found shape {shape:?}")]
    IndexRows {
        /// The lengths of its axes.
        shape: Vec<usize>,
    },
    /// There are fewer true labels than images, or they are no row.
    #[error("expected one row of labels, data.pool_images = {pool} or more, found shape {shape:?}")]
    TrueLabels {
        /// The lengths of its axes.
        shape: Vec<usize>,
        /// Pool images of the config.
        pool: usize,
    },
    /// A true label is no class of any votes.
    #[error("entry {position}: label {found}, expected 0 to 255")]
    NoLabel {
        /// Its place.
        position: usize,
        /// The label.
        found: i64,
    },
    /// A true label is no class of the votes.
    #[error("entry {position}: label {found}, expected 0 to {max}")]
    TrueLabel {
        /// Its place.
        position: usize,
        /// The label.
        found: u8,
        /// The last class.
        max: usize,
    },
    /// An index is out of range.
    #[error("entry {position}: index {found}, expected 0 to {max}")]
    Index {
        /// Its place.
        position: usize,
        /// The index.
        found: i64,
        /// The last index.
        max: usize,
    },
    /// An index appears twice.
    #[error("entry {position}: index {index} appears twice")]
    IndexTwice {
        /// The second place.
        position: usize,
        /// The index.
        index: usize,
    },
    /// The accountant refuses the votes.
    #[error(transparent)]
    Account(#[from] AccountError),
}
