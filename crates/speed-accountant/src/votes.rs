//! Vote counts after checks.

use crate::error::AccountError;
use crate::outcome::Gaps;

/// Rows of votes, all with the same number of classes and the same number of votes.
pub(crate) struct CheckedCounts<'a> {
    pub(crate) counts: &'a [Vec<u32>],
    /// The gaps of each row.
    pub(crate) gaps: Vec<Gaps>,
    pub(crate) classes: usize,
    pub(crate) teachers: u64,
}

impl<'a> CheckedCounts<'a> {
    /// Checks that there are rows, that each has votes, and that all have the same numbers of classes and votes.
    pub(crate) fn new(counts: &'a [Vec<u32>]) -> Result<Self, AccountError> {
        let first = counts.first().ok_or(AccountError::NoQueries)?;
        let votes = |row: &[u32]| row.iter().copied().map(u64::from).sum::<u64>();
        let (classes, teachers) = (first.len(), votes(first));
        let gaps: Result<Vec<Gaps>, AccountError> = counts
            .iter()
            .enumerate()
            .map(|(row, counts)| {
                if counts.len() != classes {
                    return Err(AccountError::classes(row, counts.len(), classes));
                }
                let found = votes(counts);
                if found != teachers {
                    return Err(AccountError::Invalid(format!(
                        "row {row} has {found} votes, but row 0 has {teachers}: every teacher votes once in every query"
                    )));
                }
                Gaps::from_counts(row, counts)
            })
            .collect();
        Ok(Self { counts, gaps: gaps?, classes, teachers })
    }

    /// Returns the number of rows.
    pub(crate) fn queries(&self) -> usize {
        self.counts.len()
    }

    /// Iterates over the rows.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (&Gaps, &[u32])> {
        self.gaps.iter().zip(self.counts.iter().map(Vec::as_slice))
    }
}
