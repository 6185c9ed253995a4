//! The shape of votes.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Numbers of teachers, queries and classes: the shape of votes, of their counts, and of a labelling round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Sides")]
pub struct VoteShape {
    teachers: usize,
    queries: usize,
    classes: usize,
}

/// Numbers that are not a valid shape of votes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{found} {side}, expected {min} to {max}")]
pub struct ShapeError {
    /// The side that is too short or too long.
    pub side: &'static str,
    /// Its length.
    pub found: usize,
    /// The smallest length.
    pub min: usize,
    /// The largest length.
    pub max: usize,
}

impl VoteShape {
    /// The largest number of teachers.
    pub const MAX_TEACHERS: usize = 1 << 20;
    /// The largest number of queries.
    pub const MAX_QUERIES: usize = 1 << 24;
    /// The largest number of classes: a label is a byte.
    pub const MAX_CLASSES: usize = 256;

    /// Checks and combines the three numbers.
    ///
    /// # Errors
    /// If a number is zero, or more than [`Self::MAX_TEACHERS`], [`Self::MAX_QUERIES`] or [`Self::MAX_CLASSES`].
    pub fn new(teachers: usize, queries: usize, classes: usize) -> Result<Self, ShapeError> {
        for (side, found, max) in [
            ("teachers", teachers, Self::MAX_TEACHERS),
            ("queries", queries, Self::MAX_QUERIES),
            ("classes", classes, Self::MAX_CLASSES),
        ] {
            if !(1..=max).contains(&found) {
                return Err(ShapeError { side, found, min: 1, max });
            }
        }
        Ok(Self { teachers, queries, classes })
    }

    /// Returns the number of teachers n.
    pub const fn teachers(self) -> usize {
        self.teachers
    }

    /// Returns the number of queries Q.
    pub const fn queries(self) -> usize {
        self.queries
    }

    /// Returns the number of classes K.
    pub const fn classes(self) -> usize {
        self.classes
    }

    /// Returns the number of votes of all teachers, `n * Q`.
    pub const fn votes(self) -> usize {
        self.teachers * self.queries
    }

    /// Returns the number of counts, `Q * K`: also the number of one teacher's values if votes are one-hot.
    pub const fn counts(self) -> usize {
        self.queries * self.classes
    }

    /// Returns the shape with another number of queries.
    ///
    /// # Errors
    /// If the number of queries is out of range.
    pub fn with_queries(self, queries: usize) -> Result<Self, ShapeError> {
        Self::new(self.teachers, queries, self.classes)
    }
}

impl fmt::Display for VoteShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} teachers, {} queries, {} classes", self.teachers, self.queries, self.classes)
    }
}

#[derive(Deserialize)]
struct Sides {
    teachers: usize,
    queries: usize,
    classes: usize,
}

impl TryFrom<Sides> for VoteShape {
    type Error = ShapeError;

    fn try_from(sides: Sides) -> Result<Self, ShapeError> {
        Self::new(sides.teachers, sides.queries, sides.classes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_and_oversized_shapes_are_refused() {
        let shape = VoteShape::new(250, 100, 10).expect("the paper's");
        assert_eq!((shape.votes(), shape.counts()), (25_000, 1000));
        assert_eq!(shape.with_queries(7).map(VoteShape::queries), Ok(7));
        for (teachers, queries, classes, side) in [
            (0, 1, 1, "teachers"),
            (1, 0, 1, "queries"),
            (1, 1, 0, "classes"),
            (usize::MAX, 1, 1, "teachers"),
            (1, usize::MAX, 1, "queries"),
            (1, 1, 257, "classes"),
        ] {
            assert!(VoteShape::new(teachers, queries, classes).is_err_and(|error| error.side == side));
        }
        // All limits together do not overflow.
        let largest = VoteShape::new(VoteShape::MAX_TEACHERS, VoteShape::MAX_QUERIES, VoteShape::MAX_CLASSES);
        assert_eq!(largest.map(VoteShape::votes), Ok(1 << 44));
    }

    #[test]
    fn a_shape_is_checked_when_it_is_read() {
        let shape = VoteShape::new(3, 2, 10).expect("valid");
        let json = serde_json::to_string(&shape).expect("numbers");
        assert_eq!(json, r#"{"teachers":3,"queries":2,"classes":10}"#);
        assert_eq!(serde_json::from_str::<VoteShape>(&json).expect("the same"), shape);
        assert!(serde_json::from_str::<VoteShape>(&json.replace('2', "0")).is_err());
    }
}
