//! Seeds of keys and of encryption randomness.

use speed_core::{EntropyError, Randomness};
use tfhe::core_crypto::commons::generators::DeterministicSeeder;
use tfhe::core_crypto::commons::math::random::{DefaultRandomGenerator, XofSeed};
#[cfg(any(feature = "student", test))]
use zeroize::Zeroizing;

pub(crate) type Seeder = DeterministicSeeder<DefaultRandomGenerator>;

/// Creates a generator of seeds for one purpose. In a simulation the seeds depend on its key, purpose, index and
/// context only. A kept key repeats noise but never the randomness of an encryption, because that would reveal the
/// difference of two plaintexts.
pub(crate) fn seeder(
    randomness: &Randomness,
    purpose: &str,
    index: u64,
    context: &[u8],
) -> Result<Seeder, EntropyError> {
    let randomness =
        if matches!(randomness, Randomness::SavedKey(_)) { &Randomness::OperatingSystem } else { randomness };
    let key = randomness.derive(b"speed/aggregation/seed/v1", purpose, index, context).key()?;
    Ok(Seeder::new(XofSeed::new(key.to_vec(), *b"speedagg")))
}

/// Draws uniform words, in parts of 32 bytes that the operating system's generator gives each. In a simulation they
/// depend on its key, the domain, the purpose and the context only.
#[cfg(any(feature = "student", test))]
pub(crate) fn uniform_words(
    randomness: &Randomness,
    (domain, purpose, context): (&[u8], &str, &[u8]),
    count: usize,
) -> Result<Zeroizing<Vec<u64>>, EntropyError> {
    let mut words = Zeroizing::new(Vec::with_capacity(count.next_multiple_of(4)));
    for block in 0..count.div_ceil(4) as u64 {
        let key = randomness.derive(domain, purpose, block, context).key()?;
        words.extend(key.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)));
    }
    words.truncate(count);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use tfhe::core_crypto::commons::math::random::Seeder as _;
    use zeroize::Zeroizing;

    use super::*;

    #[test]
    fn only_a_simulation_repeats_encryptions() {
        let seed = |randomness: &Randomness| seeder(randomness, "answer", 7, b"round").expect("entropy").seed();
        let simulation = Randomness::simulation([3; 32]);
        assert_eq!(seed(&simulation), seed(&simulation));
        let kept = Randomness::SavedKey(Zeroizing::new([3; 32]));
        assert_ne!(seed(&kept), seed(&kept));
        assert_ne!(seed(&Randomness::OperatingSystem), seed(&Randomness::OperatingSystem));
    }
}
