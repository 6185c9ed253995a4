//! Vote counts after checks.

use crate::error::AccountError;
use crate::outcome::Gaps;

/// Rows of votes of the same teachers, all with the same number of classes. The votes that a row lacks are empty.
pub(crate) struct CheckedCounts<'a> {
    pub(crate) counts: &'a [Vec<u32>],
    pub(crate) gaps: Vec<Gaps>,
    pub(crate) classes: usize,
    pub(crate) teachers: u64,
}

impl<'a> CheckedCounts<'a> {
    /// Checks that there are rows and teachers, that all rows have the same number of classes, and that none has more votes
    /// than there are teachers.
    pub(crate) fn new(counts: &'a [Vec<u32>], teachers: usize) -> Result<Self, AccountError> {
        let first = counts.first().ok_or(AccountError::NoQueries)?;
        let classes = first.len();
        if teachers == 0 {
            return Err(AccountError::Invalid("there are 0 teachers, expected at least 1".to_owned()));
        }
        let teachers = teachers as u64;
        let gaps: Result<Vec<Gaps>, AccountError> = counts
            .iter()
            .enumerate()
            .map(|(row, counts)| {
                if counts.len() != classes {
                    return Err(AccountError::classes(row, counts.len(), classes));
                }
                let found = votes(counts);
                if found > teachers {
                    return Err(AccountError::too_many_votes(row, found, teachers as usize));
                }
                Gaps::from_counts(row, counts)
            })
            .collect();
        Ok(Self { counts, gaps: gaps?, classes, teachers })
    }

    pub(crate) fn queries(&self) -> usize {
        self.counts.len()
    }

    pub(crate) fn has_empty_vote(&self, counts: &[u32]) -> bool {
        votes(counts) < self.teachers
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = (&Gaps, &[u32])> {
        self.gaps.iter().zip(self.counts.iter().map(Vec::as_slice))
    }
}

fn votes(row: &[u32]) -> u64 {
    row.iter().copied().map(u64::from).sum()
}
