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
    /// The second questions of these rows, if there was a second round.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub again: Vec<AskedAgain>,
}

/// The second questions of a row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AskedAgain {
    /// The row.
    pub row: String,
    /// Its questions in order.
    pub questions: Vec<SecondQuestion>,
}

/// A second question: about images of one query's cluster that the first student gives another class than the cluster's label.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecondQuestion {
    /// The image of the pool that is nearest to the group's centre.
    pub pool_image: usize,
    /// Number of images of the group.
    pub group_size: usize,
    /// The position of the query whose cluster has these images.
    pub query: usize,
    /// The label of that cluster, or the belief that replaced it.
    pub first_label: u8,
    /// The class that the first student gives.
    pub predicted: u8,
    /// The answer; `None` for no answer.
    pub label: Option<u8>,
    /// The most frequent true label of the group, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truth: Option<u8>,
    /// Votes for each class, without noise; only if nothing is protected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub votes: Option<Vec<u32>>,
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
    /// Returns the image of every query and of every second question in the pool, in the order of the sheet of pictures.
    #[must_use]
    pub fn pictured(&self) -> Vec<usize> {
        let again = self.again.iter().flat_map(|row| &row.questions).map(|question| question.pool_image);
        self.pool_images.iter().copied().chain(again).collect()
    }

    /// Returns whether all lists have a valid length, because the file is untrusted input.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        let queries = self.pool_images.len();
        self.truth.as_ref().is_none_or(|truth| truth.len() == queries)
            && self.group_sizes.as_ref().is_none_or(|sizes| sizes.len() == queries)
            && self.votes.as_ref().is_none_or(|votes| votes.len() == queries)
            && self.rows.iter().all(|row| row.labels.len() <= queries)
            && self.again.iter().flat_map(|row| &row.questions).all(|question| question.query < queries)
            // A page may show a name at every query.
            && self.names().map(String::len).sum::<usize>() <= MAX_NAMES
            && self.names().all(|row| !row.chars().any(char::is_control))
    }

    fn names(&self) -> impl Iterator<Item = &String> {
        self.rows.iter().map(|row| &row.row).chain(self.again.iter().map(|row| &row.row))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_of_one_length() {
        let row = |labels: usize| RowAnswers { row: "a".into(), labels: vec![Some(1); labels] };
        let again = |query, row: &str| AskedAgain {
            row: row.into(),
            questions: vec![SecondQuestion {
                pool_image: 7,
                group_size: 20,
                query,
                first_label: 1,
                predicted: 2,
                label: None,
                truth: None,
                votes: None,
            }],
        };
        let whole = AskedQueries {
            pool_images: vec![4, 2],
            group_sizes: Some(vec![20, 30]),
            truth: Some(vec![1, 0]),
            votes: Some(vec![vec![1], vec![1]]),
            rows: vec![row(2), row(1)],
            again: vec![again(1, "a")],
        };
        assert!(whole.is_whole());
        assert_eq!(whole.pictured(), [4, 2, 7]);
        assert!(!AskedQueries { again: vec![again(2, "a")], ..whole.clone() }.is_whole());
        assert!(!AskedQueries { again: vec![again(1, "a\u{1b}")], ..whole.clone() }.is_whole());
        assert!(!AskedQueries { truth: Some(vec![1]), ..whole.clone() }.is_whole());
        assert!(!AskedQueries { group_sizes: Some(vec![20]), ..whole.clone() }.is_whole());
        assert!(!AskedQueries { votes: Some(vec![]), ..whole.clone() }.is_whole());
        assert!(!AskedQueries { rows: vec![row(3)], ..whole }.is_whole());
    }
}
