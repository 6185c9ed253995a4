//! Faults of files of votes, queries and images.

use std::path::PathBuf;

use crate::report::CardFault;
use speed_accountant::AccountError;
use speed_core::npy::NpyError;
use speed_core::vote_files::{AnswerError, FormError, QueryListError, TableError};
use speed_core::{VotesError, class_list, printable, printable_path};
use speed_data::ImageShape;

/// The fault of a file of votes, queries or images: found and expected values.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InputFault {
    /// The file cannot be read, or is not a table of integers.
    #[error(transparent)]
    Table(Box<TableError>),
    /// The table is not votes.
    #[error(transparent)]
    Form(Box<FormError>),
    /// The table is not votes of the config's size.
    #[error("{source}; the config has ensemble.teachers = {teachers} and data.pool_images = {pool}")]
    Config {
        /// The fault.
        source: Box<FormError>,
        /// Teachers of the config.
        teachers: usize,
        /// Pool images of the config.
        pool: usize,
    },
    /// The array does not have two dimensions.
    #[error("expected two dimensions{expected}, found shape {shape:?}")]
    Dimensions {
        /// The meaning of the two dimensions, if only one is possible.
        expected: &'static str,
        /// The lengths of its axes.
        shape: Vec<usize>,
    },
    /// Saved labels have another shape.
    #[error("expected shape {teachers} x {pool}, found {shape:?}")]
    SavedShape {
        /// The lengths of the array's axes.
        shape: Vec<usize>,
        /// Teachers of the votes.
        teachers: usize,
        /// Pool images of the votes.
        pool: usize,
    },
    /// A saved label is not a class.
    #[error("entry {position}: class {found}, expected 0 to {max}")]
    SavedClass {
        /// Its position.
        position: usize,
        /// The label.
        found: i64,
        /// The last class.
        max: usize,
    },
    /// The values are not valid votes.
    #[error(transparent)]
    Votes(#[from] VotesError),
    /// The number of indices differs from the number of queries.
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
    /// There are fewer true labels than images, or they are not in one row.
    #[error("expected one row of labels, data.pool_images = {pool} or more, found shape {shape:?}")]
    TrueLabels {
        /// The lengths of its axes.
        shape: Vec<usize>,
        /// Pool images of the config.
        pool: usize,
    },
    /// A true label is outside 0 to 255.
    #[error("entry {position}: label {found}, expected 0 to 255")]
    NoLabel {
        /// Its position.
        position: usize,
        /// The label.
        found: i64,
    },
    /// A true label is not a class of the votes.
    #[error("entry {position}: label {found}, expected 0 to {max}")]
    TrueLabel {
        /// Its position.
        position: usize,
        /// The label.
        found: u8,
        /// The last class.
        max: usize,
    },
    /// An index is out of range.
    #[error("entry {position}: index {found}, expected 0 to {max}")]
    Index {
        /// Its position.
        position: usize,
        /// The index.
        found: i64,
        /// The last index.
        max: usize,
    },
    /// An index appears twice.
    #[error("entry {position}: index {index} appears twice")]
    IndexTwice {
        /// The second position.
        position: usize,
        /// The index.
        index: usize,
    },
    /// The file cannot be read.
    #[error("cannot read the images: {0}")]
    Unreadable(#[source] std::io::Error),
    /// The file is not an array of images.
    #[error(transparent)]
    Array(#[from] NpyError),
    /// The array's axes are not those of images.
    #[error(
        "expected images x height x width, images x channels x height x width or images x height x width x channels, with 1 \
         or 3 channels and at least one image; found shape {shape:?}"
    )]
    ImageAxes {
        /// The lengths of its axes.
        shape: Vec<usize>,
    },
    /// Labels of a round whose list of queries was not given.
    #[error("expected --query-list with the list of the round, because the round's file has its SHA-256")]
    NoQueryList,
    /// Another list of queries than that of the round.
    #[error("expected the list of queries of the round, with SHA-256 {expected}, found {found}")]
    OtherQueryList {
        /// The digest in the round's file, in hexadecimal digits.
        expected: String,
        /// The digest of the list.
        found: String,
    },
    /// A table that may be of one teacher or of many.
    #[error(
        "expected votes of one form, found a table of {queries} x {queries}, which may be queries x classes of one teacher or \
         teachers x queries: give one file for each teacher, as CSV"
    )]
    TwoForms {
        /// Number of queries, of classes and of rows.
        queries: usize,
    },
    /// A card that was changed, or describes other files.
    #[error(transparent)]
    Card(#[from] Box<CardFault>),
    /// A card that names a file elsewhere, or none.
    #[error("expected different names of files in the card's folder, found {}", printable(found))]
    CardFile {
        /// The name.
        found: String,
    },
    /// The Markdown form of a card says something else than its JSON form.
    #[error("expected the text of the card in JSON beside it, found another text: it was changed")]
    CardText,
    /// A run's card outside of its run.
    #[error("expected the card in its run's folder (RUN/models/ROW/model-card.json): give the run with --run")]
    NoRunOfCard,
    /// A config without the row of a card.
    #[error("expected a row called {}, found none", printable(row))]
    NoRow {
        /// The row's name.
        row: String,
    },
    /// A model of another origin than its card.
    #[error("the model is of another run, row, student or round than its card")]
    OtherModel,
    /// Three axes that may be those of one image with channels.
    #[error(
        "expected images x height x width, found shape {shape:?}, which may be one image with channels: save images x \
         channels x height x width"
    )]
    OneImage {
        /// The lengths of its axes.
        shape: Vec<usize>,
    },
    /// Two axes could be the channels.
    #[error(
        "expected exactly one axis that can be the channels, found shape {shape:?}: for a model of {expected} images, save \
         images x channels x height x width"
    )]
    ImageChannels {
        /// The lengths of the axes.
        shape: Vec<usize>,
        /// The shape of the model's images.
        expected: ImageShape,
    },
    /// A floating-point value outside 0 to 1.
    #[error("image {image}: expected floating-point values of 0 to 1, found {found}: divide values of 0 to 255 by 255")]
    PixelRange {
        /// Its position in the array.
        image: usize,
        /// The value.
        found: f32,
    },
    /// An image of the array is refused.
    #[error("image {image}: {problem}")]
    Image {
        /// Its position in the array.
        image: usize,
        /// The fault.
        problem: String,
    },
    /// The text cannot be read.
    #[error("cannot read: {0}")]
    UnreadableText(#[source] std::io::Error),
    /// The file is not the votes of a teacher.
    #[error(transparent)]
    Answer(Box<AnswerError>),
    /// The file is not a list of queries.
    #[error(transparent)]
    QueryList(Box<QueryListError>),
    /// A file's name without the separator of its group.
    #[error("expected a name that begins with its group and {separator:?}, found none: rename it, or give --groups")]
    NoPrefix {
        /// The separator.
        separator: String,
    },
    /// An image without a group.
    #[error(
        "expected a group of the image {:?}, found none (columns file and group; CLASS/FILE if names repeat)",
        printable(file)
    )]
    NoGroup {
        /// The image.
        file: String,
    },
    /// A part without training images.
    #[error(
        "teacher {part} of {parts} has no image to train on: {groups} groups of images are divided by a keyed hash of their names; \
         use fewer --parts, a smaller --validation, or smaller groups"
    )]
    EmptyPart {
        /// The part.
        part: usize,
        /// Number of parts.
        parts: usize,
        /// Number of groups, or of different images without groups.
        groups: usize,
    },
    /// An invalid division key.
    #[error("expected the key of a division among teachers, 64 hexadecimal digits")]
    DivisionKey,
    /// A secret that others may read.
    #[error("expected a file that only its owner may read (mode 600), found mode {found:o}")]
    Exposed {
        /// The mode found.
        found: u32,
    },
    /// More queries than images, or none.
    #[error("expected 1 to {images} queries of {images} images, found {found}")]
    QueryCount {
        /// Number of images.
        images: usize,
        /// Number of queries.
        found: usize,
    },
    /// Fewer clusters than queries.
    #[error("expected {expected} different clusters of images, found {found}: reduce --count")]
    FewClusters {
        /// Number of queries.
        expected: usize,
        /// Number of clusters.
        found: usize,
    },
    /// A list of queries that is too long to be read.
    #[error("expected queries whose list has at most {max} bytes, found {found}: reduce --count")]
    LongList {
        /// The length of the list in bytes.
        found: usize,
        /// The longest list in bytes.
        max: u64,
    },
    /// Names that are not the same after they are written as a list of queries and read again.
    #[error(
        "expected names that a list of queries can hold (UTF-8, no space at an end, no ; or tab), found {:?}",
        printable(name)
    )]
    ListedName {
        /// The first such name.
        name: String,
    },
    /// A label of a name that is not a query.
    #[error("line {line}: expected the name of a query of {}, found {:?}", printable_path(list), printable(found))]
    NoQueryName {
        /// The line, from 1.
        line: usize,
        /// The cell.
        found: String,
        /// The list of queries.
        list: PathBuf,
    },
    /// A query that is not an image.
    #[error("expected names of images in {}, found {:?}", printable_path(folder), printable(name))]
    UnknownQuery {
        /// The name.
        name: String,
        /// The directory of the images.
        folder: PathBuf,
    },
    /// One file for the votes of several models.
    #[error("expected .npy, or a folder for one CSV file per model, for the votes of {models} models")]
    SeveralModels {
        /// Number of models.
        models: usize,
    },
    /// Models with different classes.
    #[error(
        "expected a model of the classes {}, found {}: train all models with the same --classes",
        class_list(expected),
        class_list(found)
    )]
    ModelClasses {
        /// The classes of the first model.
        expected: Vec<String>,
        /// The classes of this model.
        found: Vec<String>,
    },
    /// A directory without models.
    #[error("expected model files (*.{extension}) in the folder, found none")]
    NoModels {
        /// The end of their names.
        extension: &'static str,
    },
    /// Classes other than the round's.
    #[error(
        "expected the round's classes {} in this order, found {}{}",
        class_list(expected),
        class_list(found),
        first_difference(expected, found)
    )]
    RoundClasses {
        /// The names of the round's classes.
        expected: Vec<String>,
        /// The names found.
        found: Vec<String>,
    },
    /// A number of labels other than the round's queries.
    #[error("expected a line for each of the round's {expected} queries, found {found}")]
    LabelCount {
        /// Queries of the round.
        expected: usize,
        /// Lines found.
        found: usize,
    },
    /// A number that is not a query's.
    #[error("line {line}: expected a query from 0 to {}, found {:?}", queries - 1, printable(found))]
    NoQuery {
        /// The line, from 1.
        line: usize,
        /// The cell.
        found: String,
        /// Number of queries, or of images in the pool.
        queries: usize,
    },
    /// Folders whose names are not names of classes.
    #[error("its folders cannot be classes: {}", printable(reason))]
    FolderNames {
        /// The reason.
        reason: String,
    },
    /// A label of a line that is not the name of a class.
    #[error("line {line}: expected {expected}, found {:?}", printable(found))]
    ClassName {
        /// The line, from 1.
        line: usize,
        /// The cell.
        found: String,
        /// What was expected, with the names of the classes.
        expected: String,
    },
    /// Labels without an answer.
    #[error("expected at least one query with a label, found {queries} without an answer")]
    NoAnswers {
        /// Number of queries.
        queries: usize,
    },
    /// The accountant refuses the votes.
    #[error(transparent)]
    Account(#[from] AccountError),
}

impl From<TableError> for InputFault {
    fn from(fault: TableError) -> Self {
        Self::Table(Box::new(fault))
    }
}

impl From<QueryListError> for InputFault {
    fn from(fault: QueryListError) -> Self {
        Self::QueryList(Box::new(fault))
    }
}

impl From<FormError> for InputFault {
    fn from(fault: FormError) -> Self {
        Self::Form(Box::new(fault))
    }
}

/// Returns the first number whose class differs, if the lists show no difference.
fn first_difference(expected: &[String], found: &[String]) -> String {
    match expected.iter().zip(found).position(|(one, other)| one != other) {
        Some(number) => format!("; class {number} is {:?} in the round and {:?} here", expected[number], found[number]),
        None => String::new(),
    }
}
