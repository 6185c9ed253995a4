//! A labelling round: which queries, how many teachers, and the identifier that binds messages to it.

use sha2::{Digest, Sha256};

use crate::keys::KeyId;
use crate::range::VoteRange;

/// The public description of one labelling round, the same for teachers, server and student.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Round {
    label: [u8; 32],
    queries: usize,
    classes: usize,
    range: VoteRange,
    teachers: usize,
}

/// A round that cannot be described.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RoundError {
    /// A dimension is zero or beyond its limit.
    #[error("{found} {what}: a round has 1 to {max}")]
    Dimension {
        /// Which dimension.
        what: &'static str,
        /// The number asked for.
        found: usize,
        /// The largest number.
        max: usize,
    },
    /// `queries * classes` is beyond the limit of a message.
    #[error("{queries} queries of {classes} classes: a message carries at most {max} values")]
    TooManyValues {
        /// Queries asked for.
        queries: usize,
        /// Classes asked for.
        classes: usize,
        /// The largest product.
        max: usize,
    },
}

impl Round {
    /// Most values (`queries * classes`) that one message carries: 8 MiB of bodies and as much of masks.
    pub const MAX_VALUES: usize = 1 << 20;
    /// Most teachers of a round.
    pub const MAX_TEACHERS: usize = 1 << 20;
    /// Most classes of a round (a label is a byte); a parameter set may support fewer.
    pub const MAX_CLASSES: usize = 256;

    /// Describes a round. `label` names the run and the list of queries (a run id, a hash of the query list, ...);
    /// `noise_bound` bounds the absolute value of the total noise in one class, in votes.
    ///
    /// # Errors
    /// If a dimension is zero or beyond its limit.
    pub fn new(
        label: &[u8],
        queries: usize,
        classes: usize,
        teachers: usize,
        noise_bound: u64,
    ) -> Result<Self, RoundError> {
        for (what, found, max) in [
            ("queries", queries, Self::MAX_VALUES),
            ("classes", classes, Self::MAX_CLASSES),
            ("teachers", teachers, Self::MAX_TEACHERS),
        ] {
            if found == 0 || found > max {
                return Err(RoundError::Dimension { what, found, max });
            }
        }
        if queries * classes > Self::MAX_VALUES {
            return Err(RoundError::TooManyValues { queries, classes, max: Self::MAX_VALUES });
        }
        let range = VoteRange::new(teachers, noise_bound);
        Ok(Self { label: Sha256::digest(label).into(), queries, classes, range, teachers })
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

    /// Number of teachers.
    #[must_use]
    pub fn teachers(&self) -> usize {
        self.teachers
    }

    /// The guaranteed range of the noisy counts.
    #[must_use]
    pub fn range(&self) -> VoteRange {
        self.range
    }

    /// Number of values in a message, `queries * classes`.
    #[must_use]
    pub fn values(&self) -> usize {
        self.queries * self.classes
    }

    /// The identifier of this round under a key: SHA-256 over label, key and shape.
    #[must_use]
    pub fn id(&self, key: KeyId) -> RoundId {
        let mut hash = Sha256::new();
        hash.update(b"speed/round/v1");
        hash.update(self.label);
        hash.update(key.as_bytes());
        for number in [self.queries as u64, self.classes as u64, self.range.teachers(), self.range.noise_bound()] {
            hash.update(number.to_le_bytes());
        }
        RoundId(hash.finalize().into())
    }
}

/// The identifier of a round: a hash of its label, the public key, its shape and its noise bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RoundId([u8; 32]);

impl RoundId {
    /// The 32 bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    pub(crate) fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

impl std::fmt::Display for RoundId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().take(8).try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_depends_on_every_part() {
        let key = |byte| KeyId::from_bytes([byte; 32]);
        let base = (b"run".as_slice(), 3, 4, 5, 6);
        let id = |(l, q, k, n, b): (&[u8], usize, usize, usize, u64), byte| {
            Round::new(l, q, k, n, b).expect("valid").id(key(byte))
        };
        let first = id(base, 0);
        assert_eq!(first, id(base, 0));
        for other in [
            id((b"run2", 3, 4, 5, 6), 0),
            id((b"run", 4, 3, 5, 6), 0),
            id((b"run", 3, 4, 6, 5), 0),
            id((b"run", 3, 4, 5, 7), 0),
            id(base, 1),
        ] {
            assert_ne!(first, other);
        }
    }

    #[test]
    fn impossible_shapes_are_refused() {
        for (q, k, n, what) in
            [(0, 2, 1, "queries"), (1, 0, 1, "classes"), (1, 2, 0, "teachers"), (1, 257, 1, "classes")]
        {
            assert!(matches!(Round::new(b"", q, k, n, 0), Err(RoundError::Dimension { what: w, .. }) if w == what));
        }
        assert!(matches!(Round::new(b"", 1 << 20, 2, 1, 0), Err(RoundError::TooManyValues { .. })));
        assert!(Round::new(b"", usize::MAX, 256, 1, 0).is_err());
    }
}
