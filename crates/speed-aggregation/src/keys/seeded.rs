//! The compact form of the parts of an evaluation key.

use crate::codec::{Decode, DecodeError, Encode, Reader, Writer};
use crate::parameters::Parameters;

/// Bodies of ciphertexts, and the seed of the [stream](super::Stream) of their masks.
pub(crate) struct Seeded<B = Vec<u64>> {
    pub(crate) seed: u128,
    pub(crate) bodies: B,
}

impl<B: Encode> Encode for Seeded<B> {
    fn encoded_len(&self) -> usize {
        self.seed.encoded_len() + self.bodies.encoded_len()
    }

    fn encode(&self, writer: &mut Writer) {
        self.seed.encode(writer);
        self.bodies.encode(writer);
    }
}

/// The parameter is the number of bodies.
impl<B: Decode<usize>> Decode<usize> for Seeded<B> {
    fn decode(reader: &mut Reader<'_>, bodies: usize) -> Result<Self, DecodeError> {
        Ok(Self { seed: reader.read()?, bodies: reader.read_with(bodies)? })
    }
}

/// Words rounded to multiples of `2^16`, which are stored without their last 16 bits. The rounding error is small beside the noise of a
/// ciphertext under the ring key.
pub(crate) struct Rounded(Vec<u64>);

impl Rounded {
    /// Number of bytes of a word in files.
    pub(crate) const BYTES: usize = 6;
    /// Number of bits that are rounded off.
    pub(crate) const BITS: u32 = u64::BITS - 8 * Self::BYTES as u32;

    /// Rounds words to the nearest multiples.
    #[cfg(feature = "student")]
    pub(crate) fn new(mut words: Vec<u64>) -> Self {
        let half = 1 << (Self::BITS - 1);
        words.iter_mut().for_each(|word| *word = word.wrapping_add(half) >> Self::BITS << Self::BITS);
        Self(words)
    }

    /// Returns the words.
    pub(crate) fn into_words(self) -> Vec<u64> {
        self.0
    }
}

impl Encode for Rounded {
    fn encoded_len(&self) -> usize {
        self.0.len() * Self::BYTES
    }

    fn encode(&self, writer: &mut Writer) {
        for word in &self.0 {
            writer.bytes(&word.to_le_bytes()[8 - Self::BYTES..]);
        }
    }
}

/// The parameter is the number of words.
impl Decode<usize> for Rounded {
    fn decode(reader: &mut Reader<'_>, count: usize) -> Result<Self, DecodeError> {
        let (words, _) = reader.take(count.saturating_mul(Self::BYTES))?.as_chunks::<{ Self::BYTES }>();
        let word = |bytes: &[u8; Self::BYTES]| {
            let mut all = [0; 8];
            all[8 - Self::BYTES..].copy_from_slice(bytes);
            u64::from_le_bytes(all)
        };
        Ok(Self(words.iter().map(word).collect()))
    }
}

/// Returns the exponents `t` of the automorphisms `X -> X^t` that packing applies, in order: `2^k + 1` up to `N + 1`.
pub(crate) fn trace_rotations(p: &Parameters) -> impl Iterator<Item = usize> {
    (1..=p.polynomial_size.trailing_zeros()).map(|k| (1 << k) + 1)
}
