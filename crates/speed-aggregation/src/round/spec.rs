//! The terms of a round.

use speed_core::{Digest, NoisePlacement, RandomnessKind, VoteShape};
use speed_mechanism::Mechanism;

/// The question of a round's queries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RoundKind {
    /// The class with the largest noisy count; with a threshold, "no answer" if that count is below it.
    #[default]
    Labels,
    /// Whether the largest noisy count reaches the threshold. Every teacher adds one share of noise to all its values of a
    /// query ([`check_values`](crate::check_values)), and the student does not learn the class.
    Check,
}

/// The terms of a labelling round. [`RoundSpec::new`] gives the defaults:
///
/// ```
/// use speed_aggregation::{Round, RoundSpec};
/// use speed_core::VoteShape;
///
/// let shape = VoteShape::new(250, 100, 10)?;
/// let round = Round::new(RoundSpec { threshold: Some(60), ..RoundSpec::new(b"run 1", shape, 900) })?;
/// assert_eq!(round.shape(), shape);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct RoundSpec {
    /// SHA-256 of the round's name (a run id, for example). Two rounds under one key need different names.
    pub label: Digest,
    /// Numbers of teachers, queries and classes. Every teacher has a vote and a share of the noise.
    pub shape: VoteShape,
    /// The number of teachers of each party, if a party sends one message for several teachers: the sum of their votes and
    /// of their shares of the noise. Empty if every teacher is a party.
    pub parties: Vec<u32>,
    /// The largest absolute value of the privacy noise in one class, summed over teachers, in votes.
    pub noise_bound: u64,
    /// SHA-256 of a list of the queries, if stated.
    pub query_list: Option<Digest>,
    /// SHA-256 of the names of the classes, if they have names ([`Classes::digest`](speed_core::Classes::digest)).
    pub class_list: Option<Digest>,
    /// The minimum number of teachers that must answer.
    pub min_teachers: usize,
    /// The parties that add the privacy noise.
    pub placement: NoisePlacement,
    /// The distribution of the privacy noise, if stated.
    pub mechanism: Option<Mechanism>,
    /// The number of votes that a noisy maximum must reach for an answer: confident aggregation.
    pub threshold: Option<i64>,
    /// The question of the queries. A check needs a threshold.
    pub kind: RoundKind,
    /// SHA-256 of the parties' names and keys, if they are programs that sign their messages.
    pub roster: Option<Digest>,
    /// SHA-256 of the proof key, if messages need proofs that they are well formed.
    pub proofs: Option<Digest>,
    /// SHA-256 of the evaluation key's file, if stated.
    pub evaluation_key: Option<Digest>,
    /// The index of the party that opens the result together with the student, if the opening is joint.
    pub opener: Option<usize>,
    /// The origin of keys and privacy noise. A simulation gives no privacy.
    pub randomness: RandomnessKind,
}

impl RoundSpec {
    /// Creates the terms of a round in which all teachers must answer, each adds a share of the noise, and no mechanism
    /// is stated.
    pub fn new(label: &[u8], shape: VoteShape, noise_bound: u64) -> Self {
        Self {
            label: Digest::of(label),
            shape,
            parties: Vec::new(),
            noise_bound,
            query_list: None,
            class_list: None,
            min_teachers: shape.teachers(),
            placement: NoisePlacement::Distributed,
            mechanism: None,
            threshold: None,
            kind: RoundKind::Labels,
            roster: None,
            proofs: None,
            evaluation_key: None,
            opener: None,
            randomness: RandomnessKind::OperatingSystem,
        }
    }
}
