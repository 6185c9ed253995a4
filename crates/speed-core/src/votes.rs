//! One vote per teacher and query: a label, or empty.

use crate::{ShapeError, VoteShape};

/// A teacher's vote on a query: the label that it gives, or `None`. An empty vote counts for no class.
pub type Vote = Option<u8>;

/// Returns a teacher's answer to a group of images, from its votes on them: the label that it gives most often, but an empty vote if more
/// than half of its votes are empty, because the group is then probably of a class that it lacks.
///
/// ```
/// use speed_core::group_answer;
///
/// assert_eq!(group_answer([Some(4), None, Some(7), Some(4)]), Some(4));
/// assert_eq!(group_answer([Some(4), None, None]), None);
/// ```
pub fn group_answer(votes: impl IntoIterator<Item = Vote>) -> Vote {
    let (mut labels, mut empty) = (Vec::new(), 0);
    votes.into_iter().for_each(|vote| vote.map_or_else(|| empty += 1, |label| labels.push(label)));
    if empty > labels.len() { None } else { most_frequent(labels) }
}

/// Numbers that are not votes, not counts of votes, or not true labels for them, with the expected and the found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct VotesError(pub(crate) String);

impl VotesError {
    pub(crate) fn length(expected: usize, found: usize) -> Self {
        Self(format!("expected {expected} values, found {found}"))
    }
}

impl From<ShapeError> for VotesError {
    fn from(error: ShapeError) -> Self {
        Self(format!("votes of {error}"))
    }
}

/// The votes of n teachers on Q queries: labels, each below the number of classes K, and empty votes.
#[derive(Clone, PartialEq, Eq)]
pub struct Votes {
    shape: VoteShape,
    votes: Vec<Vote>,
}

impl Votes {
    /// Checks and takes a matrix: `votes` holds the Q votes of teacher 0, then the Q votes of teacher 1, ... They are labels
    /// (`u8`), or votes that may be empty ([`Vote`]).
    ///
    /// # Errors
    /// Unless there are `n * Q` votes, and for the first label that is not
    /// below K.
    pub fn new<V: Into<Vote>>(shape: VoteShape, votes: Vec<V>) -> Result<Self, VotesError> {
        let (queries, classes) = (shape.queries(), shape.classes());
        if votes.len() != shape.votes() {
            return Err(VotesError::length(shape.votes(), votes.len()));
        }
        let votes: Vec<Vote> = votes.into_iter().map(Into::into).collect();
        let is_beyond = |vote: &Vote| vote.is_some_and(|label| usize::from(label) >= classes);
        if let Some((i, found)) = votes.iter().position(is_beyond).and_then(|i| Some((i, votes[i]?))) {
            let (teacher, query) = (i / queries, i % queries);
            return Err(VotesError(format!(
                "teacher {teacher} votes for class {found} on query {query}, but there are {classes} classes"
            )));
        }
        Ok(Self { shape, votes })
    }

    /// Creates votes with these histograms, the K counts of query 0, then those of query 1, ...: on every query the first teachers
    /// vote for class 0, the next for class 1, and so on; the votes of the last teachers are empty if the counts leave some. The
    /// assignment to teachers is invented, because published histograms do not contain it; the sums are as given.
    ///
    /// # Errors
    /// If the number of counts is not `Q * K`, or a query has more votes than teachers; the error names the first such query.
    pub(crate) fn from_counts(shape: VoteShape, counts: &[u32]) -> Result<Self, VotesError> {
        if counts.len() != shape.counts() {
            return Err(VotesError::length(shape.counts(), counts.len()));
        }
        let (teachers, queries) = (shape.teachers(), shape.queries());
        let mut votes = vec![None; shape.votes()];
        for (query, row) in counts.chunks(shape.classes()).enumerate() {
            let found: u64 = row.iter().map(|&count| u64::from(count)).sum();
            if found > teachers as u64 {
                return Err(VotesError(format!("query {query} has {found} votes, but there are {teachers} teachers")));
            }
            let labels = (0..=u8::MAX).zip(row).flat_map(|(label, &count)| std::iter::repeat_n(label, count as usize));
            labels.enumerate().for_each(|(teacher, label)| votes[teacher * queries + query] = Some(label));
        }
        Ok(Self { shape, votes })
    }

    /// Returns the numbers of teachers, queries and classes.
    pub fn shape(&self) -> VoteShape {
        self.shape
    }

    /// Returns all votes, teacher after teacher: `n * Q` values.
    pub fn all(&self) -> &[Vote] {
        &self.votes
    }

    /// Returns the number of empty votes.
    pub fn empty(&self) -> usize {
        self.votes.iter().filter(|vote| vote.is_none()).count()
    }

    /// Returns the votes of one teacher on the queries, in their order.
    pub fn teacher(&self, teacher: usize) -> &[Vote] {
        let queries = self.shape.queries();
        &self.votes[teacher * queries..(teacher + 1) * queries]
    }

    /// Counts the votes for each of the K classes on one query.
    pub fn counts(&self, query: usize) -> Vec<u32> {
        let mut counts = vec![0; self.shape.classes()];
        for label in (0..self.shape.teachers()).filter_map(|teacher| self.teacher(teacher)[query]) {
            counts[usize::from(label)] += 1;
        }
        counts
    }

    /// Returns the class with most votes on one query; in a tie, the lowest, and `None` if all votes are empty.
    pub fn plurality(&self, query: usize) -> Option<u8> {
        most_voted(&self.counts(query))
    }

    /// Returns the share of queries whose plurality is the true label.
    ///
    /// # Errors
    /// Unless there is one true label for each query.
    pub fn plurality_accuracy(&self, truth: &[u8]) -> Result<f64, VotesError> {
        check_labels(self.shape.queries(), truth)?;
        let right = truth.iter().enumerate().filter(|&(query, &label)| self.plurality(query) == Some(label)).count();
        Ok(right as f64 / truth.len() as f64)
    }

    /// Returns the mean over the teachers of the share of queries that they label correctly. An empty vote is not correct.
    ///
    /// # Errors
    /// Unless there is one true label for each query.
    pub fn mean_accuracy(&self, truth: &[u8]) -> Result<f64, VotesError> {
        check_labels(self.shape.queries(), truth)?;
        let right = self.votes.iter().zip(truth.iter().cycle()).filter(|&(vote, label)| *vote == Some(*label)).count();
        Ok(right as f64 / self.votes.len() as f64)
    }
}

// Votes are the teachers' private labels until noise is added: `Debug` shows sizes only.
crate::debug_as!(Votes, this => "Votes({}, ..)", this.shape);

/// Returns the most frequent label; of equally frequent ones the lowest, and `None` without labels.
///
/// ```
/// assert_eq!(speed_core::most_frequent([4, 2, 7, 2, 4]), Some(2));
/// ```
pub fn most_frequent(labels: impl IntoIterator<Item = u8>) -> Option<u8> {
    let mut counts = [0_u32; VoteShape::MAX_CLASSES];
    labels.into_iter().for_each(|label| counts[usize::from(label)] += 1);
    most_voted(&counts)
}

/// Returns the first class with the greatest count; `None` if all counts are 0. There are at most 256 classes.
fn most_voted(counts: &[u32]) -> Option<u8> {
    let mut best = 0;
    for (class, count) in counts.iter().enumerate() {
        if *count > counts[best] {
            best = class;
        }
    }
    (counts[best] > 0).then_some(best as u8)
}

fn check_labels(queries: usize, truth: &[u8]) -> Result<(), VotesError> {
    let found = truth.len();
    if found == queries { Ok(()) } else { Err(VotesError(format!("{found} labels for {queries} queries"))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(teachers: usize, queries: usize, classes: usize) -> VoteShape {
        VoteShape::new(teachers, queries, classes).expect("a shape")
    }

    /// Three teachers, four queries, three classes.
    fn votes() -> Votes {
        Votes::new(shape(3, 4, 3), vec![0_u8, 1, 2, 2, 0, 2, 2, 1, 1, 0, 2, 1]).expect("valid votes")
    }

    /// The same votes, of which those for class 2 are empty.
    fn with_empty() -> Votes {
        let votes = votes().all().iter().map(|vote| vote.filter(|label| *label < 2)).collect();
        Votes::new(shape(3, 4, 3), votes).expect("valid votes")
    }

    #[test]
    fn votes_are_counted() {
        let votes = votes();
        assert_eq!(votes.shape(), shape(3, 4, 3));
        assert_eq!(votes.teacher(1), [0, 2, 2, 1].map(Some));
        assert_eq!(votes.empty(), 0);
        assert_eq!(votes.counts(0), [2, 1, 0]);
        assert_eq!(votes.counts(3), [0, 2, 1]);
        // Query 1 is a tie of all three, so the lowest wins.
        assert_eq!([0, 1, 2, 3].map(|q| votes.plurality(q)), [0, 0, 2, 1].map(Some));
        assert_eq!(votes.plurality_accuracy(&[0, 1, 2, 0]), Ok(0.5));
        assert_eq!(votes.mean_accuracy(&[0, 1, 2, 2]), Ok((4 + 2 + 1) as f64 / 12.0));
        let refused = |accuracy: Result<f64, VotesError>| accuracy.expect_err("refused").to_string();
        assert_eq!(refused(votes.plurality_accuracy(&[0; 3])), "3 labels for 4 queries");
        assert_eq!(refused(votes.mean_accuracy(&[0; 5])), "5 labels for 4 queries");
    }

    #[test]
    fn empty_votes_count_for_no_class() {
        let votes = with_empty();
        assert_eq!(votes.teacher(1), [Some(0), None, None, Some(1)]);
        assert_eq!((votes.counts(0), votes.counts(2), votes.empty()), (vec![2, 1, 0], vec![0; 3], 5));
        assert_eq!([0, 1, 2, 3].map(|q| votes.plurality(q)), [Some(0), Some(0), None, Some(1)]);
        assert_eq!(votes.plurality_accuracy(&[0, 1, 2, 1]), Ok(0.5));
        // On query 2 no vote is right, whatever the true label is.
        for truth in 0..3 {
            assert_eq!(votes.mean_accuracy(&[0, 1, truth, 1]), Ok((2 + 1 + 2) as f64 / 12.0));
        }
        let counts = [0, 1, 2, 3].map(|query| votes.counts(query)).concat();
        let again = Votes::from_counts(votes.shape(), &counts).expect("their counts");
        assert_eq!([0, 1, 2, 3].map(|query| again.counts(query)).concat(), counts);
        assert_eq!(again.teacher(2), [Some(1), None, None, None]);
    }

    #[test]
    fn the_most_frequent_label_is_the_lowest_on_a_tie() {
        for (labels, expected) in [(&[255][..], 255), (&[9, 3, 9], 9), (&[3, 9, 9, 3], 3), (&[0, 255, 7, 255, 7, 7], 7)]
        {
            assert_eq!(most_frequent(labels.iter().copied()), Some(expected), "{labels:?}");
        }
        assert_eq!(most_frequent([]), None);
    }

    #[test]
    fn invalid_tables_of_histograms_are_refused() {
        let refused = |shape, counts: &[u32]| Votes::from_counts(shape, counts).expect_err("refused").to_string();
        assert_eq!(refused(shape(3, 2, 2), &[1, 2, 3]), "expected 4 values, found 3");
        assert_eq!(refused(shape(3, 2, 2), &[1, 2, 3, 1]), "query 1 has 4 votes, but there are 3 teachers");
        // A `u32` sum would wrap to 3.
        let wide = "query 0 has 4294967299 votes, but there are 3 teachers";
        assert_eq!(refused(shape(3, 1, 2), &[u32::MAX, 4]), wide);
    }

    #[test]
    fn invalid_matrices_of_votes_are_refused() {
        let refused = |labels: Vec<u8>| Votes::new(shape(2, 2, 3), labels).expect_err("refused").to_string();
        assert_eq!(refused(vec![0; 3]), "expected 4 values, found 3");
        assert_eq!(refused(vec![0, 1, 3, 2]), "teacher 1 votes for class 3 on query 0, but there are 3 classes");
        assert!(Votes::new(shape(1, 1, 256), vec![255_u8]).is_ok());
        let refused = Votes::new(shape(1, 2, 2), vec![None, Some(2_u8)]).expect_err("refused").to_string();
        assert_eq!(refused, "teacher 0 votes for class 2 on query 1, but there are 2 classes");
    }

    #[test]
    fn debug_shows_no_vote() {
        assert_eq!(format!("{:?}", votes()), "Votes(3 teachers, 4 queries, 3 classes, ..)");
    }
}
