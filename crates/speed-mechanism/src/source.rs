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
    /// ChaCha20 keyed by bytes of [`fresh_key`] that were kept, so that answers that were paid for can be given again after an
    /// interruption. Whoever reads them can take the noise away: they are as secret as votes, and removed once answers are given.
    Kept {
        /// The key, one of its own for every teacher.
        key: Zeroizing<[u8; 32]>,
    },
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
            Self::Kept { .. } => f.write_str("Kept { .. }"),
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

/// Draws a key from the operating system.
///
/// # Errors
/// [`MechanismError::Entropy`] if it gives no random bytes.
pub fn fresh_key() -> Result<Zeroizing<[u8; 32]>, MechanismError> {
    let mut key = Zeroizing::new([0; 32]);
    getrandom::fill(key.as_mut_slice()).map_err(|error| MechanismError::Entropy { reason: error.to_string() })?;
    Ok(key)
}

/// Starts the generator of one teacher's noise.
///
/// # Errors
/// [`MechanismError::Entropy`] if the operating system gives no random bytes.
pub fn noise_generator(source: NoiseSource) -> Result<NoiseGenerator, MechanismError> {
    let seed = match source {
        NoiseSource::OperatingSystem => fresh_key()?,
        NoiseSource::Kept { key } => key,
        NoiseSource::Simulation { seed } => Zeroizing::new(seed),
    };
    Ok(NoiseGenerator(ChaCha20Rng::from_seed(*seed)))
}
