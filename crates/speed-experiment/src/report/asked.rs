//! The public part of a run's queries and answers.

use serde::{Deserialize, Serialize};

/// Maximum total length of the names of all rows, in bytes.
const MAX_NAMES: usize = 20_000;

/// The queries of a run in order, and the labels of rows. In a simulation, and if no row has noise, the labels of all
/// rows are included. If the noise is real, only labels with a finite data-independent claim are included, and votes
/// are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AskedQueries {
    /// The image of each query in the pool, or the typical image of its group.
    pub pool_images: Vec<usize>,
    /// The number of images of each query's group, if the queries are groups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_sizes: Option<Vec<usize>>,
    /// True labels, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truth: Option<Vec<u8>>,
    /// Votes for each class, without noise; only if nothing is protected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub votes: Option<Vec<Vec<u32>>>,
    /// The rows with their own labels.
    pub rows: Vec<RowAnswers>,
}

/// The labels of a row for its queries, which are the first of the run; `None` for a query without an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RowAnswers {
    /// The row.
    pub row: String,
    /// Its labels.
    pub labels: Vec<Option<u8>>,
}

impl AskedQueries {
    /// Returns whether all lists have a valid length, because the file is untrusted input.
    pub(crate) fn is_whole(&self) -> bool {
        let queries = self.pool_images.len();
        self.truth.as_ref().is_none_or(|truth| truth.len() == queries)
            && self.group_sizes.as_ref().is_none_or(|sizes| sizes.len() == queries)
            && self.votes.as_ref().is_none_or(|votes| votes.len() == queries)
            && self.rows.iter().all(|row| row.labels.len() <= queries)
            // A page may show a name at every query.
            && self.names().map(String::len).sum::<usize>() <= MAX_NAMES
            && self.names().all(|row| !row.chars().any(char::is_control))
    }

    fn names(&self) -> impl Iterator<Item = &String> {
        self.rows.iter().map(|row| &row.row)
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
            group_sizes: Some(vec![20, 30]),
            truth: Some(vec![1, 0]),
            votes: Some(vec![vec![1], vec![1]]),
            rows: vec![row(2), row(1)],
        };
        assert!(whole.is_whole());
        let rows = vec![RowAnswers { row: "a\u{1b}".into(), labels: Vec::new() }];
        assert!(!AskedQueries { rows, ..whole.clone() }.is_whole());
        assert!(!AskedQueries { truth: Some(vec![1]), ..whole.clone() }.is_whole());
        assert!(!AskedQueries { group_sizes: Some(vec![20]), ..whole.clone() }.is_whole());
        assert!(!AskedQueries { votes: Some(vec![]), ..whole.clone() }.is_whole());
        assert!(!AskedQueries { rows: vec![row(3)], ..whole }.is_whole());
    }
}
