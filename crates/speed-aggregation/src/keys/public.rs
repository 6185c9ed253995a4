//! The teachers' key.

use std::f64::consts::TAU;
use std::sync::{Arc, LazyLock};

use sha2::Digest as _;
use speed_core::{Digest, derive_key};
use tfhe::core_crypto::prelude::{CiphertextModulus, LweCompactPublicKey, LweCompactPublicKeyOwned};

use crate::codec::{Decode, DecodeError, ENVELOPE, Encode, FixedLength, Reader, Writer, in_envelope};
use crate::getters::{debug_as, getters};
use crate::ids::KeyId;
use crate::parameters::Parameters;

/// The seed of a public key's mask.
pub(crate) type MaskSeed = [u8; 32];

/// The multipliers at which a body is checked: odd numbers up to this, each times the powers of two below `2^46`.
const MAX_ODD: u64 = 127;
const POWERS: u32 = 46;

/// The largest sum of cosines of an honest body's words at one of the 2,944 multipliers, except with probability 2^-128 (Hoeffding: the
/// root of 2 * 2048 ln(2,944 * 2^128)).
const MAX_CONCENTRATION: f64 = 630.0;

/// The teachers' key: it can only encrypt. Cloning is cheap.
///
/// A hash expands a seed into its mask, so the generator of a key cannot choose the mask. A body is refused if it is
/// concentrated, itself or times a small number or a power of two: everyone could then read votes without a key, because the
/// same multiple of a ciphertext's body would not depend on its randomness. This finds faults of a generator, not malice. A
/// generator can always tell others the secret key, and no check detects it, so the student's key generation is trusted.
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

    getters! {
        /// Returns the identifier of the key set.
        id: KeyId,
        /// Returns the parameter set.
        parameters: &Parameters,
    }

    /// Returns the size of the key's words, in bytes.
    pub(crate) fn size(&self) -> usize {
        size_of_val(self.key.as_ref().as_ref())
    }

    /// Returns the number of bytes of the file of a key of these parameters.
    pub fn file_size(parameters: &Parameters) -> usize {
        ENVELOPE + Self::content_size(parameters)
    }

    /// Returns the number of bytes of a key without an envelope.
    pub(super) fn content_size(parameters: &Parameters) -> usize {
        usize::LENGTH + size_of::<MaskSeed>() + parameters.polynomial_size * size_of::<u64>()
    }
}

impl Encode for PublicKey {
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
        let multipliers = (1..=MAX_ODD).step_by(2).flat_map(|odd| (0..POWERS).map(move |power| odd << power));
        if let Some(multiplier) = multipliers.into_iter().find(|&by| concentration(&body, by) > MAX_CONCENTRATION) {
            return Err(DecodeError::Degenerate { multiplier });
        }
        Ok(Self::new(&parameters, seed, &body))
    }
}

/// Returns the sum of the cosines of a body's words, each times a number, as angles on the torus: the number of words if
/// all multiples are close to zero, and about its root for words at random. An angle is rounded to the middle of the
/// interval of its first twelve bits, so a word at random still has a mean of zero.
fn concentration(body: &[u64], by: u64) -> f64 {
    static COSINES: LazyLock<[f64; 1 << 12]> =
        LazyLock::new(|| std::array::from_fn(|interval| ((interval as f64 + 0.5) * TAU / f64::from(1 << 12)).cos()));
    body.iter().map(|word| COSINES[(word.wrapping_mul(by) >> 52) as usize]).sum()
}

in_envelope!(PublicKey, PublicKey, "public key");

debug_as!(PublicKey, this => "PublicKey({}, {})", this.id, this.parameters.name);

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
        let of = |word: &dyn Fn(u64) -> u64| PublicKey::new(&p, [0; 32], &(0..2048).map(word).collect::<Vec<_>>());
        // Every value is the body modulo 2^62.
        let sparse = of(&|word| if word < 800 { 1 << 62 } else { 0 });
        // A body of noise alone, as if the secret key were zero.
        let noise = |word: u64| (word << 6).wrapping_sub(1 << 16);
        let sevenths = of(&|word| (word % 7 * (u64::MAX / 7)).wrapping_add(noise(word)));
        let quarters = of(&|word| (word << 62).wrapping_add(noise(word)));
        for (key, expected) in [(of(&|_| 0), 1), (of(&noise), 1), (sparse, 4), (sevenths, 7), (quarters, 4)] {
            let refused = PublicKey::from_bytes(&key.to_bytes());
            let Err(DecodeError::Degenerate { multiplier }) = refused else { panic!("{refused:?}") };
            assert!(multiplier <= expected, "{multiplier}, not {expected}");
        }
        let honest = generate_keys(&p, &Randomness::simulation([9; 32])).expect("a simulation").public;
        assert_eq!(PublicKey::from_bytes(&honest.to_bytes()).expect("honest").id(), honest.id());
    }
}
