//! The teachers' key.

use std::sync::Arc;

use sha2::Digest as _;
use speed_core::{Digest, derive_key};
use tfhe::core_crypto::prelude::{CiphertextModulus, LweCompactPublicKey, LweCompactPublicKeyOwned};

use crate::codec::{Content, Decode, DecodeError, ENVELOPE, Encode, FixedLength, Kind, Reader, Writer};
use crate::ids::KeyId;
use crate::parameters::Parameters;

/// The seed of a public key's mask.
pub(crate) type MaskSeed = [u8; 32];

/// The minimum number of words of a body that are at least a quarter of the torus away from 0. Half of an honest body's
/// words are; fewer than this has probability 2^-128 (Hoeffding: 1024 less the root of 2048 ln(2^128) / 2).
const MIN_LARGE_WORDS: usize = 722;

/// The teachers' key: it can only encrypt. Cloning is cheap.
///
/// A hash expands a seed into its mask, so the generator of a key cannot choose the mask. A body close to zero is
/// refused, because it would leave votes unencrypted. Only the owner can tell whether the body hides a good secret key,
/// so the student's key generation is trusted.
///
/// On the wire (between envelope and checksum): parameter set (4 bytes), the mask's seed (32), and the body, 2048 words of 8 bytes.
#[derive(Clone)]
pub struct PublicKey {
    pub(crate) parameters: Parameters,
    pub(crate) id: KeyId,
    seed: MaskSeed,
    pub(crate) key: Arc<LweCompactPublicKeyOwned<u64>>,
}

/// Returns the mask of a seed: SHA-256 of parameter set and seed in counter mode, four words per hash.
pub(crate) fn mask(parameters: &Parameters, seed: &MaskSeed) -> Vec<u64> {
    let block = |block| derive_key(b"speed/public-key/mask/v3", seed, parameters.name, block, b"");
    let bytes: Vec<u8> = (0..parameters.polynomial_size as u64 / 4).flat_map(block).collect();
    bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect()
}

impl PublicKey {
    /// Combines a body with the mask of a seed.
    pub(crate) fn new(parameters: &Parameters, seed: MaskSeed, body: &[u64]) -> Self {
        let mut hash = sha2::Sha256::new();
        hash.update(b"speed/public-key/v3");
        hash.update(parameters.name.as_bytes());
        hash.update(seed);
        for word in body {
            hash.update(word.to_le_bytes());
        }
        let mut words = mask(parameters, &seed);
        words.extend_from_slice(body);
        Self {
            parameters: *parameters,
            id: KeyId::new(Digest::from_bytes(hash.finalize().into())),
            seed,
            key: Arc::new(LweCompactPublicKey::from_container(words, CiphertextModulus::new_native())),
        }
    }

    fn body(&self) -> &[u64] {
        &self.key.as_ref().as_ref()[self.parameters.polynomial_size..]
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

    /// Returns the number of bytes of the file of a key of these parameters.
    #[must_use]
    pub fn file_size(parameters: &Parameters) -> usize {
        ENVELOPE + Self::content_size(parameters)
    }

    /// Returns the number of bytes of a key without an envelope.
    pub(super) fn content_size(parameters: &Parameters) -> usize {
        usize::LENGTH + size_of::<MaskSeed>() + parameters.polynomial_size * size_of::<u64>()
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
        self.parameters.encoded_len() + self.seed.len() + self.body().encoded_len()
    }

    fn encode(&self, writer: &mut Writer) {
        self.parameters.encode(writer);
        writer.bytes(&self.seed);
        self.body().encode(writer);
    }
}

impl Decode for PublicKey {
    fn decode(reader: &mut Reader<'_>, (): ()) -> Result<Self, DecodeError> {
        let parameters: Parameters = reader.read()?;
        let seed = reader.array()?;
        let body: Vec<u64> = reader.read_with(parameters.polynomial_size)?;
        let large = |word: &&u64| word.cast_signed().unsigned_abs() >= 1 << 62;
        let found = body.iter().filter(large).count();
        if found < MIN_LARGE_WORDS {
            return Err(DecodeError::Degenerate { found, min: MIN_LARGE_WORDS, words: body.len() });
        }
        Ok(Self::new(&parameters, seed, &body))
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

#[cfg(all(test, feature = "student"))]
mod tests {
    use speed_core::Randomness;

    use super::*;
    use crate::student::generate_keys;

    #[test]
    fn the_mask_is_the_hash_of_the_seed() {
        // Python: t = b"speed/public-key/mask/v3" + bytes([7] * 32) + (14).to_bytes(8, "little") + b"TOURNAMENT_128"
        //         [struct.unpack("<4Q", sha256(t + k.to_bytes(8, "little")).digest()) for k in (0, 511)]
        let mask = mask(&Parameters::TOURNAMENT_128, &[7; 32]);
        assert_eq!(mask.len(), 2048);
        assert_eq!((mask[0], mask[2047]), (0xdefa_e55d_7aac_2754, 0xfc87_aea7_0684_8a98));
    }

    #[test]
    fn a_public_key_that_does_not_hide_votes_is_refused() {
        let p = Parameters::TOURNAMENT_128;
        let zero = PublicKey::new(&p, [0; 32], &[0; 2048]);
        // A body of noise alone, as if the secret key were zero.
        let small: Vec<u64> = (0..2048_u64).map(|word| (word << 6).wrapping_sub(1 << 16)).collect();
        for key in [zero, PublicKey::new(&p, [0; 32], &small)] {
            let refused = PublicKey::from_bytes(&key.to_bytes());
            assert!(matches!(refused, Err(DecodeError::Degenerate { found: 0, .. })), "{refused:?}");
        }
        let honest = generate_keys(&p, &Randomness::simulation([9; 32])).expect("a simulation").public;
        assert_eq!(PublicKey::from_bytes(&honest.to_bytes()).expect("honest").id(), honest.id());
    }
}
