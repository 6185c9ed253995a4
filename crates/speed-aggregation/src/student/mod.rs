//! The student's side: the secret key, the generation of all keys, and the opening of answers.
//!
//! Only this module knows the type of the secret key, and it exists only with the feature `student`: a teacher or a
//! server that is built without the feature has no name for a secret key, and no code that could use one.

mod generate;
mod open;

use tfhe::core_crypto::prelude::{LweSecretKey, LweSecretKeyOwned};
use zeroize::{Zeroize, Zeroizing};

use crate::codec::{DecodeError, Kind, Reader, Writer};
use crate::keys::KeyId;
use crate::parameters::Parameters;

#[cfg(test)]
pub(crate) use generate::generate_with_small_key;
pub use generate::{KeySet, generate_keys};

/// The student's key: opens answers, and would open every teacher's message. It never leaves the student.
///
/// Neither `Clone` nor printable; its memory is overwritten on drop. (What tfhe copied internally while keys were
/// generated, and the state of its random generators, is beyond reach and is not overwritten.)
///
/// On the wire (between envelope and checksum): parameter set (4 bytes), key id (32), the key's bits (256), lowest
/// first.
pub struct SecretKey {
    pub(crate) parameters: Parameters,
    pub(crate) id: KeyId,
    pub(crate) big: LweSecretKeyOwned<u64>,
}

impl SecretKey {
    /// The identifier of the key set.
    #[must_use]
    pub fn id(&self) -> KeyId {
        self.id
    }

    /// The bytes of the key's file.
    #[must_use]
    pub fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        let bits: Zeroizing<Vec<u8>> = Zeroizing::new(
            self.big
                .as_ref()
                .chunks(8)
                .map(|bits| bits.iter().rev().fold(0, |byte, &bit| byte << 1 | u8::from(bit == 1)))
                .collect(),
        );
        // The writer allocates once, so that no copy is left behind in memory.
        let mut writer = Writer::new(Kind::SecretKey, 36 + bits.len());
        writer.u32(self.parameters.code);
        writer.bytes(self.id.as_bytes());
        writer.bytes(&bits);
        Zeroizing::new(writer.finish())
    }

    /// Reads a secret key.
    ///
    /// # Errors
    /// If the bytes are not exactly one well-formed secret key of this version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes, Kind::SecretKey)?;
        let parameters = Parameters::read(&mut reader)?;
        let id = KeyId::from_bytes(reader.array()?);
        // All parameter sets have rings of this size.
        let bits: Zeroizing<[u8; Parameters::TOURNAMENT_128.polynomial_size / 8]> = Zeroizing::new(reader.array()?);
        reader.end()?;
        let words = bits.iter().flat_map(|byte| (0..8).map(move |bit| u64::from(byte >> bit & 1))).collect();
        Ok(Self { parameters, id, big: LweSecretKey::from_container(words) })
    }
}

impl Drop for SecretKey {
    fn drop(&mut self) {
        self.big.as_mut().zeroize();
    }
}

impl std::fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SecretKey({}, ..)", self.id)
    }
}
