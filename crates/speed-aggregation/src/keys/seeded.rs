//! The compact form of the parts of an evaluation key.

use tfhe::core_crypto::commons::math::random::{CompressionSeed, Seed};

use crate::codec::{Decode, DecodeError, Reader, encode_in_order};
use crate::parameters::Parameters;

/// Bodies of ciphertexts, and the seed of their masks.
pub(crate) struct Seeded {
    pub(crate) seed: u128,
    pub(crate) bodies: Vec<u64>,
}

impl Seeded {
    pub(crate) fn compression_seed(&self) -> CompressionSeed {
        CompressionSeed::from(Seed(self.seed))
    }
}

encode_in_order!(Seeded: seed, bodies);

/// The parameter is the number of bodies.
impl Decode<usize> for Seeded {
    fn decode(reader: &mut Reader<'_>, bodies: usize) -> Result<Self, DecodeError> {
        Ok(Self { seed: reader.read()?, bodies: reader.read_with(bodies)? })
    }
}

/// Returns the exponents `t` of the automorphisms `X -> X^t` that packing applies, in order: `2^k + 1` up to `N + 1`.
pub(crate) fn trace_rotations(p: &Parameters) -> impl Iterator<Item = usize> {
    (1..=p.polynomial_size.trailing_zeros()).map(|k| (1 << k) + 1)
}
