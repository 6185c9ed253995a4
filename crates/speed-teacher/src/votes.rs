//! Who votes for what: the n x Q matrix of labels.

use crate::{VoteCounts, VotesError};

/// The labels that n teachers give to Q queries, each below the number of classes K.
#[derive(Clone, PartialEq, Eq)]
pub struct Votes {
    teachers: usize,
    queries: usize,
    classes: usize,
    labels: Vec<u8>,
}

impl Votes {
    /// Checks and takes a matrix: `labels` holds the `queries` labels of teacher 0, then those of teacher 1, ...
    ///
    /// # Errors
    /// [`VotesError::Empty`], [`VotesError::Classes`] unless `1 <= classes <= 256`, [`VotesError::Length`] unless there are
    /// `teachers * queries` labels, [`VotesError::Label`] for the first label that is not below `classes`.
    pub fn new(teachers: usize, queries: usize, classes: usize, labels: Vec<u8>) -> Result<Self, VotesError> {
        check_sides(teachers, queries, classes)?;
        let expected = teachers.saturating_mul(queries);
        if labels.len() != expected {
            return Err(VotesError::Length { expected, found: labels.len() });
        }
        if let Some(i) = labels.iter().position(|&label| usize::from(label) >= classes) {
            return Err(VotesError::Label { teacher: i / queries, query: i % queries, found: labels[i], classes });
        }
        Ok(Self { teachers, queries, classes, labels })
    }

    /// Votes with the histograms `counts`: on every query the first teachers vote for class 0, the next for class 1, and
    /// so on. Which teacher votes for what is made up (published histograms do not say), the sums are not.
    #[must_use]
    pub fn from_counts(counts: &VoteCounts) -> Self {
        let (teachers, queries, classes) = (counts.teachers(), counts.queries(), counts.classes());
        let mut labels = vec![0; teachers * queries];
        for query in 0..queries {
            let mut teacher = 0;
            for (class, &count) in counts.query(query).iter().enumerate() {
                for _ in 0..count {
                    labels[teacher * queries + query] = class as u8;
                    teacher += 1;
                }
            }
        }
        Self { teachers, queries, classes, labels }
    }

    /// Number of teachers n.
    #[must_use]
    pub fn teachers(&self) -> usize {
        self.teachers
    }

    /// Number of queries Q.
    #[must_use]
    pub fn queries(&self) -> usize {
        self.queries
    }

    /// Number of classes K.
    #[must_use]
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// All labels, teacher after teacher: `teachers * queries` values.
    #[must_use]
    pub fn labels(&self) -> &[u8] {
        &self.labels
    }

    /// The labels that one teacher gives to the queries, in their order.
    ///
    /// # Panics
    /// When `teacher >= teachers()`, as a slice does.
    #[must_use]
    pub fn teacher(&self, teacher: usize) -> &[u8] {
        &self.labels[teacher * self.queries..(teacher + 1) * self.queries]
    }

    /// The label that one teacher gives to one query.
    ///
    /// # Panics
    /// When there is no such teacher or query, as a slice does.
    #[must_use]
    pub fn label(&self, teacher: usize, query: usize) -> u8 {
        self.teacher(teacher)[query]
    }

    /// How many teachers vote for each of the K classes on one query.
    ///
    /// # Panics
    /// When `query >= queries()`, as a slice does.
    #[must_use]
    pub fn counts(&self, query: usize) -> Vec<u32> {
        let mut counts = vec![0; self.classes];
        for teacher in 0..self.teachers {
            counts[usize::from(self.label(teacher, query))] += 1;
        }
        counts
    }

    /// The histograms of all queries.
    #[must_use]
    pub fn all_counts(&self) -> VoteCounts {
        let counts = (0..self.queries).flat_map(|query| self.counts(query)).collect();
        VoteCounts::from_votes(self.teachers, self.queries, self.classes, counts)
    }

    /// The class with most votes on one query; of equal ones the lowest.
    ///
    /// # Panics
    /// When `query >= queries()`, as a slice does.
    #[must_use]
    pub fn plurality(&self, query: usize) -> u8 {
        most_voted(&self.counts(query))
    }

    /// The share of queries whose plurality is the true label.
    ///
    /// # Errors
    /// [`VotesError::Labels`] unless there is one true label for each query.
    pub fn plurality_accuracy(&self, truth: &[u8]) -> Result<f64, VotesError> {
        check_labels(self.queries, truth)?;
        let right = truth.iter().enumerate().filter(|&(query, &label)| self.plurality(query) == label).count();
        Ok(right as f64 / self.queries as f64)
    }

    /// The mean over the teachers of the share of queries that they label as the truth has it.
    ///
    /// # Errors
    /// [`VotesError::Labels`] unless there is one true label for each query.
    pub fn mean_accuracy(&self, truth: &[u8]) -> Result<f64, VotesError> {
        check_labels(self.queries, truth)?;
        let right = self.labels.iter().zip(truth.iter().cycle()).filter(|(vote, label)| vote == label).count();
        Ok(right as f64 / self.labels.len() as f64)
    }
}

/// Votes are the teachers' private labels until noise is added: `Debug` shows sizes only.
impl std::fmt::Debug for Votes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Votes")
            .field("teachers", &self.teachers)
            .field("queries", &self.queries)
            .field("classes", &self.classes)
            .finish_non_exhaustive()
    }
}

/// The first of the greatest counts.
pub(crate) fn most_voted(counts: &[u32]) -> u8 {
    let mut best = 0;
    for (class, count) in counts.iter().enumerate() {
        if *count > counts[best] {
            best = class;
        }
    }
    // There are at most 256 classes.
    best as u8
}

pub(crate) fn check_sides(teachers: usize, queries: usize, classes: usize) -> Result<(), VotesError> {
    if teachers == 0 || queries == 0 {
        return Err(VotesError::Empty { teachers, queries });
    }
    if !(1..=256).contains(&classes) {
        return Err(VotesError::Classes { found: classes });
    }
    Ok(())
}

pub(crate) fn check_labels(queries: usize, truth: &[u8]) -> Result<(), VotesError> {
    if truth.len() == queries { Ok(()) } else { Err(VotesError::Labels { expected: queries, found: truth.len() }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three teachers, four queries, three classes.
    fn votes() -> Votes {
        Votes::new(3, 4, 3, vec![0, 1, 2, 2, 0, 2, 2, 1, 1, 0, 2, 1]).expect("valid votes")
    }

    #[test]
    fn votes_are_counted() {
        let votes = votes();
        assert_eq!((votes.teachers(), votes.queries(), votes.classes()), (3, 4, 3));
        assert_eq!(votes.teacher(1), [0, 2, 2, 1]);
        assert_eq!(votes.label(2, 0), 1);
        assert_eq!(votes.counts(0), [2, 1, 0]);
        assert_eq!(votes.counts(3), [0, 2, 1]);
        // Query 1 is a tie of all three: the lowest wins.
        assert_eq!([0, 1, 2, 3].map(|q| votes.plurality(q)), [0, 0, 2, 1]);
        assert_eq!(votes.plurality_accuracy(&[0, 1, 2, 0]), Ok(0.5));
        assert_eq!(votes.mean_accuracy(&[0, 1, 2, 2]), Ok((4 + 2 + 1) as f64 / 12.0));
        assert_eq!(votes.plurality_accuracy(&[0; 3]), Err(VotesError::Labels { expected: 4, found: 3 }));
        assert_eq!(votes.mean_accuracy(&[0; 5]), Err(VotesError::Labels { expected: 4, found: 5 }));
    }

    #[test]
    fn what_is_no_matrix_of_votes_is_refused() {
        assert_eq!(Votes::new(0, 4, 3, vec![]), Err(VotesError::Empty { teachers: 0, queries: 4 }));
        assert_eq!(Votes::new(4, 0, 3, vec![]), Err(VotesError::Empty { teachers: 4, queries: 0 }));
        assert_eq!(Votes::new(1, 1, 0, vec![0]), Err(VotesError::Classes { found: 0 }));
        assert_eq!(Votes::new(1, 1, 257, vec![0]), Err(VotesError::Classes { found: 257 }));
        assert_eq!(Votes::new(2, 2, 3, vec![0; 3]), Err(VotesError::Length { expected: 4, found: 3 }));
        assert!(matches!(Votes::new(usize::MAX, 2, 3, vec![0; 3]), Err(VotesError::Length { .. })));
        let label = VotesError::Label { teacher: 1, query: 0, found: 3, classes: 3 };
        assert_eq!(Votes::new(2, 2, 3, vec![0, 1, 3, 2]), Err(label));
        assert!(Votes::new(1, 1, 256, vec![255]).is_ok());
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
        assert_eq!(format!("{:?}", votes()), "Votes { teachers: 3, queries: 4, classes: 3, .. }");
    }
}
