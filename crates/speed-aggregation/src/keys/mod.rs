//! The keys of teachers and server. The student's secret key is in [`crate::student`], behind a feature of its own.

mod evaluation;

use std::sync::Arc;

use sha2::{Digest, Sha256};
use tfhe::core_crypto::prelude::{CiphertextModulus, LweCompactPublicKey, LweCompactPublicKeyOwned};

use crate::codec::{DecodeError, Kind, Reader, Writer};
use crate::parameters::Parameters;

#[cfg(feature = "student")]
pub(crate) use evaluation::SeededParts;
pub use evaluation::{EvaluationKey, SeededEvaluationKey};
pub(crate) use evaluation::{EvaluationParts, Seeded, trace_rotations};

/// The identifier of a key set: SHA-256 of its public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeyId([u8; 32]);

impl KeyId {
    /// The 32 bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    pub(crate) fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

impl std::fmt::Display for KeyId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().take(8).try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The teachers' key: encrypts, and does nothing else. Cloning is cheap.
///
/// On the wire (between envelope and checksum): parameter set (4 bytes), then 4096 words of 8 bytes, mask and body.
#[derive(Clone)]
pub struct PublicKey {
    pub(crate) parameters: Parameters,
    pub(crate) id: KeyId,
    pub(crate) key: Arc<LweCompactPublicKeyOwned<u64>>,
}

impl PublicKey {
    pub(crate) fn new(parameters: &Parameters, key: LweCompactPublicKeyOwned<u64>) -> Self {
        let mut hash = Sha256::new();
        hash.update(b"speed/public-key/v2");
        hash.update(parameters.name.as_bytes());
        for word in key.as_ref() {
            hash.update(word.to_le_bytes());
        }
        Self { parameters: *parameters, id: KeyId(hash.finalize().into()), key: Arc::new(key) }
    }

    /// The identifier of the key set.
    #[must_use]
    pub fn id(&self) -> KeyId {
        self.id
    }

    /// The parameter set.
    #[must_use]
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Size of the key's words, in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        size_of_val(self.key.as_ref().as_ref())
    }

    /// The bytes of the key's file.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::new(Kind::PublicKey, 4 + self.size());
        self.write(&mut writer);
        writer.finish()
    }

    /// Reads a public key. Memory is bounded by the length of `bytes`.
    ///
    /// # Errors
    /// If the bytes are not exactly one well-formed public key of this version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes, Kind::PublicKey)?;
        let key = Self::read(&mut reader)?;
        reader.end()?;
        Ok(key)
    }

    fn write(&self, writer: &mut Writer) {
        writer.u32(self.parameters.code);
        writer.words(self.key.as_ref().as_ref());
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let parameters = Parameters::read(reader)?;
        let words = reader.take_words(2 * parameters.polynomial_size)?;
        Ok(Self::new(&parameters, LweCompactPublicKey::from_container(words, CiphertextModulus::new_native())))
    }
}

impl std::fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PublicKey({}, {})", self.id, self.parameters.name)
    }
}
