//! The input of an aggregation in one process: every teacher's noisy integer votes.

/// Noisy votes of all teachers for all queries: `teachers x queries x classes` integers, each a vote (0 or 1) plus a
/// share of noise. They are the teachers' secret and not printable.
#[derive(Clone, PartialEq, Eq)]
pub struct NoisyVotes {
    teachers: usize,
    queries: usize,
    classes: usize,
    noise_bound: u64,
    values: Vec<i64>,
}

/// Noisy votes that make no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VotesError {
    /// There is no teacher, no query, or fewer than two classes.
    #[error("{teachers} teachers, {queries} queries, {classes} classes: at least 1, 1 and 2 are needed")]
    Empty {
        /// Number of teachers.
        teachers: usize,
        /// Number of queries.
        queries: usize,
        /// Number of classes.
        classes: usize,
    },
    /// More classes than labels.
    #[error("{classes} classes, a label has room for {max}")]
    Classes {
        /// Number of classes.
        classes: usize,
        /// Largest number of classes.
        max: usize,
    },
    /// The number of values is not the product of the dimensions.
    #[error("{found} values, expected {teachers} teachers x {queries} queries x {classes} classes")]
    Length {
        /// Values given.
        found: usize,
        /// Number of teachers.
        teachers: usize,
        /// Number of queries.
        queries: usize,
        /// Number of classes.
        classes: usize,
    },
    /// A value is so large that sums could overflow.
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
    /// If a dimension is too small, there are more than 256 classes, the length is not the product of the dimensions, or
    /// a value is beyond `2^32`.
    pub fn new(
        teachers: usize,
        queries: usize,
        classes: usize,
        noise_bound: u64,
        values: Vec<i64>,
    ) -> Result<Self, VotesError> {
        if teachers == 0 || queries == 0 || classes < 2 {
            return Err(VotesError::Empty { teachers, queries, classes });
        }
        if classes > 256 {
            return Err(VotesError::Classes { classes, max: 256 });
        }
        let expected = teachers.checked_mul(queries).and_then(|product| product.checked_mul(classes));
        if expected != Some(values.len()) {
            return Err(VotesError::Length { found: values.len(), teachers, queries, classes });
        }
        if let Some(bad) = values.iter().position(|value| value.unsigned_abs() > 1 << 32) {
            let (teacher, query, class) = (bad / (queries * classes), bad / classes % queries, bad % classes);
            return Err(VotesError::Value { teacher, query, class });
        }
        Ok(Self { teachers, queries, classes, noise_bound, values })
    }

    /// Number of teachers.
    #[must_use]
    pub fn teachers(&self) -> usize {
        self.teachers
    }

    /// Number of queries.
    #[must_use]
    pub fn queries(&self) -> usize {
        self.queries
    }

    /// Number of classes.
    #[must_use]
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// Bound on the total noise in one class, in votes.
    #[must_use]
    pub fn noise_bound(&self) -> u64 {
        self.noise_bound
    }

    /// One teacher's values, queries x classes. Panics if there is no such teacher.
    #[must_use]
    pub fn teacher(&self, teacher: usize) -> &[i64] {
        let size = self.queries * self.classes;
        &self.values[teacher * size..(teacher + 1) * size]
    }

    /// The summed counts, queries x classes.
    pub(crate) fn counts(&self) -> Vec<i64> {
        let mut counts = vec![0; self.queries * self.classes];
        for teacher in 0..self.teachers {
            for (count, value) in counts.iter_mut().zip(self.teacher(teacher)) {
                *count += value;
            }
        }
        counts
    }
}

impl std::fmt::Debug for NoisyVotes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "NoisyVotes({} teachers, {} queries, {} classes, ..)", self.teachers, self.queries, self.classes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_shapes_and_values_are_refused() {
        assert!(matches!(NoisyVotes::new(0, 1, 2, 0, vec![]), Err(VotesError::Empty { teachers: 0, .. })));
        assert!(matches!(NoisyVotes::new(1, 1, 1, 0, vec![0]), Err(VotesError::Empty { classes: 1, .. })));
        assert!(matches!(NoisyVotes::new(1, 1, 257, 0, vec![0; 257]), Err(VotesError::Classes { classes: 257, .. })));
        assert!(matches!(NoisyVotes::new(2, 2, 2, 0, vec![0; 7]), Err(VotesError::Length { found: 7, .. })));
        assert!(matches!(NoisyVotes::new(usize::MAX, 2, 2, 0, vec![0; 4]), Err(VotesError::Length { .. })));
        let mut values = vec![0; 2 * 3 * 4];
        values[12 + 2 * 4 + 3] = i64::MIN;
        assert_eq!(NoisyVotes::new(2, 3, 4, 0, values), Err(VotesError::Value { teacher: 1, query: 2, class: 3 }));
    }

    #[test]
    fn debug_shows_no_value() {
        let votes = NoisyVotes::new(1, 1, 2, 0, vec![7777, 8888]).expect("valid");
        assert!(!format!("{votes:?}").contains("7777"));
    }
}
