//! The input of an aggregation in one process: every teacher's noisy integer votes.

use speed_core::VoteShape;

/// Noisy votes of all teachers for all queries: `teachers x queries x classes` integers, each a vote (0 or 1) plus a
/// share of privacy noise. They are the teachers' secret and not printable.
#[derive(Clone, PartialEq, Eq)]
pub struct NoisyVotes {
    shape: VoteShape,
    noise_bound: u64,
    values: Vec<i64>,
}

/// Noisy votes that make no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VotesError {
    /// Fewer than two classes.
    #[error("{0}: at least 2 classes are needed")]
    OneClass(VoteShape),
    /// A number of values that is not the product of the sides.
    #[error("{found} values, expected those of {shape}")]
    Length {
        /// Values given.
        found: usize,
        /// Numbers of teachers, queries and classes.
        shape: VoteShape,
    },
    /// A value so large that sums could overflow.
    #[error("teacher {teacher}, query {query}, class {class}: the value is beyond 2^32 in absolute value")]
    Value {
        /// The teacher.
        teacher: usize,
        /// The query.
        query: usize,
        /// The class.
        class: usize,
    },
}

impl NoisyVotes {
    /// Checks and wraps `values`, teacher by teacher, query by query, class by class. `noise_bound` bounds the absolute
    /// value of the noise in one class summed over teachers (in votes); the mechanism's tail gives it.
    ///
    /// # Errors
    /// If there is only one class, the length is not the product of the sides, or a value is beyond `2^32`.
    pub fn new(shape: VoteShape, noise_bound: u64, values: Vec<i64>) -> Result<Self, VotesError> {
        if shape.classes() < 2 {
            return Err(VotesError::OneClass(shape));
        }
        // The limits of a shape: at most 2^52.
        if values.len() != shape.teachers() * shape.counts() {
            return Err(VotesError::Length { found: values.len(), shape });
        }
        if let Some(bad) = values.iter().position(|value| value.unsigned_abs() > 1 << 32) {
            let classes = shape.classes();
            let (teacher, query, class) = (bad / shape.counts(), bad / classes % shape.queries(), bad % classes);
            return Err(VotesError::Value { teacher, query, class });
        }
        Ok(Self { shape, noise_bound, values })
    }

    /// Returns the numbers of teachers, queries and classes.
    #[must_use]
    pub fn shape(&self) -> VoteShape {
        self.shape
    }

    /// Returns the bound on the total noise in one class, in votes.
    #[must_use]
    pub fn noise_bound(&self) -> u64 {
        self.noise_bound
    }

    /// Returns one teacher's values, queries x classes.
    ///
    /// # Panics
    /// If there is no such teacher.
    #[must_use]
    pub fn teacher(&self, teacher: usize) -> &[i64] {
        let size = self.shape.counts();
        &self.values[teacher * size..(teacher + 1) * size]
    }

    /// Returns the summed counts, queries x classes.
    pub(crate) fn counts(&self) -> Vec<i64> {
        let mut counts = vec![0; self.shape.counts()];
        for teacher in self.values.chunks_exact(counts.len()) {
            for (count, value) in counts.iter_mut().zip(teacher) {
                *count += value;
            }
        }
        counts
    }
}

impl std::fmt::Debug for NoisyVotes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "NoisyVotes({}, ..)", self.shape)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(teachers: usize, queries: usize, classes: usize) -> VoteShape {
        VoteShape::new(teachers, queries, classes).expect("a shape")
    }

    #[test]
    fn wrong_shapes_and_values_are_refused() {
        let refused = |shape, values| NoisyVotes::new(shape, 0, values).expect_err("refused");
        assert_eq!(refused(shape(1, 1, 1), vec![0]), VotesError::OneClass(shape(1, 1, 1)));
        assert_eq!(refused(shape(2, 2, 2), vec![0; 7]), VotesError::Length { found: 7, shape: shape(2, 2, 2) });
        let largest = shape(VoteShape::MAX_TEACHERS, VoteShape::MAX_QUERIES, VoteShape::MAX_CLASSES);
        assert!(matches!(refused(largest, vec![0; 4]), VotesError::Length { found: 4, .. }));
        let mut values = vec![0; 2 * 3 * 4];
        values[12 + 2 * 4 + 3] = i64::MIN;
        assert_eq!(refused(shape(2, 3, 4), values), VotesError::Value { teacher: 1, query: 2, class: 3 });
    }

    #[test]
    fn debug_shows_no_value() {
        let votes = NoisyVotes::new(shape(1, 1, 2), 0, vec![7777, 8888]).expect("valid");
        assert!(!format!("{votes:?}").contains("7777"));
    }
}
