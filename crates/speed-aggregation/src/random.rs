//! Seeds of keys and of encryption randomness.

use speed_core::{EntropyError, Randomness};
use tfhe::core_crypto::commons::generators::DeterministicSeeder;
use tfhe::core_crypto::commons::math::random::{DefaultRandomGenerator, XofSeed};

pub(crate) type Seeder = DeterministicSeeder<DefaultRandomGenerator>;

/// Starts a generator of seeds for one purpose. Those of a simulation depend on its key, purpose, index and context only.
pub(crate) fn seeder(
    randomness: &Randomness,
    purpose: &str,
    index: u64,
    context: &[u8],
) -> Result<Seeder, EntropyError> {
    let key = randomness.derive(b"speed/aggregation/seed/v1", purpose, index, context).key()?;
    Ok(Seeder::new(XofSeed::new(key.to_vec(), *b"speedagg")))
}
