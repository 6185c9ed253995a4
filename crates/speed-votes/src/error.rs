//! Faults of tables, with their places.

use std::fmt;

use speed_core::{TextError, printable};
use speed_npy::NpyError;

use crate::table::MAX_FILE;

/// The place of a fault: in an array the row and the column from 0, as NumPy counts; in a text the line and the column from 1, as
/// editors and spreadsheets count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A row of an array.
    Row(usize),
    /// An entry of an array: row and column.
    Entry(usize, usize),
    /// A line of a text.
    Line(usize),
    /// A cell of a text: line and column.
    Cell(usize, usize),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Row(row) => write!(f, "row {row}"),
            Self::Entry(row, column) => write!(f, "row {row}, column {column}"),
            Self::Line(line) => write!(f, "line {line}"),
            Self::Cell(line, column) => write!(f, "line {line}, column {column}"),
        }
    }
}

/// A file that is not a table of whole numbers.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// The file cannot be read.
    #[error("cannot read: {0}")]
    Unreadable(#[source] std::io::Error),
    /// The file is longer than allowed.
    #[error("more than {} MiB, the most that is read", MAX_FILE >> 20)]
    TooLong,
    /// A damaged array, or an array of something else.
    #[error(transparent)]
    Array(#[from] NpyError),
    /// A ZIP archive.
    #[error("a ZIP archive (.npz or .xlsx), expected .npy or CSV: save one array with numpy.save, or the sheet as CSV")]
    Archive,
    /// Neither an array nor text.
    #[error("neither an .npy array nor CSV: {0}")]
    Text(#[from] TextError),
    /// An array of other than two dimensions.
    #[error("expected two dimensions, found shape {shape:?}")]
    Dimensions {
        /// The lengths of its axes.
        shape: Vec<usize>,
    },
    /// No row, or no column.
    #[error("expected at least one row, found none")]
    Empty,
    /// A text that separates columns in two ways.
    #[error(
        "line {line}: found {second:?} between columns, expected {first:?} as on the lines before; names that have one need quotes"
    )]
    Delimiters {
        /// The line.
        line: usize,
        /// The separator found first.
        first: char,
        /// The other one.
        second: char,
    },
    /// A line without a value before others.
    #[error("line {line} has no value, but lines behind it have")]
    EmptyLine {
        /// The line.
        line: usize,
    },
    /// A line that has not as many columns as the first.
    #[error("line {line}: expected {expected} columns, found {found}")]
    Ragged {
        /// The line.
        line: usize,
        /// Columns of the first line.
        expected: usize,
        /// Columns of this one.
        found: usize,
    },
    /// A cell that is not a whole number.
    #[error("{place}: expected a whole number, found {}", shown(found))]
    Number {
        /// The cell.
        place: Place,
        /// Its text.
        found: String,
    },
    /// A first line that may be names of columns.
    #[error(
        "line {line} counts from 0 to {last}: votes, or the names of the columns? Put a line of names above votes, or remove numbers that are names"
    )]
    Header {
        /// The line.
        line: usize,
        /// The last number.
        last: usize,
    },
    /// A first column that may be names of rows.
    #[error(
        "column 1 numbers the lines: votes, or the names of the rows? Put a line of column names above votes, or remove numbers that are names"
    )]
    Numbered,
}

/// Returns the beginning of a cell as it may be printed.
fn shown(found: &str) -> String {
    match found {
        "" => "nothing".to_owned(),
        found if found.chars().count() > 40 => {
            format!("{:?}...", printable(&found.chars().take(40).collect::<String>()))
        }
        found => format!("\"{}\"", printable(found)),
    }
}
