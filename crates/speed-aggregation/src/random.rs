//! Where keys and encryption randomness come from.

use sha2::{Digest, Sha256};
use tfhe::core_crypto::commons::generators::DeterministicSeeder;
use tfhe::core_crypto::commons::math::random::{DefaultRandomGenerator, XofSeed};
use zeroize::Zeroize;

/// The source of keys and of encryption randomness.
#[derive(Clone)]
pub enum KeySource {
    /// The operating system's cryptographic generator. The only choice that protects anyone.
    OperatingSystem,
    /// A fixed seed: keys and ciphertexts are the same bytes in every run and on any number of threads. Whoever knows
    /// the seed knows the secret key; for simulations only.
    Simulation([u8; 32]),
}

/// The operating system gave no randomness.
#[derive(Debug, thiserror::Error)]
#[error("the operating system's random generator failed: {0}")]
pub struct EntropyError(getrandom::Error);

pub(crate) type Seeder = DeterministicSeeder<DefaultRandomGenerator>;

impl KeySource {
    /// A generator of seeds for one purpose. Simulated ones depend on seed, purpose, index and context only.
    pub(crate) fn seeder(&self, purpose: &str, index: u64, context: &[u8]) -> Result<Seeder, EntropyError> {
        let mut bytes = [0_u8; 32];
        match self {
            Self::OperatingSystem => getrandom::fill(&mut bytes).map_err(EntropyError)?,
            Self::Simulation(seed) => {
                let mut hash = Sha256::new();
                hash.update(b"speed/aggregation/seed/v1");
                hash.update(seed);
                hash.update((purpose.len() as u64).to_le_bytes());
                hash.update(purpose.as_bytes());
                hash.update(index.to_le_bytes());
                hash.update(context);
                bytes.copy_from_slice(&hash.finalize());
            }
        }
        let seeder = Seeder::new(XofSeed::new(bytes.to_vec(), *b"speedagg"));
        bytes.zeroize();
        Ok(seeder)
    }
}

impl std::fmt::Debug for KeySource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::OperatingSystem => "OperatingSystem",
            Self::Simulation(_) => "Simulation(..)",
        })
    }
}
