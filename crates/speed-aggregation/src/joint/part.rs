//! The opener's part of a result.

use speed_core::Digest;

use crate::codec::{Content, Decode, DecodeError, ENVELOPE, Encode, FixedLength, Limits, Reader, Writer, in_envelope};
use crate::getters::{debug_as, getters};
use crate::ids::{KeyId, RoundId};
use crate::round::Round;
use crate::signature::Signature;
use crate::submission::digest_to_sign;

/// The reason why an opener cannot make its part of a result: the result is for another key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the result is for key {found}, this is a share of key {expected}")]
#[expect(missing_docs, reason = "the message describes the fields")]
pub struct PartError {
    pub expected: KeyId,
    pub found: KeyId,
}

/// An opener's part of a result: for every ciphertext of the answers one word, the flooded inner product of its mask with
/// the opener's share of the key. The student opens the result with it.
#[derive(Clone, PartialEq, Eq)]
pub struct OpeningPart {
    round: RoundId,
    result: Digest,
    teacher: usize,
    words: Vec<u64>,
    signature: Signature,
}

/// The largest number of words: two digits for each query.
const MAX_WORDS: usize = 2 * Round::MAX_QUERIES;

/// Bytes of a part without its words.
const FIXED: usize = ENVELOPE + RoundId::LENGTH + Digest::LENGTH + 2 * usize::LENGTH + Signature::LENGTH;

impl OpeningPart {
    /// The number of bytes of the largest part of any round.
    pub const MAX_BYTES: usize = FIXED + MAX_WORDS * size_of::<u64>();

    /// Signs the words for the result with this SHA-256.
    pub(crate) fn new(
        (round, result): (RoundId, Digest),
        teacher: usize,
        words: Vec<u64>,
        sign: impl FnOnce(Digest) -> Signature,
    ) -> Self {
        let unsigned = Self { round, result, teacher, words, signature: Signature::from_bytes([0; 64]) };
        let signature = sign(unsigned.signed().0);
        Self { signature, ..unsigned }
    }

    /// Returns the digest that the opener signed, and its signature.
    pub fn signed(&self) -> (Digest, &Signature) {
        let Self { round, result, teacher, words, signature } = self;
        (digest_to_sign(Self::KIND, &[round, result, teacher, &words.len(), words]), signature)
    }

    getters! {
        /// Returns the round.
        round: RoundId,
        /// Returns the SHA-256 of the result.
        result: Digest,
        /// Returns the opener's index, which is unauthenticated until the signature is checked.
        teacher: usize,
        /// Returns the words, one for each ciphertext of the answers.
        words: &[u64],
    }

    /// Returns whether there is one word for each ciphertext of a result of `round`.
    pub fn agrees_with(&self, round: &Round) -> bool {
        self.words.len() == round.shape().queries() * round.outcomes().digits()
    }

    /// Returns the number of bytes of a round's part.
    pub fn size(round: &Round) -> usize {
        FIXED + round.shape().queries() * round.outcomes().digits() * size_of::<u64>()
    }
}

impl Encode for OpeningPart {
    fn encode(&self, writer: &mut Writer) {
        self.round.encode(writer);
        self.result.encode(writer);
        self.teacher.encode(writer);
        self.words.len().encode(writer);
        self.words.encode(writer);
        self.signature.encode(writer);
    }
}

impl Decode for OpeningPart {
    fn decode(reader: &mut Reader<'_>, (): ()) -> Result<Self, DecodeError> {
        let (round, result) = (reader.read()?, reader.read()?);
        let teacher = reader.read_with(Limits { field: "teacher", min: 0, max: Round::MAX_TEACHERS - 1 })?;
        let count = reader.read_with(Limits { field: "words", min: 1, max: MAX_WORDS })?;
        Ok(Self { round, result, teacher, words: reader.read_with(count)?, signature: reader.read()? })
    }
}

in_envelope!(OpeningPart, OpeningPart, "part");

debug_as!(OpeningPart, this => "OpeningPart(round {}, result {}, {} words, ..)", this.round, this.result, this.words.len());
