//! The secret key, which opens answers.

use tfhe::core_crypto::prelude::{
    CiphertextModulus, LweCiphertext, LweSecretKey, LweSecretKeyOwned, decrypt_lwe_ciphertext,
};
use zeroize::{Zeroize, Zeroizing};

use crate::answer::{EncryptedAnswer, OpenError, WORDS};
use crate::codec::{Content, Decode, DecodeError, Encode, Kind, Reader, Writer};
use crate::getters::debug_as;
use crate::ids::KeyId;
use crate::layout::outcome_of_phases;
use crate::outcome::Outcome;
use crate::parameters::Parameters;

/// The student's key: it opens answers, and could open every teacher's message. It never leaves the student.
///
/// It is neither `Clone` nor printable, and its memory is overwritten on drop. (Internal copies that tfhe makes during
/// key generation, and the state of its random generators, are not accessible and not overwritten.)
pub struct SecretKey {
    pub(crate) parameters: Parameters,
    pub(crate) id: KeyId,
    pub(crate) big: LweSecretKeyOwned<u64>,
}

impl SecretKey {
    /// Creates a key from these bits, one per word.
    #[cfg(test)]
    pub(crate) fn from_bits(parameters: Parameters, id: KeyId, bits: Vec<u64>) -> Self {
        Self { parameters, id, big: LweSecretKey::from_container(bits) }
    }

    /// Returns the identifier of the key set.
    #[cfg(test)]
    pub(crate) fn id(&self) -> KeyId {
        self.id
    }

    /// Returns the bytes of the key's file.
    pub fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        Zeroizing::new(self.seal())
    }

    /// Reads a secret key.
    ///
    /// # Errors
    /// If the bytes are not exactly one well-formed secret key of this version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        Self::unseal(bytes, ())
    }

    /// Decrypts an answer.
    ///
    /// # Errors
    /// If the answer was made under another key, or decrypts to an outcome that the round does not have.
    pub fn open(&self, answer: &EncryptedAnswer) -> Result<Outcome, OpenError> {
        if answer.key != self.id {
            return Err(OpenError::Key { expected: self.id, found: answer.key });
        }
        let code = outcome_of_phases(answer.words.chunks_exact(WORDS).map(|words| self.phase(words)));
        let (query, outcomes) = (answer.query, answer.outcomes.count());
        answer.outcomes.from_code(code).ok_or(OpenError::Outcome { query, code, outcomes })
    }

    /// Returns the decrypted phase: code and error.
    fn phase(&self, words: &[u64]) -> u64 {
        let ciphertext = LweCiphertext::from_container(words, CiphertextModulus::new_native());
        decrypt_lwe_ciphertext(&self.big, &ciphertext).0
    }
}

/// Bytes of the key's bits. All parameter sets have rings of this size.
const BITS: usize = Parameters::TOURNAMENT_128.polynomial_size / 8;

impl Encode for SecretKey {
    fn encode(&self, writer: &mut Writer) {
        self.parameters.encode(writer);
        self.id.encode(writer);
        for bits in self.big.as_ref().chunks(8) {
            writer.bytes(&[bits.iter().rev().fold(0, |byte, &bit| byte << 1 | u8::from(bit == 1))]);
        }
    }
}

impl Decode for SecretKey {
    fn decode(reader: &mut Reader<'_>, (): ()) -> Result<Self, DecodeError> {
        let (parameters, id) = (reader.read()?, reader.read()?);
        let bits: Zeroizing<[u8; BITS]> = Zeroizing::new(reader.array()?);
        // Allocated once, because a growing vector would leave parts of the key behind.
        let mut words = Vec::with_capacity(8 * BITS);
        words.extend(bits.iter().flat_map(|byte| (0..8).map(move |bit| u64::from(byte >> bit & 1))));
        Ok(Self { parameters, id, big: LweSecretKey::from_container(words) })
    }
}

impl Content for SecretKey {
    const KIND: Kind = Kind::SecretKey;
}

impl Drop for SecretKey {
    fn drop(&mut self) {
        self.big.as_mut().zeroize();
    }
}

debug_as!(SecretKey, this => "SecretKey({}, ..)", this.id);
