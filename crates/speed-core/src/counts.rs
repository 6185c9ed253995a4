//! Histograms of votes: the Q x K table of counts.

use crate::{VoteShape, VotesError};

/// The numbers of teachers that vote for each of K classes on each of Q queries. Every row sums to at most the number of
/// teachers n; the votes of the other teachers are empty.
#[derive(Clone, PartialEq, Eq)]
pub struct VoteCounts {
    pub(crate) shape: VoteShape,
    pub(crate) counts: Vec<u32>,
}

impl VoteCounts {
    /// Checks and takes a table: `counts` holds the K counts of query 0, then the K counts of query 1, ...
    ///
    /// # Errors
    /// Unless there are `Q * K` counts, and for the first row that sums to
    /// more than n.
    pub fn new(shape: VoteShape, counts: Vec<u32>) -> Result<Self, VotesError> {
        if counts.len() != shape.counts() {
            return Err(VotesError::length(shape.counts(), counts.len()));
        }
        let teachers = shape.teachers();
        for (query, row) in counts.chunks(shape.classes()).enumerate() {
            let found: u64 = row.iter().map(|&count| u64::from(count)).sum();
            if found > teachers as u64 {
                return Err(VotesError(format!("query {query} has {found} votes, but there are {teachers} teachers")));
            }
        }
        Ok(Self { shape, counts })
    }

    /// Returns the numbers of teachers, queries and classes.
    pub fn shape(&self) -> VoteShape {
        self.shape
    }

    /// Returns the K counts of one query.
    pub fn query(&self, query: usize) -> &[u32] {
        let classes = self.shape.classes();
        &self.counts[query * classes..(query + 1) * classes]
    }

    /// Returns the number of empty votes on one query.
    pub fn empty(&self, query: usize) -> usize {
        self.shape.teachers() - self.query(query).iter().map(|&count| count as usize).sum::<usize>()
    }

    /// Returns the class with most votes on one query; in a tie, the lowest, and `None` if all votes are empty.
    pub fn plurality(&self, query: usize) -> Option<u8> {
        most_voted(self.query(query))
    }

    pub(crate) fn plurality_accuracy(&self, truth: &[u8]) -> Result<f64, VotesError> {
        check_labels(self.shape.queries(), truth)?;
        let right = truth.iter().enumerate().filter(|&(query, &label)| self.plurality(query) == Some(label)).count();
        Ok(right as f64 / self.shape.queries() as f64)
    }
}

// Votes are private until noise is added: `Debug` shows sizes only.
crate::debug_as!(VoteCounts, this => "VoteCounts({}, ..)", this.shape);

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

/// Returns the first of the greatest counts of at most 256 classes, unless all are 0.
pub(crate) fn most_voted(counts: &[u32]) -> Option<u8> {
    let mut best = 0;
    for (class, count) in counts.iter().enumerate() {
        if *count > counts[best] {
            best = class;
        }
    }
    (counts[best] > 0).then_some(best as u8)
}

pub(crate) fn check_labels(queries: usize, truth: &[u8]) -> Result<(), VotesError> {
    let found = truth.len();
    if found == queries { Ok(()) } else { Err(VotesError(format!("{found} labels for {queries} queries"))) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Votes;

    fn shape(teachers: usize, queries: usize, classes: usize) -> VoteShape {
        VoteShape::new(teachers, queries, classes).expect("a shape")
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
        let refused = |shape, counts| VoteCounts::new(shape, counts).expect_err("refused").to_string();
        assert_eq!(refused(shape(3, 2, 2), vec![1, 2, 3]), "expected 4 values, found 3");
        assert_eq!(refused(shape(3, 2, 2), vec![1, 2, 3, 1]), "query 1 has 4 votes, but there are 3 teachers");
        let fewer = VoteCounts::new(shape(3, 3, 2), vec![1, 2, 0, 1, 0, 0]).expect("empty votes");
        assert_eq!([0, 1, 2].map(|query| fewer.empty(query)), [0, 2, 3]);
        assert_eq!([0, 1, 2].map(|query| fewer.plurality(query)), [Some(1), Some(1), None]);
        // A `u32` sum would wrap to 3.
        let wide = "query 0 has 4294967299 votes, but there are 3 teachers";
        assert_eq!(refused(shape(3, 1, 2), vec![u32::MAX, 4]), wide);
    }

    #[test]
    #[expect(clippy::print_stderr, reason = "a skipped test says so")]
    fn published_mnist_histograms_are_votes_of_250_teachers() {
        let Some(folder) = std::env::var_os("SPEED_VOTES") else {
            assert!(std::env::var("CI").as_deref() != Ok("true"), "SPEED_VOTES is not set");
            eprintln!("skipped: SPEED_VOTES is not set");
            return;
        };
        let path = std::path::Path::new(&folder).join("mnist_250_teachers.npy");
        let bytes = std::fs::read(path).expect("the published votes");
        let header = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
        let counts: Vec<u32> =
            bytes[header..].chunks(8).map(|b| f64::from_le_bytes(b.try_into().expect("8 bytes")) as u32).collect();
        let counts = VoteCounts::new(shape(250, 9000, 10), counts).expect("rows of 250 votes");
        assert_eq!(Votes::from_counts(&counts).all_counts(), counts);
    }
}
