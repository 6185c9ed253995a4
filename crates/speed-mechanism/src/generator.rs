//! The generator of the random bits of privacy noise.

use std::convert::Infallible;

use chacha20::ChaCha20Rng;
use rand::{SeedableRng, TryCryptoRng, TryRng};
use speed_core::{EntropyError, Randomness};
use zeroize::ZeroizeOnDrop;

/// A cryptographic generator of privacy noise: ChaCha20, wiped from memory when dropped, opaque in `Debug`. It records
/// whether it belongs to a simulation.
pub struct NoiseGenerator {
    generator: ChaCha20Rng,
    simulation: bool,
}

impl NoiseGenerator {
    /// Starts a generator; every teacher needs a separate one.
    ///
    /// # Errors
    /// If the operating system gives no random bytes.
    pub fn new(randomness: &Randomness) -> Result<Self, EntropyError> {
        let generator = ChaCha20Rng::from_seed(*randomness.key()?);
        Ok(Self { generator, simulation: randomness.is_simulation() })
    }

    /// Returns whether its noise is seeded, hence reproducible and not private.
    pub fn is_simulation(&self) -> bool {
        self.simulation
    }
}

// The inner generator wipes its state and its buffered output (feature `zeroize` of chacha20).
impl ZeroizeOnDrop for NoiseGenerator {}

speed_core::debug_as!(NoiseGenerator, _this => "NoiseGenerator {{ .. }}");

impl TryRng for NoiseGenerator {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        self.generator.try_next_u32()
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        self.generator.try_next_u64()
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        self.generator.try_fill_bytes(bytes)
    }
}

impl TryCryptoRng for NoiseGenerator {}
