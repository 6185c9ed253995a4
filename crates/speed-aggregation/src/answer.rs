//! The server's answer to one query.

use crate::codec::{Decode, DecodeError, ENVELOPE, Encode, FixedLength, Flags, Limits, Reader, Writer, in_envelope};
use crate::getters::{debug_as, getters};
use crate::ids::{KeyId, RoundId};
use crate::outcome::Outcomes;
use crate::parameters::Parameters;
use crate::round::Round;

/// The encrypted winner of one query.
///
/// # Contents
/// The phase is the code of the winning class plus an error. The last bootstrap reads the code from a table, so the
/// answer contains neither the winning count nor the losing ones. The server then adds a fresh public-key encryption of
/// zero, so the mask reveals nothing about the bootstrap that made it, and floods the body with noise uniform on
/// `[-2^58, 2^58]`, which hides the error of that bootstrap. Only this error could still reveal counts, because they
/// steer the rotation that produces it. It is flooded three times; docs/homomorphic-argmax.md, section 7, bounds the
/// remaining distance. Ring-LWE hides the mask, with the phase that the student decrypts as a hint.
#[derive(Clone, PartialEq, Eq)]
pub struct EncryptedAnswer {
    pub(crate) key: KeyId,
    pub(crate) round: RoundId,
    pub(crate) query: usize,
    pub(crate) outcomes: Outcomes,
    pub(crate) words: Vec<u64>,
}

/// The reason why the student cannot open an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the fields")]
#[non_exhaustive]
pub enum OpenError {
    /// The answer was made under another key.
    #[error("answer for key {found}, this is key {expected}")]
    Key { expected: KeyId, found: KeyId },
    /// The opener's part does not have a word for each digit of the answer.
    #[error("the opener's part has no words for query {query}")]
    Part { query: usize },
    /// The answer decrypts to an outcome that the round does not have.
    #[error(
        "query {query} decrypts to outcome {code} of {outcomes}: the answer was damaged or not made by the circuit"
    )]
    Outcome { query: usize, code: usize, outcomes: usize },
}

/// Words of one ciphertext of an answer, the same for all parameter sets of this format version.
pub(crate) const WORDS: usize = Parameters::TOURNAMENT_128.polynomial_size + 1;

/// The bit of the flags for [`Outcomes::no_answer`].
const NO_ANSWER: u32 = 1;

/// Bytes before the ciphertexts: key id, round id, query, classes and flags.
const HEADER: usize = KeyId::LENGTH + RoundId::LENGTH + 2 * usize::LENGTH + Flags::LENGTH;

impl Encode for EncryptedAnswer {
    fn encode(&self, writer: &mut Writer) {
        self.key.encode(writer);
        self.round.encode(writer);
        self.query.encode(writer);
        self.outcomes.classes().encode(writer);
        Flags::new([(NO_ANSWER, self.outcomes.no_answer())]).encode(writer);
        self.words.encode(writer);
    }
}

impl Decode for EncryptedAnswer {
    fn decode(reader: &mut Reader<'_>, (): ()) -> Result<Self, DecodeError> {
        let (key, round) = (reader.read()?, reader.read()?);
        let query = reader.read_with(Limits { field: "query", min: 0, max: Round::MAX_QUERIES - 1 })?;
        let classes = reader.read_with(Limits { field: "classes", min: 1, max: Round::MAX_CLASSES })?;
        let flags: Flags = reader.read_with(NO_ANSWER)?;
        let outcomes = Outcomes::checked(classes, flags.has(NO_ANSWER))?;
        let words = reader.read_with(WORDS * outcomes.digits())?;
        Ok(Self { key, round, query, outcomes, words })
    }
}

in_envelope!(EncryptedAnswer, Answer, "answer");

impl EncryptedAnswer {
    /// Makes an answer from `words`, which holds one ciphertext for each digit of the outcome.
    pub(crate) fn new(key: KeyId, round: RoundId, query: usize, outcomes: Outcomes, words: Vec<u64>) -> Self {
        debug_assert_eq!(words.len(), outcomes.digits() * WORDS);
        Self { key, round, query, outcomes, words }
    }

    getters! {
        /// Returns the key under which the answer is encrypted.
        key: KeyId,
        /// Returns the round that the answer belongs to.
        round: RoundId,
        /// Returns the query that it answers.
        query: usize,
        /// Returns the outcomes that it can have.
        outcomes: Outcomes,
    }

    /// Returns the number of bytes of an answer.
    pub fn size(outcomes: Outcomes) -> usize {
        ENVELOPE + HEADER + outcomes.digits() * WORDS * size_of::<u64>()
    }
}

debug_as!(
    EncryptedAnswer,
    this => "EncryptedAnswer(round {}, query {}, {} outcomes, ..)", this.round, this.query, this.outcomes.count()
);
