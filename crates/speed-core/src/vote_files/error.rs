//! Errors of tables, with their locations.

use std::fmt;

use crate::npy::NpyError;
use crate::{TextError, class_list, printable};

/// Largest file that is read, in bytes.
pub const MAX_FILE: u64 = 256 << 20;

/// The location of an error. In an array: row and column from 0, as in NumPy. In a text: line and column from 1, as in
/// editors and spreadsheets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names describe the places")]
pub enum Location {
    Row(usize),
    /// An entry of an array: row and column.
    Entry(usize, usize),
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

/// A file that is not a table of integers, with the location, the expected and the found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TableError(pub(crate) String);

impl TableError {
    pub(crate) fn class_columns(classes: &[String]) -> Self {
        let expected = class_list(classes);
        Self(format!(
            "the round's classes have names ({expected}), so a table for several teachers is CSV with counts below these names in their order; or \
             give a folder with a file for each teacher"
        ))
    }

    pub(crate) fn no_column(expected: &str, found: &str) -> Self {
        Self(format!("expected a column {expected}, found {}", printable(found)))
    }

    pub(crate) fn no_key(line: usize, column: &str) -> Self {
        Self(format!("line {line}: the column {column} is empty"))
    }

    pub(crate) fn key_twice(line: usize, key: &str, first: usize) -> Self {
        Self(format!("line {line}: {:?} occurs on line {first} already", printable(key)))
    }

    pub(crate) fn empty() -> Self {
        Self("expected at least one row, found none".to_owned())
    }

    pub(crate) fn ragged(line: usize, expected: usize, found: usize) -> Self {
        Self(format!("line {line}: expected {expected} columns, found {found}"))
    }

    pub(crate) fn number(location: Location, found: &str) -> Self {
        Self(format!("{location}: expected an integer, found {}", shown(found)))
    }
}

impl From<NpyError> for TableError {
    fn from(error: NpyError) -> Self {
        Self(error.to_string())
    }
}

impl From<TextError> for TableError {
    fn from(error: TextError) -> Self {
        Self(format!("neither an .npy array nor CSV: {error}"))
    }
}

fn shown(found: &str) -> String {
    match found {
        "" => "nothing".to_owned(),
        found if found.chars().count() > 40 => {
            format!("{:?}...", printable(&found.chars().take(40).collect::<String>()))
        }
        found => format!("\"{}\"", printable(found)),
    }
}
