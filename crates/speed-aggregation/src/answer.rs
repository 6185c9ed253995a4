//! The server's answer to one query.

use crate::codec::{DecodeError, Kind, Reader, Writer};
use crate::keys::KeyId;
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
/// (4), classes (4), 2049 words of 8 bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct EncryptedAnswer {
    pub(crate) key: KeyId,
    pub(crate) round: RoundId,
    pub(crate) query: usize,
    pub(crate) classes: usize,
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
    /// The answer decrypts to a class that does not exist.
    #[error("query {query} decrypts to class {class} of {classes}: the answer was damaged or not made by the circuit")]
    Class {
        /// The query.
        query: usize,
        /// The class found.
        class: usize,
        /// Number of classes.
        classes: usize,
    },
}

/// Words of an answer. All parameter sets of format version 1 share it.
pub(crate) const WORDS: usize = Parameters::TOURNAMENT_128.polynomial_size + 1;

impl EncryptedAnswer {
    pub(crate) fn new(key: KeyId, round: RoundId, query: usize, classes: usize, words: Vec<u64>) -> Self {
        Self { key, round, query, classes, words }
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

    /// The bytes that travel.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::new(Kind::Answer, 72 + size_of_val(self.words.as_slice()));
        writer.bytes(self.key.as_bytes());
        writer.bytes(self.round.as_bytes());
        for number in [self.query, self.classes] {
            writer.u32(u32::try_from(number).expect("the limits of Round are below 2^32"));
        }
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
        let query = reader.bounded("query", 0, Round::MAX_VALUES - 1)?;
        let classes = reader.bounded("classes", 2, Round::MAX_CLASSES)?;
        let words = reader.words(WORDS * if classes <= 16 { 1 } else { 2 })?;
        Ok(Self { key, round, query, classes, words })
    }
}

impl std::fmt::Debug for EncryptedAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "EncryptedAnswer(round {}, query {}, {} classes, ..)", self.round, self.query, self.classes)
    }
}
