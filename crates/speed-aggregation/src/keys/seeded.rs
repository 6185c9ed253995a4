//! The compact form of the parts of an evaluation key.

use crate::codec::{Decode, DecodeError, Encode, Reader, Writer};
use crate::parameters::Parameters;

/// Bodies of ciphertexts, and the seed of the [stream](super::Stream) of their masks.
pub(crate) struct Seeded<B = Vec<u64>> {
    pub(crate) seed: u128,
    pub(crate) bodies: B,
}

impl<B: Encode> Encode for Seeded<B> {
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

/// Words rounded to multiples of `2^16`, without their last 16 bits. The rounding error is small beside the noise of a ciphertext under the
/// ring key.
pub(crate) struct Rounded(pub(crate) Vec<RoundedWord>);

/// The bytes of a rounded word.
pub(crate) type RoundedWord = [u8; Rounded::BYTES];

impl Rounded {
    /// Number of bytes of a word.
    pub(crate) const BYTES: usize = 6;
    /// Number of bits that are rounded off.
    pub(crate) const BITS: u32 = u64::BITS - 8 * Self::BYTES as u32;

    /// Rounds a word to the nearest multiple.
    #[cfg(feature = "student")]
    pub(crate) fn round(word: u64) -> RoundedWord {
        let [_, _, bytes @ ..] = word.wrapping_add(1 << (Self::BITS - 1)).to_le_bytes();
        bytes
    }

    /// Returns the multiple.
    pub(crate) fn word([a, b, c, d, e, f]: RoundedWord) -> u64 {
        u64::from_le_bytes([0, 0, a, b, c, d, e, f])
    }
}

impl Encode for Rounded {
    fn encode(&self, writer: &mut Writer) {
        writer.bytes(self.0.as_flattened());
    }
}

/// The parameter is the number of words.
impl Decode<usize> for Rounded {
    fn decode(reader: &mut Reader<'_>, count: usize) -> Result<Self, DecodeError> {
        let (words, _) = reader.take(count.saturating_mul(Self::BYTES))?.as_chunks();
        Ok(Self(words.to_vec()))
    }
}

/// Returns the exponents `t` of the automorphisms `X -> X^t` that packing applies, in order: `2^k + 1` up to `N + 1`.
pub(crate) fn trace_rotations(p: &Parameters) -> impl Iterator<Item = usize> {
    (1..=p.polynomial_size.trailing_zeros()).map(|k| (1 << k) + 1)
}
