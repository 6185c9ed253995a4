//! The queries of a run with their answers, as far as anyone may see them.

use serde::{Deserialize, Serialize};

use crate::config::Config;

/// Bytes of the names of all rows at most.
const MAX_NAMES: usize = 20_000;

/// The queries of a run in the order in which they were asked, and the labels that rows gave them: those of every row in a simulation and where no
/// row has noise; where noise is real, those that a finite claim covers whatever the votes are, and no votes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AskedQueries {
    /// The image of each query in the pool.
    pub(crate) pool_images: Vec<usize>,
    /// True labels, where they are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) truth: Option<Vec<u8>>,
    /// Votes for each class, without noise; only where nothing protects them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) votes: Option<Vec<Vec<u32>>>,
    /// The rows with labels of their own.
    pub(crate) rows: Vec<RowAnswers>,
}

/// The labels of a row: of all queries or the first of them, none where a query got no answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RowAnswers {
    pub(crate) row: String,
    pub(crate) labels: Vec<Option<u8>>,
}

impl AskedQueries {
    /// Adds what `rows` answered, each with its place in the config and whether a finite claim covers it.
    pub(crate) fn with_answers<'a>(
        mut self,
        config: &Config,
        rows: impl Iterator<Item = (usize, bool, &'a [Option<u8>])>,
    ) -> Self {
        let own = rows.filter(|(row, ..)| config.labels_of(*row) == *row);
        let is_protected = config.protects_answers();
        let seen = own.filter(|(_, is_covered, _)| !is_protected || *is_covered);
        let answers =
            seen.map(|(row, _, labels)| RowAnswers { row: config.rows[row].name.clone(), labels: labels.to_vec() });
        self.rows.extend(answers);
        self
    }

    /// Returns whether all lists are as long as they should be: a file may be from anywhere.
    pub(crate) fn is_whole(&self) -> bool {
        let queries = self.pool_images.len();
        self.truth.as_ref().is_none_or(|truth| truth.len() == queries)
            && self.votes.as_ref().is_none_or(|votes| votes.len() == queries)
            && self.rows.iter().all(|row| row.labels.len() <= queries)
            // A name may stand at every query.
            && self.rows.iter().map(|row| row.row.len()).sum::<usize>() <= MAX_NAMES
            && self.rows.iter().all(|row| !row.row.chars().any(char::is_control))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_of_one_length() {
        let row = |labels: usize| RowAnswers { row: "a".into(), labels: vec![Some(1); labels] };
        let whole = AskedQueries {
            pool_images: vec![4, 2],
            truth: Some(vec![1, 0]),
            votes: Some(vec![vec![1], vec![1]]),
            rows: vec![row(2), row(1)],
        };
        assert!(whole.is_whole());
        assert!(!AskedQueries { truth: Some(vec![1]), ..whole.clone() }.is_whole());
        assert!(!AskedQueries { votes: Some(vec![]), ..whole.clone() }.is_whole());
        assert!(!AskedQueries { rows: vec![row(3)], ..whole }.is_whole());
    }
}
