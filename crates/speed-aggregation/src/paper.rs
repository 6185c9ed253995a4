//! The paper's own argmax circuit, for comparison only: nothing else here uses it.
//!
//! It is neither exact nor secure by today's standards, and its counts arrive in the clear. The protocol uses
//! [`crate::Server`].

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use rayon::prelude::*;
use speed_core::{EntropyError, Randomness};
use tfhe::core_crypto::commons::math::random::{DefaultRandomGenerator, DynamicDistribution, Seeder as _};
use tfhe::core_crypto::prelude::*;
use zeroize::Zeroize;

use crate::aggregator::AggregationError;
use crate::getters::debug_as;
use crate::random::seeder;
use crate::threads;
use crate::votes::NoisyVotes;

type Lwe = LweCiphertextOwned<u64>;

/// The answer of [`PaperArgmax::argmax`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PaperAnswer {
    /// Classes whose ciphertexts claim to have won: one in most queries; none or several if counts are close.
    pub winners: Vec<usize>,
    /// Number of bootstraps of the circuit.
    pub bootstraps: usize,
    /// Time of the circuit on its thread, without encryption and decryption.
    pub time: Duration,
}

impl PaperAnswer {
    /// Returns the winner, if there is exactly one.
    pub fn winner(&self) -> Option<usize> {
        match self.winners[..] {
            [winner] => Some(winner),
            _ => None,
        }
    }
}

/// The argmax circuit of the paper (section on the homomorphic argmax, and the appendix "FHE argmax implementation
/// details") with its parameters: one sign bootstrap for each pair of classes gives `theta = ±1/36` (for ten classes; in
/// general `±1/(4(K-1))`), and a second bootstrap for each class asks whether its sum of thetas is the highest possible.
///
/// | | |
/// |---|---|
/// | security | about 110 bits, the paper's figure: `n = N = 1024`, `k = 1`, Gaussian noise of standard deviation 1e-9 of the torus |
/// | decomposition | `B_g = 64`, `l = 6` |
/// | counts | rescaled by `2 (teachers + 2 * 900) + 2`, which is the paper's 4102 for 250 teachers |
/// | cost, ten classes | 55 bootstraps, no key switch |
///
/// **Not exact**: a vote is half a bucket of the first bootstrap, and rounding alone is several buckets off. Close
/// counts are compared at random, so no class, several classes or the wrong class may win.
///
/// Differences from the paper: one key that encrypts the ring key under itself emulates its two bootstrapping keys,
/// which save key switches (the same operations in the same dimensions); the torus has 64 bits instead of 32; and the
/// sum is encrypted instead of one ciphertext per teacher, with the ciphertext noise of one ciphertext per teacher.
pub struct PaperArgmax {
    secret: LweSecretKeyOwned<u64>,
    bootstrap: FourierLweBootstrapKeyOwned,
    randomness: Randomness,
    teachers: usize,
}

const DIMENSION: usize = 1024;
const BASE_LOG: usize = 6;
const LEVELS: usize = 6;
const NOISE: f64 = 1e-9;
/// The paper's bound A on the noise of a count, in votes.
const AMPLITUDE: usize = 900;
/// An eighth of the torus: the second bootstrap gives plus or minus an eighth, to which another eighth is added.
const EIGHTH: u64 = 1 << 61;

impl PaperArgmax {
    /// Generates keys for the counts of `teachers` teachers. Takes some core-seconds, in parallel on rayon's current
    /// pool.
    ///
    /// # Errors
    /// If the operating system provides no randomness.
    pub fn new(randomness: Randomness, teachers: usize) -> Result<Self, EntropyError> {
        let mut seeder = seeder(&randomness, "keys of the paper's circuit", 0, b"")?;
        let mut secret_generator = SecretRandomGenerator::<DefaultRandomGenerator>::new(seeder.seed());
        let mut generator = EncryptionRandomGenerator::<DefaultRandomGenerator>::new(seeder.seed(), &mut seeder);
        let ring = allocate_and_generate_new_binary_glwe_secret_key(
            GlweDimension(1),
            PolynomialSize(DIMENSION),
            &mut secret_generator,
        );
        let secret = ring.clone().into_lwe_secret_key();
        let key: LweBootstrapKeyOwned<u64> = par_allocate_and_generate_new_lwe_bootstrap_key(
            &secret,
            &ring,
            DecompositionBaseLog(BASE_LOG),
            DecompositionLevelCount(LEVELS),
            noise(1),
            CiphertextModulus::new_native(),
            &mut generator,
        );
        ring.into_container().zeroize();
        let mut bootstrap = FourierLweBootstrapKeyOwned::new(
            key.input_lwe_dimension(),
            key.glwe_size(),
            key.polynomial_size(),
            key.decomposition_base_log(),
            key.decomposition_level_count(),
        );
        par_convert_standard_lwe_bootstrap_key_to_fourier(&key, &mut bootstrap);
        Ok(Self { secret, bootstrap, randomness, teachers })
    }

    /// Encrypts noisy counts (one per class, two classes or more), computes their argmax on ciphertexts, and decrypts.
    /// In a simulation the key's seed and `query` determine the encryptions.
    ///
    /// # Errors
    /// If the operating system provides no randomness.
    ///
    /// # Panics
    /// With fewer than two counts.
    pub fn argmax(&self, query: u64, counts: &[i64]) -> Result<PaperAnswer, EntropyError> {
        assert!(counts.len() >= 2, "{} counts: nothing to compare", counts.len());
        let encrypted = self.encrypt(query, counts)?;
        let start = Instant::now();
        let flags = self.circuit(&encrypted);
        let time = start.elapsed();
        let winners = (0..flags.len()).filter(|&class| self.is_set(&flags[class])).collect();
        Ok(PaperAnswer { winners, bootstraps: counts.len() * (counts.len() + 1) / 2, time })
    }

    /// Computes the argmax of some queries of a round, summed in the clear. Queries run in parallel, one per thread.
    /// Calls `on_answer` when a query finishes, with its index.
    ///
    /// # Errors
    /// If threads cannot be started, the operating system provides no randomness, or `on_answer` fails. No further
    /// query is started after that.
    ///
    /// # Panics
    /// If a query is not in the votes.
    pub fn aggregate_queries<E: From<AggregationError> + Send>(
        &self,
        votes: &NoisyVotes,
        queries: &[usize],
        threads: NonZeroUsize,
        on_answer: &(dyn Fn(usize, PaperAnswer) -> Result<(), E> + Sync),
    ) -> Result<(), E> {
        let pool = threads::pool(threads).map_err(AggregationError::from)?;
        let (counts, classes) = (votes.counts(), votes.shape().classes());
        pool.install(|| {
            queries.par_iter().with_max_len(1).try_for_each(|&query| {
                let counts = &counts[query * classes..(query + 1) * classes];
                let answer = self.argmax(query as u64, counts).map_err(AggregationError::from)?;
                on_answer(query, answer)
            })
        })
    }

    /// Returns the size of the bootstrapping key in memory, in bytes; the paper holds two.
    pub fn bootstrapping_key_size(&self) -> usize {
        size_of_val(self.bootstrap.as_view().data())
    }

    /// Returns the bytes of one encrypted count on the paper's torus of 32 bits; each teacher sends one per class and
    /// query.
    pub fn ciphertext_size() -> usize {
        (DIMENSION + 1) * size_of::<u32>()
    }

    /// Computes a quarter of the torus for a winner, and zero for every other class.
    fn circuit(&self, counts: &[Lwe]) -> Vec<Lwe> {
        let classes = counts.len();
        // The reciprocal of the paper's first output modulus, 36 for ten classes.
        let theta = u64::MAX / (4 * (classes as u64 - 1)) + 1;
        let mut sums = vec![zero(); classes];
        for later in 1..classes {
            for earlier in 0..later {
                let mut difference = counts[earlier].clone();
                lwe_ciphertext_sub_assign(&mut difference, &counts[later]);
                let sign = self.sign(&difference, theta);
                lwe_ciphertext_add_assign(&mut sums[earlier], &sign);
                lwe_ciphertext_sub_assign(&mut sums[later], &sign);
            }
        }
        // The winner's K - 1 thetas exceed the threshold by one; the runner-up's K - 3 fall short of it by one.
        let threshold = theta.wrapping_mul(classes as u64 - 2);
        let flag = |mut sum: Lwe| {
            lwe_ciphertext_plaintext_sub_assign(&mut sum, Plaintext(threshold));
            let mut flag = self.sign(&sum, EIGHTH);
            lwe_ciphertext_plaintext_add_assign(&mut flag, Plaintext(EIGHTH));
            flag
        };
        sums.into_iter().map(flag).collect()
    }

    /// Bootstraps with tfhe's own operation to `amplitude` or its negative, depending on the half of the torus that
    /// contains the input.
    fn sign(&self, input: &Lwe, amplitude: u64) -> Lwe {
        let mut table =
            GlweCiphertext::new(0_u64, GlweSize(2), PolynomialSize(DIMENSION), CiphertextModulus::new_native());
        table.get_mut_body().as_mut().fill(amplitude);
        let mut output = zero();
        programmable_bootstrap_lwe_ciphertext(input, &mut output, &table, &self.bootstrap);
        output
    }

    fn encrypt(&self, query: u64, counts: &[i64]) -> Result<Vec<Lwe>, EntropyError> {
        let mut seeder = seeder(&self.randomness, "counts for the paper's circuit", query, b"")?;
        let mut generator = EncryptionRandomGenerator::<DefaultRandomGenerator>::new(seeder.seed(), &mut seeder);
        let modulus = 2 * (self.teachers + 2 * AMPLITUDE) as i128 + 2;
        let encrypt = |&count: &i64| {
            let value = ((i128::from(count) << 64) / modulus) as u64;
            allocate_and_encrypt_new_lwe_ciphertext(
                &self.secret,
                Plaintext(value),
                noise(self.teachers),
                CiphertextModulus::new_native(),
                &mut generator,
            )
        };
        Ok(counts.iter().map(encrypt).collect())
    }

    /// Returns whether a flag is nearer to a quarter of the torus than to zero.
    fn is_set(&self, flag: &Lwe) -> bool {
        decrypt_lwe_ciphertext(&self.secret, flag).0.wrapping_sub(EIGHTH) < 1 << 63
    }
}

impl Drop for PaperArgmax {
    fn drop(&mut self) {
        self.secret.as_mut().zeroize();
    }
}

debug_as!(PaperArgmax, this => "PaperArgmax({} teachers, ..)", this.teachers);

/// Returns the ciphertext noise of a sum of `ciphertexts` fresh ciphertexts.
fn noise(ciphertexts: usize) -> DynamicDistribution<u64> {
    DynamicDistribution::new_gaussian_from_std_dev(StandardDev(NOISE * (ciphertexts as f64).sqrt()))
}

fn zero() -> Lwe {
    LweCiphertext::new(0, LweDimension(DIMENSION).to_lwe_size(), CiphertextModulus::new_native())
}

#[cfg(test)]
mod tests {
    use speed_core::fixture::exhaustive;

    use super::*;

    fn paper() -> PaperArgmax {
        PaperArgmax::new(Randomness::simulation([7; 32]), 250).expect("a simulation needs no entropy")
    }

    #[test]
    fn a_clear_winner_is_found_wherever_it_stands_and_close_counts_may_have_none() {
        let paper = paper();
        let mut queries =
            vec![vec![-300, -500, -400, -310, -900, -350, -420, -333, -380, -120], vec![40, -30], vec![-30, 40, -90]];
        if exhaustive() {
            queries.extend([
                vec![220, 3, -7, 12, 0, -40, 5, 1, 2, 8],
                vec![3, -7, 60, 205, 12, 20, -40, 18, 0, 1],
                vec![0, 0, 0, 0, 0, 0, 0, 0, 0, 1100],
            ]);
        }
        for (query, counts) in queries.into_iter().enumerate() {
            let answer = paper.argmax(query as u64, &counts).expect("a simulation needs no entropy");
            let highest = counts.iter().max();
            assert_eq!(answer.winner(), counts.iter().position(|count| Some(count) == highest), "{counts:?}");
            assert_eq!(answer.bootstraps, counts.len() * (counts.len() - 1) / 2 + counts.len());
        }
        // The circuit's known weakness: ten equal counts are 45 coin flips, and some class beats all others in about one of 51
        // queries.
        let answers: Vec<PaperAnswer> =
            (0..2).map(|query| paper.argmax(query, &[25; 10]).expect("a simulation needs no entropy")).collect();
        assert!(answers.iter().any(|answer| answer.winner().is_none()), "{answers:?}");
        // Keys and answers follow from the seed.
        let counts = [25, 24, 26, 25];
        let winners = |paper: &PaperArgmax| paper.argmax(3, &counts).map(|answer| answer.winners).expect("no entropy");
        assert_eq!(winners(&paper), winners(&self::paper()));
        assert_eq!(format!("{paper:?}"), "PaperArgmax(250 teachers, ..)", "no key is shown");
    }
}
