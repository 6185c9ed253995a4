//! The teachers' key.

use std::sync::Arc;

use sha2::Digest as _;
use speed_core::Digest;
use tfhe::core_crypto::prelude::{CiphertextModulus, LweCompactPublicKey, LweCompactPublicKeyOwned};

use crate::codec::{Content, Decode, DecodeError, Encode, Kind, Reader, Writer};
use crate::ids::KeyId;
use crate::parameters::Parameters;

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
        let mut hash = sha2::Sha256::new();
        hash.update(b"speed/public-key/v2");
        hash.update(parameters.name.as_bytes());
        for word in key.as_ref() {
            hash.update(word.to_le_bytes());
        }
        Self { parameters: *parameters, id: KeyId::new(Digest::from_bytes(hash.finalize().into())), key: Arc::new(key) }
    }

    /// Returns the identifier of the key set.
    #[must_use]
    pub fn id(&self) -> KeyId {
        self.id
    }

    /// Returns the parameter set.
    #[must_use]
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Returns the size of the key's words, in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        size_of_val(self.key.as_ref().as_ref())
    }

    /// Returns the bytes of the key's file.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        self.seal()
    }

    /// Reads a public key. Memory is bounded by the length of `bytes`.
    ///
    /// # Errors
    /// If the bytes are not exactly one well-formed public key of this version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        Self::unseal(bytes, ())
    }
}

impl Encode for PublicKey {
    fn encoded_len(&self) -> usize {
        self.parameters.encoded_len() + self.size()
    }

    fn encode(&self, writer: &mut Writer) {
        self.parameters.encode(writer);
        self.key.as_ref().as_ref().encode(writer);
    }
}

impl Decode for PublicKey {
    fn decode(reader: &mut Reader<'_>, (): ()) -> Result<Self, DecodeError> {
        let parameters: Parameters = reader.read()?;
        let words: Vec<u64> = reader.read_with(2 * parameters.polynomial_size)?;
        Ok(Self::new(&parameters, LweCompactPublicKey::from_container(words, CiphertextModulus::new_native())))
    }
}

impl Content for PublicKey {
    const KIND: Kind = Kind::PublicKey;
}

impl std::fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PublicKey({}, {})", self.id, self.parameters.name)
    }
}
