//! Votes as the gaps between the winner and the others.

use crate::error::AccountError;

/// Gaps between the winner's votes and every other class's, in increasing order, and the winner's votes. A bound of `q`
/// depends on nothing else.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Gaps {
    pub(crate) gaps: Vec<i64>,
    pub(crate) winner: i64,
}

impl Gaps {
    /// Returns the gaps of one row of votes; `row` is for the error message.
    pub(crate) fn from_counts(row: usize, counts: &[u32]) -> Result<Self, AccountError> {
        if counts.len() < 2 {
            return Err(AccountError::TooFewClasses { row, found: counts.len() });
        }
        let most = counts.iter().copied().max().unwrap_or(0);
        let mut gaps: Vec<i64> = counts.iter().map(|&count| i64::from(most) - i64::from(count)).collect();
        gaps.sort_unstable();
        // The smallest gap is the winner's own.
        gaps.remove(0);
        Ok(Self { gaps, winner: i64::from(most) })
    }

    pub(crate) fn classes(&self) -> usize {
        self.gaps.len() + 1
    }

    /// Returns the gaps at every neighbour that can be worst for the winner: the winner loses a vote, and one other
    /// class gains it.
    ///
    /// The probability that the winner wins falls if its own votes fall and if the votes of the others rise. So no
    /// other neighbour has a larger `q`, even if a vote is emptied or filled.
    pub(crate) fn worst_neighbours(&self) -> impl Iterator<Item = Self> + '_ {
        (0..self.gaps.len()).filter(|&i| i == 0 || self.gaps[i] != self.gaps[i - 1]).map(|gains| {
            let mut gaps: Vec<i64> = self.gaps.iter().map(|gap| gap - 1).collect();
            gaps[gains] -= 1;
            gaps.sort_unstable();
            Self { gaps, winner: self.winner - 1 }
        })
    }
}
