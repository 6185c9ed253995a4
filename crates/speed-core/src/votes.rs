//! One label per teacher and query.

use crate::counts::{check_labels, most_voted};
use crate::{VoteCounts, VoteShape, VotesError};

/// The labels that n teachers give to Q queries, each below the number of classes K.
#[derive(Clone, PartialEq, Eq)]
pub struct Votes {
    shape: VoteShape,
    labels: Vec<u8>,
}

impl Votes {
    /// Checks and takes a matrix: `labels` holds the Q labels of teacher 0, then the Q labels of teacher 1, ...
    ///
    /// # Errors
    /// Unless there are `n * Q` labels, and for the first label that is not
    /// below K.
    pub fn new(shape: VoteShape, labels: Vec<u8>) -> Result<Self, VotesError> {
        let (queries, classes) = (shape.queries(), shape.classes());
        if labels.len() != shape.labels() {
            return Err(VotesError::length(shape.labels(), labels.len()));
        }
        if let Some(i) = labels.iter().position(|&label| usize::from(label) >= classes) {
            let (teacher, query, found) = (i / queries, i % queries, labels[i]);
            return Err(VotesError(format!(
                "teacher {teacher} votes for class {found} on query {query}, but there are {classes} classes"
            )));
        }
        Ok(Self { shape, labels })
    }

    /// Creates votes with the histograms `counts`: on every query the first teachers vote for class 0, the next for
    /// class 1, and so on. The assignment to teachers is invented, because published histograms do not contain it; the
    /// sums are as given.
    #[must_use]
    pub(crate) fn from_counts(counts: &VoteCounts) -> Self {
        let shape = counts.shape();
        let queries = shape.queries();
        let mut labels = vec![0; shape.labels()];
        for query in 0..queries {
            let mut teacher = 0;
            for (class, &count) in counts.query(query).iter().enumerate() {
                for _ in 0..count {
                    labels[teacher * queries + query] = class as u8;
                    teacher += 1;
                }
            }
        }
        Self { shape, labels }
    }

    /// Returns the numbers of teachers, queries and classes.
    #[must_use]
    pub fn shape(&self) -> VoteShape {
        self.shape
    }

    /// Returns all labels, teacher after teacher: `n * Q` values.
    #[must_use]
    pub fn labels(&self) -> &[u8] {
        &self.labels
    }

    /// Returns the labels that one teacher gives to the queries, in their order.
    ///
    /// # Panics
    /// If the teacher does not exist, as for a slice.
    #[must_use]
    pub fn teacher(&self, teacher: usize) -> &[u8] {
        let queries = self.shape.queries();
        &self.labels[teacher * queries..(teacher + 1) * queries]
    }

    /// Returns the label that one teacher gives to one query.
    ///
    /// # Panics
    /// If the teacher or query does not exist, as for a slice.
    #[must_use]
    pub(crate) fn label(&self, teacher: usize, query: usize) -> u8 {
        self.teacher(teacher)[query]
    }

    /// Counts the votes for each of the K classes on one query.
    ///
    /// # Panics
    /// If the query does not exist, as for a slice.
    #[must_use]
    pub fn counts(&self, query: usize) -> Vec<u32> {
        let mut counts = vec![0; self.shape.classes()];
        for teacher in 0..self.shape.teachers() {
            counts[usize::from(self.label(teacher, query))] += 1;
        }
        counts
    }

    /// Counts the votes for each class on every query.
    #[must_use]
    pub fn all_counts(&self) -> VoteCounts {
        let counts = (0..self.shape.queries()).flat_map(|query| self.counts(query)).collect();
        VoteCounts::from_votes(self.shape, counts)
    }

    /// Returns the class with most votes on one query; in a tie, the lowest.
    ///
    /// # Panics
    /// If the query does not exist, as for a slice.
    #[must_use]
    pub fn plurality(&self, query: usize) -> u8 {
        most_voted(&self.counts(query))
    }

    /// Returns the share of queries whose plurality is the true label.
    ///
    /// # Errors
    /// Unless there is one true label for each query.
    pub fn plurality_accuracy(&self, truth: &[u8]) -> Result<f64, VotesError> {
        self.all_counts().plurality_accuracy(truth)
    }

    /// Returns the mean over the teachers of the share of queries that they label correctly.
    ///
    /// # Errors
    /// Unless there is one true label for each query.
    pub fn mean_accuracy(&self, truth: &[u8]) -> Result<f64, VotesError> {
        check_labels(self.shape.queries(), truth)?;
        let right = self.labels.iter().zip(truth.iter().cycle()).filter(|(vote, label)| vote == label).count();
        Ok(right as f64 / self.labels.len() as f64)
    }
}

/// Votes are the teachers' private labels until noise is added: `Debug` shows sizes only.
impl std::fmt::Debug for Votes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Votes({}, ..)", self.shape)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(teachers: usize, queries: usize, classes: usize) -> VoteShape {
        VoteShape::new(teachers, queries, classes).expect("a shape")
    }

    /// Three teachers, four queries, three classes.
    fn votes() -> Votes {
        Votes::new(shape(3, 4, 3), vec![0, 1, 2, 2, 0, 2, 2, 1, 1, 0, 2, 1]).expect("valid votes")
    }

    #[test]
    fn votes_are_counted() {
        let votes = votes();
        assert_eq!(votes.shape(), shape(3, 4, 3));
        assert_eq!(votes.teacher(1), [0, 2, 2, 1]);
        assert_eq!(votes.label(2, 0), 1);
        assert_eq!(votes.counts(0), [2, 1, 0]);
        assert_eq!(votes.counts(3), [0, 2, 1]);
        // Query 1 is a tie of all three, so the lowest wins.
        assert_eq!([0, 1, 2, 3].map(|q| votes.plurality(q)), [0, 0, 2, 1]);
        assert_eq!(votes.plurality_accuracy(&[0, 1, 2, 0]), Ok(0.5));
        assert_eq!(votes.mean_accuracy(&[0, 1, 2, 2]), Ok((4 + 2 + 1) as f64 / 12.0));
        let refused = |accuracy: Result<f64, VotesError>| accuracy.expect_err("refused").to_string();
        assert_eq!(refused(votes.plurality_accuracy(&[0; 3])), "3 labels for 4 queries");
        assert_eq!(refused(votes.mean_accuracy(&[0; 5])), "5 labels for 4 queries");
    }

    #[test]
    fn invalid_matrices_of_votes_are_refused() {
        let refused = |labels| Votes::new(shape(2, 2, 3), labels).expect_err("refused").to_string();
        assert_eq!(refused(vec![0; 3]), "expected 4 values, found 3");
        assert_eq!(refused(vec![0, 1, 3, 2]), "teacher 1 votes for class 3 on query 0, but there are 3 classes");
        assert!(Votes::new(shape(1, 1, 256), vec![255]).is_ok());
    }

    #[test]
    fn histograms_and_back() {
        let counts = votes().all_counts();
        let again = Votes::from_counts(&counts);
        assert_eq!(again.all_counts(), counts);
        assert_eq!(again.teacher(0), [0, 0, 2, 1]);
        assert_eq!(again.teacher(2), [1, 2, 2, 2]);
    }

    #[test]
    fn debug_shows_no_vote() {
        assert_eq!(format!("{:?}", votes()), "Votes(3 teachers, 4 queries, 3 classes, ..)");
    }
}
