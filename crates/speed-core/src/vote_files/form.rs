//! The form of a table of votes: labels or histograms.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::VoteShape;
use crate::vote_files::table::Table;

/// Largest number of outcomes of a round. If the number of classes is unknown, a larger entry is not read as a label.
const ROUND_CLASSES: i64 = 128;

/// The form of a table of votes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VotesForm {
    /// Teachers x queries: each entry is a class, or -1 for an empty vote.
    Labels,
    /// Queries x classes: each entry is the number of teachers that vote for the class, and each row sums to the number
    /// of teachers, less those whose votes are empty.
    Histograms,
}

impl VotesForm {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Labels => "labels",
            Self::Histograms => "histograms",
        }
    }
}

impl fmt::Display for VotesForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for VotesForm {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = [Self::Labels, Self::Histograms].into_iter().find(|form| form.name() == text);
        form.ok_or_else(|| format!("expected labels or histograms, found {text:?}"))
    }
}

/// Facts about votes that are known from elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// The number of teachers.
    pub teachers: Option<usize>,
    /// The number of queries to use, from the start of the file, which may have more.
    pub queries: Option<usize>,
    /// The number of classes.
    pub classes: Option<usize>,
}

/// A table that is not votes of the given or required form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormError {
    /// Both forms are possible.
    #[error("{0}")]
    Undecided(String),
    /// Labels whose number of classes is unknown.
    #[error("the number of classes is unknown: labels do not show classes without a vote")]
    ClassesUnknown,
    /// An invalid number of classes.
    #[error("{found} classes, expected 2 to {max}")]
    #[expect(missing_docs, reason = "the message describes the fields")]
    Classes { found: usize, max: usize },
    /// Histograms with different sums, of an unknown number of teachers.
    #[error("{0}")]
    TeachersUnknown(String),
    /// Sizes or values that do not fit, with the location, the expected and the found.
    #[error("{0}")]
    Invalid(String),
}

fn expected(known: &Known) -> String {
    let side = |side: &str, number: Option<usize>| number.map(|number| format!("{number} {side}"));
    let sides = [side("teachers", known.teachers), side("queries", known.queries), side("classes", known.classes)];
    format!("expected {}, found ", sides.into_iter().flatten().collect::<Vec<_>>().join(", "))
}

/// Decides the form of a table if only one is possible. Sums alone never make a table labels, because rows with
/// different sums may be damaged histograms.
pub(crate) fn decide(table: &Table, known: &Known) -> Result<VotesForm, FormError> {
    let (rows, columns) = (table.rows, table.columns);
    let is_labels = known.teachers.is_none_or(|teachers| teachers == rows)
        && known.queries.is_none_or(|queries| queries <= columns)
        && rows <= VoteShape::MAX_TEACHERS;
    let is_histograms = (2..=VoteShape::MAX_CLASSES).contains(&columns)
        && known.classes.is_none_or(|classes| classes == columns)
        && known.queries.is_none_or(|queries| queries <= rows);
    let readings =
        format!("as labels: {rows} teachers, {columns} queries; as histograms: {rows} queries, {columns} classes");
    match (is_labels, is_histograms) {
        (true, false) => Ok(VotesForm::Labels),
        (false, true) => Ok(VotesForm::Histograms),
        (false, false) => Err(FormError::Invalid(format!("{}{readings}", expected(known)))),
        // Counts are not negative, but a blank cell may be a missing count.
        (true, true) if table.has_written_empty => Ok(VotesForm::Labels),
        (true, true) if table.values.iter().any(|&value| value >= labels_below(table, known)) => {
            Ok(VotesForm::Histograms)
        }
        (true, true) => Err(FormError::Undecided(readings)),
    }
}

/// Returns an exclusive upper bound on the labels of a table that may be labels.
fn labels_below(table: &Table, known: &Known) -> i64 {
    // Identical rows may be unanimous teachers with more classes than a round has; their sums would be equal too.
    let is_unanimous = || table.values.chunks_exact(table.columns).all(|row| row == table.row(0));
    match known.classes {
        Some(classes) => i64::try_from(classes).unwrap_or(i64::MAX),
        None if is_unanimous() => VoteShape::MAX_CLASSES as i64,
        None => ROUND_CLASSES,
    }
}
