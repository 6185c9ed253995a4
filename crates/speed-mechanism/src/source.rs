//! Where the random bits of the privacy noise come from.

use std::convert::Infallible;
use std::fmt;

use chacha20::ChaCha20Rng;
use rand::{SeedableRng, TryCryptoRng, TryRng};
use zeroize::{ZeroizeOnDrop, Zeroizing};

use crate::MechanismError;

/// Where a teacher's noise comes from. The seed never shows in `Debug`.
#[derive(Clone)]
pub enum NoiseSource {
    /// ChaCha20 keyed by the operating system: the only source with a privacy guarantee.
    OperatingSystem,
    /// ChaCha20 keyed by bytes that the caller chose: the noise can be repeated, so there is **no privacy** against
    /// anybody who knows them. Outputs of such a run must say so. Every teacher needs its own seed.
    Simulation {
        /// The key, one of its own for every teacher.
        seed: [u8; 32],
    },
}

impl fmt::Debug for NoiseSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OperatingSystem => f.write_str("OperatingSystem"),
            Self::Simulation { .. } => f.write_str("Simulation { .. }"),
        }
    }
}

/// A cryptographic generator for privacy noise: ChaCha20, wiped from memory when dropped, opaque in `Debug`.
pub struct NoiseGenerator(ChaCha20Rng);

// The inner generator wipes its state and its buffered output (feature `zeroize` of chacha20).
impl ZeroizeOnDrop for NoiseGenerator {}

impl fmt::Debug for NoiseGenerator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NoiseGenerator { .. }")
    }
}

impl TryRng for NoiseGenerator {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        self.0.try_next_u32()
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        self.0.try_next_u64()
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        self.0.try_fill_bytes(bytes)
    }
}

impl TryCryptoRng for NoiseGenerator {}

/// Starts the generator of one teacher's noise.
///
/// # Errors
/// [`MechanismError::Entropy`] if the operating system gives no random bytes.
pub fn noise_generator(source: NoiseSource) -> Result<NoiseGenerator, MechanismError> {
    let mut seed = Zeroizing::new([0; 32]);
    match source {
        NoiseSource::OperatingSystem => getrandom::fill(seed.as_mut_slice())
            .map_err(|error| MechanismError::Entropy { reason: error.to_string() })?,
        NoiseSource::Simulation { seed: given } => *seed = given,
    }
    Ok(NoiseGenerator(ChaCha20Rng::from_seed(*seed)))
}
