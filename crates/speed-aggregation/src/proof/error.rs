//! Errors of proofs.

use speed_core::{Digest, EntropyError};

use crate::encoding::EncodingError;
use crate::server::ServerError;
use crate::teacher::TeacherError;

/// The reason why a proof cannot be made or is not valid.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the fields")]
#[non_exhaustive]
pub enum ProofError {
    /// A range of values that is empty or wider than the encoding's.
    #[error("a range of {found} bits, expected 1 to {max} for this encoding")]
    Range { found: u32, max: u32 },
    /// A proof key that tfhe fails to generate.
    #[error("cannot generate a proof key: {0}")]
    Generate(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A proof key that differs from the one that the round names.
    #[error("proof key {found}, expected the round's key {expected}")]
    OtherKey { expected: Digest, found: Digest },
    /// A proof key for values of another range, which would either let a teacher send more or refuse honest values.
    #[error(
        "a proof key for values of {found} bits, but the values of this round have {expected} bits: the student must \
         create the round and its proof key again"
    )]
    OtherRange { expected: u32, found: u32 },
    /// A proof key for other rounds.
    #[error("the proof key is for {key}, the round has {round}")]
    Key { key: ProofTarget, round: ProofTarget },
    /// Bytes that are not a proof.
    #[error("not a proof: {0}")]
    Decode(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A proof whose encoding is not of the expected size.
    #[error("cannot encode a proof in {expected} bytes: {source}")]
    Encode {
        /// The number of bytes of a proof.
        expected: usize,
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The proof is not valid for this message, teacher and round.
    #[error("the proof of teacher {teacher} is not valid for its message")]
    Invalid { teacher: usize },
    /// The teacher cannot answer.
    #[error(transparent)]
    Teacher(#[from] TeacherError),
    /// The server refuses the message.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The round has no exact encoding.
    #[error(transparent)]
    Encoding(#[from] EncodingError),
    /// The operating system provided no randomness.
    #[error(transparent)]
    Entropy(#[from] EntropyError),
}

/// The kind of messages that a proof key proves or that a round has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProofTarget {
    /// The name of the parameter set.
    pub parameters: &'static str,
    /// Binary logarithm of a vote on the torus.
    pub unit_log: u32,
    /// The largest number of values of a proof.
    pub values: usize,
}

impl std::fmt::Display for ProofTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} with units of 2^{} and {} values", self.parameters, self.unit_log, self.values)
    }
}

/// Wraps the cause of bytes that are not a proof or a proof key.
pub(super) fn decode<E: Into<Box<dyn std::error::Error + Send + Sync>>>(error: E) -> ProofError {
    ProofError::Decode(error.into())
}
