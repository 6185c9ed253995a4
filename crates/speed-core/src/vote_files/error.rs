//! Errors of tables, with their locations.

use std::fmt;

use crate::npy::NpyError;
use crate::{TextError, printable};

/// Largest file that is read, in bytes.
pub const MAX_FILE: u64 = 256 << 20;

/// The location of an error. In an array: row and column from 0, as in NumPy. In a text: line and column from 1, as in
/// editors and spreadsheets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Location {
    /// A row of an array.
    Row(usize),
    /// An entry of an array: row and column.
    Entry(usize, usize),
    /// A line of a text.
    Line(usize),
    /// A cell of a text: line and column.
    Cell(usize, usize),
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Row(row) => write!(f, "row {row}"),
            Self::Entry(row, column) => write!(f, "row {row}, column {column}"),
            Self::Line(line) => write!(f, "line {line}"),
            Self::Cell(line, column) => write!(f, "line {line}, column {column}"),
        }
    }
}

/// A file that is not a table of integers.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// The file cannot be read.
    #[error("cannot read: {0}")]
    Unreadable(#[source] std::io::Error),
    /// The file is longer than allowed.
    #[error("longer than {} MiB, the limit of this program", MAX_FILE >> 20)]
    TooLong,
    /// A damaged or unsuitable array.
    #[error(transparent)]
    Array(#[from] NpyError),
    /// Votes without the names of the classes, in a round whose classes have names. They are not shown.
    #[error(
        "the round's classes have names ({expected}), so a table for several teachers is CSV with counts below these names in their order; or give a \
         folder with a file for each teacher"
    )]
    ClassColumns {
        /// The first names of classes.
        expected: String,
    },
    /// A column is missing.
    #[error("expected a column {expected}, found {}", printable(found))]
    NoColumn {
        /// The possible names of the column.
        expected: String,
        /// The names of the columns found.
        found: String,
    },
    /// Several columns of which one is needed.
    #[error("expected one column {expected}, found {}", printable(found))]
    SeveralColumns {
        /// The possible names of the column.
        expected: String,
        /// The names of the columns found.
        found: String,
    },
    /// A line without a key.
    #[error("line {line}: the column {column} is empty")]
    NoKey {
        /// The line, from 1.
        line: usize,
        /// The column of the keys.
        column: String,
    },
    /// A key that occurs twice.
    #[error("line {line}: {:?} occurs on line {first} already", printable(key))]
    KeyTwice {
        /// The line, from 1.
        line: usize,
        /// The key.
        key: String,
        /// The line of its first occurrence.
        first: usize,
    },
    /// A ZIP archive.
    #[error("a ZIP archive (.npz or .xlsx), expected .npy or CSV: save one array with numpy.save, or the sheet as CSV")]
    Archive,
    /// Neither an array nor text.
    #[error("neither an .npy array nor CSV: {0}")]
    Text(#[from] TextError),
    /// An array that does not have two dimensions.
    #[error("expected two dimensions, found shape {shape:?}")]
    Dimensions {
        /// The lengths of its axes.
        shape: Vec<usize>,
    },
    /// A table without rows or without columns.
    #[error("expected at least one row, found none")]
    Empty,
    /// A text with two different column separators.
    #[error(
        "line {line}: found {second:?} between columns, expected {first:?} as on earlier lines: quote names that contain a separator"
    )]
    Delimiters {
        /// The line.
        line: usize,
        /// The separator found first.
        first: char,
        /// The other separator.
        second: char,
    },
    /// A line without values that is followed by lines with values.
    #[error("line {line} has no values, but later lines have some: remove it")]
    EmptyLine {
        /// The line.
        line: usize,
    },
    /// A line whose number of columns differs from the first line.
    #[error("line {line}: expected {expected} columns, found {found}")]
    Ragged {
        /// The line.
        line: usize,
        /// Columns of the first line.
        expected: usize,
        /// Columns of this line.
        found: usize,
    },
    /// A cell that is not an integer.
    #[error("{location}: expected an integer, found {}", shown(found))]
    Number {
        /// The cell.
        location: Location,
        /// Its text.
        found: String,
    },
    /// A first line that may be column names.
    #[error(
        "line {line} counts from 0 to {last}, so it may be votes or column names: add a line of names above votes, or remove numbers that are names"
    )]
    Header {
        /// The line.
        line: usize,
        /// The last number.
        last: usize,
    },
    /// A first column that may be row names.
    #[error(
        "column 1 numbers the lines, so it may be votes or row names: add a line of column names above votes, or remove numbers that are names"
    )]
    Numbered,
}

/// Returns the beginning of a cell, escaped for printing.
fn shown(found: &str) -> String {
    match found {
        "" => "nothing".to_owned(),
        found if found.chars().count() > 40 => {
            format!("{:?}...", printable(&found.chars().take(40).collect::<String>()))
        }
        found => format!("\"{}\"", printable(found)),
    }
}
