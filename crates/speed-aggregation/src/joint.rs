//! Joint opening: the secret key is the sum of a student's and an opener's share, and both are needed to open an answer.

use speed_core::{Digest, derive_key};
#[cfg(feature = "student")]
use speed_core::{EntropyError, Randomness};
use zeroize::Zeroizing;

use crate::answer::AnswerList;
use crate::answer::WORDS;
#[cfg(feature = "student")]
use crate::answer::{EncryptedAnswer, OpenError};
use crate::codec::{
    Content, Decode, DecodeError, ENVELOPE, Encode, FixedLength, Kind, Limits, Reader, Writer, in_envelope,
};
use crate::getters::{debug_as, getters};
use crate::ids::{KeyId, RoundId};
#[cfg(feature = "student")]
use crate::layout::outcome_of_phases;
#[cfg(feature = "student")]
use crate::outcome::Outcome;
use crate::parameters::Parameters;
#[cfg(feature = "student")]
use crate::random::uniform_words;
use crate::round::Round;
use crate::signature::Signature;
#[cfg(feature = "student")]
use crate::student::SecretKey;
use crate::submission::digest_to_sign;

#[cfg(all(test, feature = "student"))]
mod tests;

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

/// A summand of a secret key: a word modulo 2^64 for each bit of the key. Each share alone is uniform and independent of
/// the key. It is neither `Clone` nor printable, and its memory is overwritten on drop.
struct Share {
    parameters: Parameters,
    id: KeyId,
    is_simulation: bool,
    /// SHA-256 of the evaluation key's file.
    evaluation_key: Digest,
    /// The key of an opener's flooding, which only the opener has: zeros in the student's share.
    flooding_key: Zeroizing<[u8; 32]>,
    words: Zeroizing<Vec<u64>>,
}

impl Share {
    /// Returns the inner product with the mask of a ciphertext of `WORDS` words.
    fn product(&self, ciphertext: &[u64]) -> u64 {
        let products = self.words.iter().zip(ciphertext).map(|(share, mask)| share.wrapping_mul(*mask));
        products.fold(0, u64::wrapping_add)
    }
}

impl Encode for Share {
    fn encode(&self, writer: &mut Writer) {
        self.parameters.encode(writer);
        self.id.encode(writer);
        usize::from(self.is_simulation).encode(writer);
        self.evaluation_key.encode(writer);
        Digest::from_bytes(*self.flooding_key).encode(writer);
        self.words.as_slice().encode(writer);
    }
}

impl Decode for Share {
    fn decode(reader: &mut Reader<'_>, (): ()) -> Result<Self, DecodeError> {
        let (parameters, id): (Parameters, _) = (reader.read()?, reader.read()?);
        let flags: usize = reader.read_with(Limits { field: "flags", min: 0, max: 1 })?;
        let is_simulation = flags == 1;
        let evaluation_key = reader.read()?;
        let flooding_key = Zeroizing::new(*reader.read::<Digest>()?.as_bytes());
        let words = Zeroizing::new(reader.read_with(parameters.polynomial_size)?);
        Ok(Self { parameters, id, is_simulation, evaluation_key, flooding_key, words })
    }
}

/// Defines a share with a role, which is the kind of its envelope.
macro_rules! share_with_role {
    ($(#[$doc:meta])* $name:ident, $kind:expr, $text:literal, floods: $floods:literal) => {
        $(#[$doc])*
        pub struct $name(Share);

        impl $name {
            /// Returns the identifier of the key set.
            pub fn id(&self) -> KeyId {
                self.0.id
            }

            /// Returns the parameter set of the key.
            pub fn parameters(&self) -> &Parameters {
                &self.0.parameters
            }

            /// Returns whether the key comes from a seed, so that it is public.
            pub fn is_simulation(&self) -> bool {
                self.0.is_simulation
            }

            /// Returns SHA-256 of the file of the evaluation key that was generated with the secret key. Another evaluation key
            /// could make answers that read the share, although a verification that uses it succeeds.
            pub fn evaluation_key(&self) -> Digest {
                self.0.evaluation_key
            }

            /// Returns the bytes of the share's file, which are secret.
            pub fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
                Zeroizing::new(self.seal())
            }

            /// Reads a share.
            ///
            /// # Errors
            /// If the bytes are not exactly one well-formed share of this role and version.
            pub fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
                Self::unseal(bytes, ())
            }
        }

        impl Encode for $name {
            fn encode(&self, writer: &mut Writer) {
                self.0.encode(writer);
            }
        }

        impl Decode for $name {
            fn decode(reader: &mut Reader<'_>, (): ()) -> Result<Self, DecodeError> {
                let share: Share = reader.read()?;
                // Parts without flooding would show the circuit's error; a student's share that has the key is not a share of this role.
                let found = u64::from(share.flooding_key.iter().any(|byte| *byte != 0));
                let expected = u64::from($floods);
                if found != expected {
                    let field = "the presence of a key of the flooding";
                    return Err(DecodeError::Field { field, found, min: expected, max: expected });
                }
                Ok(Self(share))
            }
        }

        impl Content for $name {
            const KIND: Kind = $kind;
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!($text, "({}, ..)"), self.0.id)
            }
        }
    };
}

share_with_role! {
    /// The opener's summand of a secret key. With it a party of the round makes its part of a result, which the student needs
    /// to open the result. Alone it decrypts nothing.
    OpenerShare, Kind::OpenerShare, "OpenerShare", floods: true
}

#[cfg(feature = "student")]
share_with_role! {
    /// The student's summand of a secret key. It opens answers together with an opener's [part](OpeningPart). Alone it decrypts
    /// nothing.
    StudentShare, Kind::StudentShare, "StudentShare", floods: false
}

/// The domain of the randomness of shares.
#[cfg(feature = "student")]
const SHARES: &[u8] = b"speed/aggregation/joint/v1";

/// The domain of the flooding of parts.
const FLOODING: &[u8] = b"speed/aggregation/joint/flooding/v1";

impl OpenerShare {
    /// Makes the opener's part of a result: for every ciphertext `(a, b)` of its answers the word `<a, s> + e`, where `s` is
    /// this share and `e` is uniform on `[-2^57, 2^57)` (the parameter sets' flooding of a part). The flooding hides the error of
    /// the answer, also from a student that colludes with the server ([`JointGuarantee`](crate::encoding::JointGuarantee)).
    ///
    /// The flooding is a pseudorandom function of the ciphertext, whose key is in this share. So one ciphertext always has the same flooding,
    /// and the mean of several parts cannot remove it.
    ///
    /// The caller verified, with the evaluation key of this share, that the server computed this result, whose file has the SHA-256 `result`: a ciphertext of
    /// another origin could read this share bit by bit.
    ///
    /// # Errors
    /// If the result is for another key.
    pub fn part(
        &self,
        list: &AnswerList,
        (result, teacher): (Digest, usize),
        sign: impl FnOnce(Digest) -> Signature,
    ) -> Result<OpeningPart, PartError> {
        let Share { parameters, id, .. } = &self.0;
        if list.key() != *id {
            return Err(PartError { expected: *id, found: list.key() });
        }
        let log = parameters.part_flooding_log;
        let words = list.words().chunks_exact(WORDS).map(|ciphertext| {
            let flooding = (self.random_word(ciphertext) >> (u64::BITS - log - 1)).wrapping_sub(1 << log);
            self.0.product(ciphertext).wrapping_add(flooding)
        });
        Ok(OpeningPart::new((list.round(), result), teacher, words.collect(), sign))
    }

    /// Returns a pseudorandom word for a ciphertext: the first eight bytes of SHA-256 of the flooding's key and the ciphertext. All
    /// inputs have the same length.
    fn random_word(&self, ciphertext: &[u64]) -> u64 {
        let bytes: Vec<u8> = ciphertext.iter().flat_map(|word| word.to_le_bytes()).collect();
        let hash = Zeroizing::new(derive_key(FLOODING, &*self.0.flooding_key, "flooding of a part", 0, &bytes));
        u64::from_le_bytes(*hash.first_chunk().expect("32 bytes"))
    }
}

#[cfg(feature = "student")]
impl SecretKey {
    /// Splits the key into two summands modulo 2^64. The student's summand is uniform, from the operating system's generator
    /// or a simulation's key, so each summand alone is independent of the key. `evaluation_key` is SHA-256 of the file of the
    /// evaluation key that was generated with this key.
    ///
    /// # Errors
    /// If the operating system provides no randomness.
    pub fn split(
        &self,
        evaluation_key: Digest,
        randomness: &Randomness,
    ) -> Result<(StudentShare, OpenerShare), EntropyError> {
        let (parameters, id, bits) = (self.parameters, self.id, self.big.as_ref());
        let first = uniform_words(randomness, (SHARES, "share of a key", id.as_bytes()), bits.len())?;
        let mut second = Zeroizing::new(Vec::with_capacity(bits.len()));
        second.extend(bits.iter().zip(first.iter()).map(|(bit, first)| bit.wrapping_sub(*first)));
        let flooding_key = randomness.derive(SHARES, "flooding of an opener", 0, id.as_bytes()).key()?;
        let is_simulation = randomness.is_simulation();
        let share = |flooding_key, words| Share { parameters, id, is_simulation, evaluation_key, flooding_key, words };
        Ok((StudentShare(share(Zeroizing::new([0; 32]), first)), OpenerShare(share(flooding_key, second))))
    }
}

#[cfg(feature = "student")]
impl StudentShare {
    /// Decrypts an answer with the opener's part of its result.
    ///
    /// # Errors
    /// If the answer was made under another key, the part has no words for it, or it decrypts to an outcome that the round
    /// does not have.
    pub fn open(&self, answer: &EncryptedAnswer, part: &OpeningPart) -> Result<Outcome, OpenError> {
        if answer.key != self.0.id {
            return Err(OpenError::Key { expected: self.0.id, found: answer.key });
        }
        let (query, outcomes) = (answer.query, answer.outcomes);
        let digits = outcomes.digits();
        let words = part.words().chunks_exact(digits).nth(query).ok_or(OpenError::Part { query })?;
        let phases = answer.words.chunks_exact(WORDS).zip(words).map(|(ciphertext, word)| {
            ciphertext[WORDS - 1].wrapping_sub(self.0.product(ciphertext)).wrapping_sub(*word)
        });
        let code = outcome_of_phases(phases);
        outcomes.from_code(code).ok_or(OpenError::Outcome { query, code, outcomes: outcomes.count() })
    }

    #[cfg(test)]
    pub(crate) fn words(&self) -> &[u64] {
        &self.0.words
    }
}

#[cfg(all(test, feature = "student"))]
impl OpenerShare {
    pub(crate) fn words(&self) -> &[u64] {
        &self.0.words
    }
}
