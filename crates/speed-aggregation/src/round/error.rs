//! Errors in a round's terms.

use speed_core::ShapeError;
use speed_mechanism::{Mechanism, MechanismError};

/// The reason why terms do not define a round.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the fields")]
#[non_exhaustive]
pub enum RoundError {
    /// An unsupported number of teachers, queries or classes.
    #[error("a round of {0}")]
    Shape(#[from] ShapeError),
    /// A product `queries * classes` beyond the limit of a message.
    #[error("{queries} queries of {classes} classes: a message carries at most {max} values")]
    TooManyValues { queries: usize, classes: usize, max: usize },
    /// A minimum number of teachers that is 0 or exceeds their number.
    #[error("{found} teachers must answer, expected a minimum of 1 to {teachers}")]
    MinTeachers { found: usize, teachers: usize },
    /// Parties whose teachers are not those of the round.
    #[error("parties have {found} teachers together, expected {expected}, at least one in each party")]
    Parties { expected: usize, found: u64 },
    /// An opener that is not one of the parties.
    #[error("the opener is party {found}, expected one of the {parties} parties that answer, from 0")]
    Opener { found: usize, parties: usize },
    /// A joint opening without a stated evaluation key.
    #[error(
        "a joint opening needs the SHA-256 of the evaluation key: with another evaluation key a verified answer could read the opener's \
         share of the key"
    )]
    OpenerEvaluationKey,
    /// A joint opening of a round whose result no party can verify.
    #[error(
        "a joint opening needs noise from the teachers: if the server adds it, the opener cannot verify the result, and an unverified \
         answer could read its share of the key"
    )]
    OpenerNoise,
    /// A threshold outside the range of counts, which would have no effect.
    #[error("threshold {found}: noisy counts of this round lie from {min} to {max}")]
    Threshold {
        /// The threshold requested, in votes.
        found: i64,
        min: i64,
        max: i64,
    },
    /// A check without a threshold.
    #[error("a check needs a threshold: found none")]
    CheckThreshold,
    /// Too many outcomes, including "no answer", for an answer.
    #[error("{classes} classes and \"no answer\": an answer has room for {max} outcomes")]
    Outcomes { classes: usize, max: usize },
    /// Noise that its parties cannot share.
    #[error(transparent)]
    Share(#[from] MechanismError),
    /// A mechanism whose noise is not an integer.
    #[error("{found} cannot be encrypted: the noise of a round is an integer number of votes")]
    Mechanism { found: Mechanism },
}
