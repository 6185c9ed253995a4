//! The server's answer to one query.

use crate::codec::{DecodeError, Kind, Reader, Writer};
use crate::keys::KeyId;
use crate::outcome::Outcomes;
use crate::parameters::Parameters;
use crate::round::{Round, RoundId};

/// The encrypted winner of one query.
///
/// # What it carries
/// The phase is the code of the winning class plus an error, and nothing else: the last bootstrap writes the code out of
/// a table, so the winning count is not in the answer, and losing counts never are. The ciphertext is then
/// re-randomised with a fresh public-key encryption of zero, so its mask tells the student nothing about the bootstrap
/// that made it, and flooded with noise uniform on `[-2^58, 2^58]`, which hides the bootstrap's own error (standard
/// deviation about `2^38`) up to a statistical distance of about `2^-20` an answer. That error is the only way left in
/// which counts could show (they steer the rotation that makes it). `2^-20` is a bound to live with in an
/// honest-but-curious setting, not a cryptographic one.
///
/// Content on the wire (after the envelope of 12 bytes, before the checksum of 16): key id (32), round id (32), query
/// (4), classes (4), flags (4; bit 0: "no answer" is possible), 2049 words of 8 bytes for each digit of the outcome
/// (see [`Outcomes`]).
#[derive(Clone, PartialEq, Eq)]
pub struct EncryptedAnswer {
    pub(crate) key: KeyId,
    pub(crate) round: RoundId,
    pub(crate) query: usize,
    pub(crate) outcomes: Outcomes,
    pub(crate) words: Vec<u64>,
}

/// Why the student cannot open an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// The answer was made under another key.
    #[error("answer for key {found}, this is key {expected}")]
    Key {
        /// This key.
        expected: KeyId,
        /// The answer's key.
        found: KeyId,
    },
    /// The answer decrypts to an outcome that does not exist.
    #[error(
        "query {query} decrypts to outcome {code} of {outcomes}: the answer was damaged or not made by the circuit"
    )]
    Outcome {
        /// The query.
        query: usize,
        /// The code found.
        code: usize,
        /// Number of outcomes.
        outcomes: usize,
    },
}

/// Words of one ciphertext of an answer. All parameter sets of this format version share it.
pub(crate) const WORDS: usize = Parameters::TOURNAMENT_128.polynomial_size + 1;

/// The flag for [`Outcomes::no_answer`].
pub(crate) const NO_ANSWER: u32 = 1;

impl EncryptedAnswer {
    /// `words` holds one ciphertext for each digit of the outcome.
    pub(crate) fn new(key: KeyId, round: RoundId, query: usize, outcomes: Outcomes, words: Vec<u64>) -> Self {
        debug_assert_eq!(words.len(), outcomes.digits() * WORDS);
        Self { key, round, query, outcomes, words }
    }

    /// The key under which it is encrypted.
    #[must_use]
    pub fn key(&self) -> KeyId {
        self.key
    }

    /// The round that the answer belongs to.
    #[must_use]
    pub fn round(&self) -> RoundId {
        self.round
    }

    /// The query that it answers.
    #[must_use]
    pub fn query(&self) -> usize {
        self.query
    }

    /// The outcomes that it can have.
    #[must_use]
    pub fn outcomes(&self) -> Outcomes {
        self.outcomes
    }

    /// Bytes of an answer.
    #[must_use]
    pub fn size(outcomes: Outcomes) -> usize {
        crate::codec::ENVELOPE + 76 + outcomes.digits() * WORDS * size_of::<u64>()
    }

    /// The bytes that travel.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::new(Kind::Answer, 76 + size_of_val(self.words.as_slice()));
        writer.bytes(self.key.as_bytes());
        writer.bytes(self.round.as_bytes());
        writer.count(self.query);
        writer.count(self.outcomes.classes());
        writer.u32(if self.outcomes.no_answer() { NO_ANSWER } else { 0 });
        writer.words(&self.words);
        writer.finish()
    }

    /// Reads an answer. Memory is bounded by the length of `bytes`.
    ///
    /// # Errors
    /// If the bytes are not exactly one well-formed answer of this version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes, Kind::Answer)?;
        let key = KeyId::from_bytes(reader.array()?);
        let round = RoundId::from_bytes(reader.array()?);
        let query = reader.bounded("query", 0, Round::MAX_QUERIES - 1)?;
        let classes = reader.bounded("classes", 2, Round::MAX_CLASSES)?;
        let outcomes = Outcomes::checked(classes, reader.flags("flags", NO_ANSWER)? != 0)?;
        let words = reader.words(WORDS * outcomes.digits())?;
        Ok(Self { key, round, query, outcomes, words })
    }
}

impl std::fmt::Debug for EncryptedAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (query, count) = (self.query, self.outcomes.count());
        write!(f, "EncryptedAnswer(round {}, query {query}, {count} outcomes, ..)", self.round)
    }
}
