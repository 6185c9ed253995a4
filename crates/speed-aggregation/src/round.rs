//! A labelling round: which queries, how many teachers, and the identifier that binds messages to it.

use sha2::{Digest, Sha256};

use crate::keys::KeyId;
use crate::outcome::Outcomes;
use crate::range::VoteRange;

/// Who adds the noise to the votes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NoisePlace {
    /// Every teacher adds a share: the paper's distributed noise. What a caller of [`Teacher::answer`] passes holds it.
    ///
    /// [`Teacher::answer`]: crate::Teacher::answer
    Teachers,
    /// Teachers send plain votes, and the server adds the whole noise to the encrypted sum: the paper's central noise.
    Server,
}

/// The public description of one labelling round, the same for teachers, server and student.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Round {
    label: [u8; 32],
    query_list: [u8; 32],
    queries: usize,
    classes: usize,
    range: VoteRange,
    teachers: usize,
    min_teachers: usize,
    noise: NoisePlace,
    mechanism: String,
    threshold: Option<i64>,
    simulation: bool,
}

/// A round that cannot be described.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
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
    /// The smallest number of teachers is not one of theirs.
    #[error("at least {found} teachers must answer: 1 to {teachers} can")]
    MinTeachers {
        /// The number asked for.
        found: usize,
        /// Number of teachers.
        teachers: usize,
    },
    /// The threshold is outside the range of counts, so it would decide nothing, or one outcome would be too many.
    #[error("threshold {found}: noisy counts of this round lie from {min} to {max}")]
    Threshold {
        /// The threshold asked for, in votes.
        found: i64,
        /// The smallest noisy count.
        min: i64,
        /// The largest noisy count.
        max: i64,
    },
    /// With a threshold there would be more outcomes than answers have room for.
    #[error("{classes} classes and \"no answer\": an answer has room for {max} outcomes")]
    Outcomes {
        /// Number of classes.
        classes: usize,
        /// Most outcomes.
        max: usize,
    },
    /// The mechanism's description is too long.
    #[error("the mechanism's description has {found} bytes, allowed are {max}")]
    Mechanism {
        /// Its length.
        found: usize,
        /// The largest length.
        max: usize,
    },
}

impl Round {
    /// Most values (`queries * classes`) that one message carries: 8 MiB of bodies and as much of masks.
    pub const MAX_VALUES: usize = 1 << 20;
    /// Most queries of a round: a result has at most 2 GiB.
    pub const MAX_QUERIES: usize = 1 << 16;
    /// Most bytes of the description of the mechanism.
    pub const MAX_MECHANISM: usize = 256;
    /// Most teachers of a round.
    pub const MAX_TEACHERS: usize = 1 << 20;
    /// Most classes of a round (a label is a byte); a parameter set may support fewer.
    pub const MAX_CLASSES: usize = 256;

    /// Describes a round in which all teachers must answer, with a share of noise each. `label` names it (a run id, for
    /// example); `noise_bound` bounds the absolute value of the total noise in one class, in votes.
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
            ("queries", queries, Self::MAX_QUERIES),
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
        Ok(Self {
            label: Sha256::digest(label).into(),
            query_list: [0; 32],
            queries,
            classes,
            range,
            teachers,
            min_teachers: teachers,
            noise: NoisePlace::Teachers,
            mechanism: String::new(),
            threshold: None,
            simulation: false,
        })
    }

    /// The same round, bound to a list of queries by its SHA-256.
    #[must_use]
    pub fn with_query_list(mut self, sha256: [u8; 32]) -> Self {
        self.query_list = sha256;
        self
    }

    /// The same round, for which it is enough that `min_teachers` answer.
    ///
    /// # Errors
    /// If that is none, or more than there are.
    pub fn with_min_teachers(mut self, min_teachers: usize) -> Result<Self, RoundError> {
        if min_teachers == 0 || min_teachers > self.teachers {
            return Err(RoundError::MinTeachers { found: min_teachers, teachers: self.teachers });
        }
        self.min_teachers = min_teachers;
        Ok(self)
    }

    /// The same round, with the noise of `mechanism` (its name and parameters, as text that is equal only for equal
    /// mechanisms), added at `place`.
    ///
    /// # Errors
    /// If the text is longer than [`Self::MAX_MECHANISM`] bytes.
    pub fn with_noise(mut self, place: NoisePlace, mechanism: &str) -> Result<Self, RoundError> {
        if mechanism.len() > Self::MAX_MECHANISM {
            return Err(RoundError::Mechanism { found: mechanism.len(), max: Self::MAX_MECHANISM });
        }
        self.noise = place;
        mechanism.clone_into(&mut self.mechanism);
        Ok(self)
    }

    /// The same round with confident aggregation: a query whose noisy maximum is below `threshold` votes gets no answer.
    ///
    /// # Errors
    /// If no noisy count, or every one, is below the threshold, or "no answer" would be one outcome too many.
    pub fn with_threshold(mut self, threshold: i64) -> Result<Self, RoundError> {
        let clamp = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        let (teachers, bound) = (clamp(self.range.teachers()), clamp(self.range.noise_bound()));
        let (min, max) = (-bound, bound.saturating_add(teachers));
        if !(min..=max).contains(&threshold) {
            return Err(RoundError::Threshold { found: threshold, min, max });
        }
        if self.classes >= Outcomes::MAX {
            return Err(RoundError::Outcomes { classes: self.classes, max: Outcomes::MAX });
        }
        self.threshold = Some(threshold);
        Ok(self)
    }

    /// The same round as a simulation: its keys or its noise come from a seed, and protect nobody.
    #[must_use]
    pub fn as_simulation(mut self) -> Self {
        self.simulation = true;
        self
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

    /// Number of teachers that must answer.
    #[must_use]
    pub fn min_teachers(&self) -> usize {
        self.min_teachers
    }

    /// Who adds the noise.
    #[must_use]
    pub fn noise_place(&self) -> NoisePlace {
        self.noise
    }

    /// The description of the noise's mechanism; empty if it was not stated.
    #[must_use]
    pub fn mechanism(&self) -> &str {
        &self.mechanism
    }

    /// The number of votes that a noisy maximum must reach for an answer.
    #[must_use]
    pub fn threshold(&self) -> Option<i64> {
        self.threshold
    }

    /// Whether keys or noise come from a seed.
    #[must_use]
    pub fn is_simulation(&self) -> bool {
        self.simulation
    }

    /// SHA-256 of the list of queries; zeros if it was not stated.
    #[must_use]
    pub fn query_list(&self) -> &[u8; 32] {
        &self.query_list
    }

    /// What a query can end with.
    #[must_use]
    pub fn outcomes(&self) -> Outcomes {
        Outcomes::new(self.classes, self.threshold.is_some())
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

    /// The identifier of this round under a key: SHA-256 of the following bytes, numbers little-endian.
    ///
    /// ```text
    /// bytes  content
    /// 14     "speed/round/v2"
    /// 32     SHA-256 of the label
    /// 32     key id
    /// 32     SHA-256 of the list of queries, or zeros
    /// 5 x 8  queries, classes, teachers, least number of teachers, noise bound
    /// 1      noise: 1 from the teachers, 2 from the server
    /// 1      simulation: 0 or 1
    /// 1      threshold: 0 or 1
    /// 8      the threshold, or 0
    /// ..     the mechanism's description
    /// ```
    #[must_use]
    pub fn id(&self, key: KeyId) -> RoundId {
        let mut hash = Sha256::new();
        hash.update(b"speed/round/v2");
        hash.update(self.label);
        hash.update(key.as_bytes());
        hash.update(self.query_list);
        let [queries, classes, least] = [self.queries, self.classes, self.min_teachers].map(|number| number as u64);
        for number in [queries, classes, self.range.teachers(), least, self.range.noise_bound()] {
            hash.update(number.to_le_bytes());
        }
        let place = match self.noise {
            NoisePlace::Teachers => 1,
            NoisePlace::Server => 2,
        };
        hash.update([place, u8::from(self.simulation), u8::from(self.threshold.is_some())]);
        hash.update(self.threshold.unwrap_or(0).to_le_bytes());
        hash.update(self.mechanism.as_bytes());
        RoundId(hash.finalize().into())
    }
}

/// The identifier of a round: a hash of everything that its parties agree on ([`Round::id`]).
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

    fn round(label: &[u8], queries: usize, classes: usize, teachers: usize, bound: u64) -> Round {
        Round::new(label, queries, classes, teachers, bound).expect("valid")
    }

    #[test]
    fn the_id_depends_on_every_part() {
        let key = |byte| KeyId::from_bytes([byte; 32]);
        let base = || round(b"run", 3, 4, 5, 6);
        let noise = |place, text| base().with_noise(place, text).expect("short");
        let ids = [
            base().id(key(0)),
            base().id(key(1)),
            round(b"run2", 3, 4, 5, 6).id(key(0)),
            round(b"run", 4, 3, 5, 6).id(key(0)),
            round(b"run", 3, 4, 6, 5).id(key(0)),
            round(b"run", 3, 4, 5, 7).id(key(0)),
            base().with_query_list([1; 32]).id(key(0)),
            base().with_min_teachers(4).expect("some").id(key(0)),
            noise(NoisePlace::Server, "").id(key(0)),
            noise(NoisePlace::Teachers, "discrete-laplace gamma=0.1").id(key(0)),
            base().with_threshold(0).expect("in range").id(key(0)),
            base().with_threshold(1).expect("in range").id(key(0)),
            base().as_simulation().id(key(0)),
        ];
        assert_eq!(ids[0], base().with_min_teachers(5).expect("all").id(key(0)));
        for (i, first) in ids.iter().enumerate() {
            assert!(ids[..i].iter().all(|other| other != first), "{i}");
        }
    }

    #[test]
    fn the_id_of_the_documented_example() {
        // The same bytes hashed by Python's hashlib, written out from docs/protocol.md.
        let round = round(b"example", 100, 10, 250, 898)
            .with_query_list([7; 32])
            .with_min_teachers(200)
            .and_then(|round| round.with_noise(NoisePlace::Teachers, "discrete-laplace gamma=0.1"))
            .and_then(|round| round.with_threshold(-3))
            .expect("valid");
        let id: String =
            round.id(KeyId::from_bytes([9; 32])).as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(id, "57c255d80417063de87042e5cfb2fddb9c5f01eecc65240bce45af0e6cdd7de0");
    }

    #[test]
    fn terms_out_of_range_are_refused() {
        let base = || round(b"run", 3, 4, 5, 6);
        for found in [0, 6] {
            assert_eq!(base().with_min_teachers(found), Err(RoundError::MinTeachers { found, teachers: 5 }));
        }
        assert!(base().with_threshold(-6).is_ok() && base().with_threshold(11).is_ok());
        for found in [-7, 12, i64::MIN, i64::MAX] {
            assert_eq!(base().with_threshold(found), Err(RoundError::Threshold { found, min: -6, max: 11 }));
        }
        assert!(matches!(round(b"", 1, 128, 5, 6).with_threshold(0), Err(RoundError::Outcomes { classes: 128, .. })));
        assert!(base().with_noise(NoisePlace::Server, &"x".repeat(257)).is_err());
    }

    #[test]
    fn impossible_shapes_are_refused() {
        for (q, k, n, what) in
            [(0, 2, 1, "queries"), (1, 0, 1, "classes"), (1, 2, 0, "teachers"), (1, 257, 1, "classes")]
        {
            assert!(matches!(Round::new(b"", q, k, n, 0), Err(RoundError::Dimension { what: w, .. }) if w == what));
        }
        assert!(matches!(Round::new(b"", 1 << 16, 17, 1, 0), Err(RoundError::TooManyValues { .. })));
        assert!(Round::new(b"", usize::MAX, 256, 1, 0).is_err());
    }
}
