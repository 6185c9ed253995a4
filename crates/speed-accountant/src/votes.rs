//! Vote counts after checks.

use crate::error::AccountError;
use crate::outcome::Gaps;

/// Rows of votes of the same teachers, all with the same number of classes. The votes that a row lacks are empty.
pub(crate) struct CheckedCounts<'a> {
    pub(crate) counts: &'a [Vec<u32>],
    /// The gaps of each row.
    pub(crate) gaps: Vec<Gaps>,
    pub(crate) classes: usize,
    pub(crate) teachers: u64,
}

impl<'a> CheckedCounts<'a> {
    /// Checks that there are rows, that all have the same number of classes, and that none has more votes than there are
    /// teachers. Without a number of teachers no vote is empty, so all rows have the same number of votes, which is not 0.
    pub(crate) fn new(counts: &'a [Vec<u32>], teachers: Option<u64>) -> Result<Self, AccountError> {
        let first = counts.first().ok_or(AccountError::NoQueries)?;
        let classes = first.len();
        let expected = teachers.unwrap_or_else(|| votes(first));
        let gaps: Result<Vec<Gaps>, AccountError> = counts
            .iter()
            .enumerate()
            .map(|(row, counts)| {
                if counts.len() != classes {
                    return Err(AccountError::classes(row, counts.len(), classes));
                }
                let found = votes(counts);
                match teachers {
                    Some(teachers) if found > teachers => Err(AccountError::Invalid(format!(
                        "row {row} has {found} votes, but there are {teachers} teachers, who vote at most once in every query"
                    ))),
                    None if found != expected => Err(AccountError::Invalid(format!(
                        "row {row} has {found} votes, but row 0 has {expected}: every teacher votes once in every query"
                    ))),
                    _ => Gaps::from_counts(row, counts),
                }
            })
            .collect();
        let gaps = gaps?;
        match (expected, teachers) {
            (0, None) => Err(AccountError::no_votes(0)),
            (0, Some(_)) => Err(AccountError::Invalid("there are 0 teachers, expected at least 1".to_owned())),
            _ => Ok(Self { counts, gaps, classes, teachers: expected }),
        }
    }

    /// Returns the number of rows.
    pub(crate) fn queries(&self) -> usize {
        self.counts.len()
    }

    /// Returns whether a row has an empty vote.
    pub(crate) fn has_empty_vote(&self, counts: &[u32]) -> bool {
        votes(counts) < self.teachers
    }

    /// Iterates over the rows.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (&Gaps, &[u32])> {
        self.gaps.iter().zip(self.counts.iter().map(Vec::as_slice))
    }
}

fn votes(row: &[u32]) -> u64 {
    row.iter().copied().map(u64::from).sum()
}
