//! The bytes behind seeded masks and their noise.

use aes::Aes128;
use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};
use pulp::bytemuck::cast_slice_mut;
#[cfg(feature = "student")]
use zeroize::Zeroize as _;

/// Bytes of one block of the cipher.
const BLOCK: usize = 16;
/// Samples of noise whose bytes are computed together.
#[cfg(feature = "student")]
const SAMPLES: usize = 1024;

/// The bytes of a seed: AES-128 in counter mode, from zero, as in tfhe's generator. That one returns byte by byte, which takes most of
/// the time in which the 225 MB of masks of an evaluation key are made.
pub(crate) struct Stream(Aes128);

impl Stream {
    pub(crate) fn new(seed: u128) -> Self {
        Self(Aes128::new(&Array::from(seed.to_le_bytes())))
    }

    /// Fills `words` with uniform words, from the one with the number `first`.
    pub(crate) fn uniform(&self, first: usize, words: &mut [u64]) {
        // A block has two words. The first and the last block may be used in part.
        let (head, words) = words.split_at_mut((first % 2).min(words.len()));
        let (pairs, tail) = words.split_at_mut(words.len() / 2 * 2);
        let block = first.div_ceil(2);
        head.iter_mut().for_each(|word| *word = self.pair(first / 2)[1]);
        tail.iter_mut().for_each(|word| *word = self.pair(block + pairs.len() / 2)[0]);
        self.blocks(block, cast_slice_mut(pairs));
        pairs.iter_mut().for_each(|word| *word = u64::from_le(*word));
    }

    /// Returns the words of a block.
    fn pair(&self, block: usize) -> [u64; 2] {
        let mut pair = [0; 2];
        self.blocks(block, cast_slice_mut(&mut pair));
        pair.map(u64::from_le)
    }

    /// Fills `blocks`, from the one with the number `first`.
    fn blocks(&self, first: usize, blocks: &mut [[u8; BLOCK]]) {
        for (number, block) in (first as u128..).zip(&mut *blocks) {
            *block = number.to_le_bytes();
        }
        self.0.encrypt_blocks(Array::cast_slice_from_core_mut(blocks));
    }

    /// Adds noise to `words`, TUniform on `[-2^b, 2^b]`, from the sample with the number `first`: `B` bytes each, of which the
    /// lowest `b + 2` bits count.
    ///
    /// # Panics
    /// If `B` bytes are not what `b` needs.
    #[cfg(feature = "student")]
    pub(crate) fn add_noise<const B: usize>(&self, log: u32, first: usize, words: &mut [u64]) {
        assert_eq!((log + 2).div_ceil(8), B as u32, "bytes of a sample");
        let mask = u64::MAX >> (62 - log);
        // A batch may begin and end within a block.
        let mut blocks = [[0; BLOCK]; (SAMPLES * size_of::<u64>()).div_ceil(BLOCK) + 1];
        for (batch, words) in words.chunks_mut(SAMPLES).enumerate() {
            let start = (first + batch * SAMPLES) * B;
            let blocks = &mut blocks[..(start % BLOCK + words.len() * B).div_ceil(BLOCK)];
            self.blocks(start / BLOCK, blocks);
            let (samples, _) = blocks.as_flattened()[start % BLOCK..].as_chunks::<B>();
            for (word, bytes) in words.iter_mut().zip(samples) {
                let mut all = [0; 8];
                all[..B].copy_from_slice(bytes);
                let drawn = u64::from_le_bytes(all) & mask;
                // Halves, rounded up: the two ends of the range have half the probability of the others.
                let sample = (drawn >> 1).wrapping_add(drawn & 1).wrapping_sub(1 << log);
                *word = word.wrapping_add(sample);
            }
        }
        // With mask and body, which are public, the noise gives the key.
        blocks.as_flattened_mut().zeroize();
    }
}

#[cfg(all(test, feature = "student"))]
mod tests {
    use tfhe::core_crypto::commons::math::random::{
        DefaultRandomGenerator, DynamicDistribution, RandomGenerator, Seed,
    };

    use super::*;

    const SEED: u128 = 0x0123_4567_89ab_cdef_0011_2233_4455_6677;

    #[test]
    fn words_and_noise_are_those_of_tfhe() {
        let mut generator = RandomGenerator::<DefaultRandomGenerator>::new(Seed(SEED));
        let mut expected = vec![0_u64; 5000];
        generator.fill_slice_with_random_uniform(&mut expected);
        for (first, count) in [(0, 5000), (1, 4999), (917, 1), (918, 918), (4999, 1), (7, 0)] {
            let mut found = vec![0; count];
            Stream::new(SEED).uniform(first, &mut found);
            assert_eq!(found, expected[first..first + count], "{count} words from {first}");
        }
        noise::<3>(17);
        noise::<6>(45);
    }

    fn noise<const B: usize>(log: u32) {
        let mut generator = RandomGenerator::<DefaultRandomGenerator>::new(Seed(SEED));
        let mut expected: Vec<u64> = (0..3000).collect();
        generator.unsigned_integer_slice_wrapping_add_random_from_distribution_assign(
            &mut expected,
            DynamicDistribution::<u64>::new_t_uniform(log),
        );
        for (first, count) in [(0, 3000), (1, 2999), (341, 1), (683, 700)] {
            let mut found: Vec<u64> = (first as u64..(first + count) as u64).collect();
            Stream::new(SEED).add_noise::<B>(log, first, &mut found);
            assert_eq!(found, expected[first..first + count], "{count} samples of 2^{log} from {first}");
        }
    }
}
