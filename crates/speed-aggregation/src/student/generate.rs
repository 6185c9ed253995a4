//! Key generation for the three roles.

use rayon::prelude::*;
use speed_core::{EntropyError, Randomness};
use tfhe::core_crypto::algorithms::slice_algorithms::slice_semi_reverse_negacyclic_convolution;
use tfhe::core_crypto::commons::math::random::{DefaultRandomGenerator, RandomGenerator, Seeder as _};
use tfhe::core_crypto::prelude::*;
use zeroize::{Zeroize, Zeroizing};

use super::secret_key::SecretKey;
use crate::circuit::{BinaryPolynomial, KEYS_PER_PAIR, ProductMemory, rotate};
use crate::keys::{PublicKey, Rounded, Seeded, SeededEvaluationKey, SeededParts, Stream, mask, trace_rotations};
use crate::parameters::{Decomposition, Parameters};
use crate::random::{Seeder, seeder};

/// Bytes of a sample of the noise under the small key, and under the ring key.
const LWE_SAMPLE: usize = 6;
const GLWE_SAMPLE: usize = 3;

/// The keys of one student, one for each role.
#[derive(Debug)]
pub struct KeySet {
    /// The student's own key.
    pub secret: SecretKey,
    /// The key for every teacher.
    pub public: PublicKey,
    /// The key for the server, which [expands](SeededEvaluationKey::expand) it.
    pub evaluation: SeededEvaluationKey,
}

/// Generates the keys of the three roles. Takes about a fifth of a core-second (in parallel, on rayon's current pool); the result
/// does not depend on the number of threads.
///
/// # Errors
/// If the operating system provides no randomness.
pub fn generate_keys(parameters: &Parameters, randomness: &Randomness) -> Result<KeySet, EntropyError> {
    let p = parameters;
    let mut seeder = seeder(randomness, "keys", 0, p.name.as_bytes())?;
    let mut secret_generator = SecretRandomGenerator::new(seeder.seed());
    let mut small = small_key(p, &mut secret_generator);
    let mut ring = allocate_and_generate_new_binary_glwe_secret_key(GlweDimension(1), p.ring(), &mut secret_generator);
    let big = ring.clone().into_lwe_secret_key();
    let public = public_key(p, &big, &mut seeder);
    let mut generators = || Generators::new(&mut seeder);
    let ring_key = RingKey { bits: ring.as_ref(), polynomial: BinaryPolynomial::new(ring.as_ref()) };
    let parts = SeededParts {
        key_switch: key_switch_key(p, big.as_ref(), small.as_ref(), &generators()),
        bootstrap: bootstrap_key(p, p.bootstrap, small.as_ref(), &ring_key, &generators()),
        select: bootstrap_key(p, p.select, small.as_ref(), &ring_key, &generators()),
        trace: trace_key(p, &ring_key, &generators()),
    };
    drop(ring_key);
    ring.as_mut().zeroize();
    small.as_mut().zeroize();

    Ok(KeySet {
        secret: SecretKey { parameters: *p, id: public.id(), big },
        evaluation: SeededEvaluationKey { public: public.clone(), parts },
        public,
    })
}

/// Generates the small secret key. It has no use after the generation of keys except in noise tests.
pub(crate) fn small_key(
    p: &Parameters,
    generator: &mut SecretRandomGenerator<DefaultRandomGenerator>,
) -> LweSecretKeyOwned<u64> {
    allocate_and_generate_new_binary_lwe_secret_key(p.small_dimension(), generator)
}

/// Generates a compact public key as tfhe does, except that a hash generates the mask.
fn public_key(p: &Parameters, big: &LweSecretKeyOwned<u64>, seeder: &mut Seeder) -> PublicKey {
    let mut seed = [0; 32];
    for half in seed.chunks_exact_mut(16) {
        half.copy_from_slice(&seeder.seed().0.to_le_bytes());
    }
    let mut body = vec![0; p.polynomial_size];
    slice_semi_reverse_negacyclic_convolution(&mut body, &mask(p, &seed), big.as_ref());
    RandomGenerator::<DefaultRandomGenerator>::new(seeder.seed())
        .unsigned_integer_slice_wrapping_add_random_from_distribution_assign(&mut body, p.glwe_noise());
    PublicKey::new(p, seed, &body)
}

/// The generators of one part of an evaluation key: the masks' seed is published, that of the noise is not.
struct Generators {
    seed: u128,
    masks: Stream,
    noise: Stream,
}

impl Generators {
    fn new(seeder: &mut Seeder) -> Self {
        let seed = seeder.seed().0;
        Self { seed, masks: Stream::new(seed), noise: Stream::new(seeder.seed().0) }
    }
}

/// Encrypts, for each bit of the big key and each level from the last to the first, the bit times the level's weight.
fn key_switch_key(p: &Parameters, big: &[u64], small: &[u64], generators: &Generators) -> Seeded {
    let (d, n) = (p.key_switch, p.lwe_dimension);
    let mut bodies = vec![0; big.len() * d.levels];
    bodies.par_chunks_mut(d.levels).enumerate().for_each_init(
        || vec![0; n],
        |mask, (position, bodies)| {
            for (row, body) in bodies.iter_mut().enumerate() {
                generators.masks.uniform((position * d.levels + row) * n, mask);
                let product = mask.iter().zip(small).fold(0_u64, |sum, (a, s)| sum.wrapping_add(a & s.wrapping_neg()));
                *body = product.wrapping_add(big[position].wrapping_mul(d.weight(row)));
            }
            generators.noise.add_noise::<LWE_SAMPLE>(p.lwe_noise_log, position * d.levels, bodies);
        },
    );
    Seeded { seed: generators.seed, bodies }
}

/// Encrypts the products `m` of each pair of key bits in GGSW form: for each level from the last to the first, `-m s` and `m` times the
/// level's weight.
fn bootstrap_key(
    p: &Parameters,
    d: Decomposition,
    small: &[u64],
    ring: &RingKey<'_>,
    generators: &Generators,
) -> Seeded<Rounded> {
    let (pairs, _) = small.as_chunks::<2>();
    let (n, rows) = (p.polynomial_size, 2 * d.levels);
    let mut bodies = vec![[0; Rounded::BYTES]; pairs.len() * KEYS_PER_PAIR * rows * n];
    bodies.par_chunks_mut(KEYS_PER_PAIR * rows * n).zip(pairs).enumerate().for_each_init(
        || (Encryption::new(p), vec![0; n]),
        |(encryption, body), (pair, (bodies, [b, c]))| {
            // `circuit::external_product` says which products of two bits a pair needs.
            let messages = [b * (1 - c), (1 - b) * c, b * c];
            for (row, bodies) in bodies.chunks_exact_mut(n).enumerate() {
                let product = messages[row / rows].wrapping_mul(d.weight(row % rows / 2));
                if row % 2 == 0 {
                    let negative = product.wrapping_neg();
                    body.iter_mut().zip(ring.bits).for_each(|(word, bit)| *word = bit.wrapping_mul(negative));
                } else {
                    body.fill(0);
                    body[0] = product;
                }
                encryption.encrypt(ring, generators, pair * KEYS_PER_PAIR * rows + row, body);
                bodies.iter_mut().zip(&*body).for_each(|(bytes, word)| *bytes = Rounded::round(*word));
            }
        },
    );
    Seeded { seed: generators.seed, bodies: Rounded(bodies) }
}

/// Encrypts, for each automorphism `X -> X^t` of the trace and each level of the decomposition, from the last to the first,
/// an encryption of `-s(X^t)` times the level's weight.
fn trace_key(p: &Parameters, ring: &RingKey<'_>, generators: &Generators) -> Seeded {
    let mut encryption = Encryption::new(p);
    let mut bodies = Vec::with_capacity(trace_rotations(p).count() * p.trace.levels * p.polynomial_size);
    for exponent in trace_rotations(p) {
        let rotated = Zeroizing::new(rotate(ring.bits, exponent));
        for level in 0..p.trace.levels {
            let weight = p.trace.weight(level).wrapping_neg();
            let first = bodies.len();
            bodies.extend(rotated.iter().map(|&bit| bit.wrapping_mul(weight)));
            encryption.encrypt(ring, generators, first / p.polynomial_size, &mut bodies[first..]);
        }
    }
    Seeded { seed: generators.seed, bodies }
}

/// The ring key, ready to encrypt.
struct RingKey<'a> {
    bits: &'a [u64],
    polynomial: BinaryPolynomial,
}

/// The working memory of encryptions under the ring key.
struct Encryption<'a> {
    p: &'a Parameters,
    mask: Vec<u64>,
    memory: Box<ProductMemory>,
}

impl<'a> Encryption<'a> {
    fn new(p: &'a Parameters) -> Self {
        Self { p, mask: vec![0; p.polynomial_size], memory: ProductMemory::new() }
    }

    /// Turns a plaintext polynomial into the body of its encryption, which has this number.
    fn encrypt(&mut self, ring: &RingKey<'_>, generators: &Generators, number: usize, body: &mut [u64]) {
        let first = number * self.p.polynomial_size;
        generators.masks.uniform(first, &mut self.mask);
        ring.polynomial.add_product(&self.mask, body, &mut self.memory);
        generators.noise.add_noise::<GLWE_SAMPLE>(self.p.glwe_noise_log, first, body);
    }
}

#[cfg(test)]
mod tests {
    use tfhe::core_crypto::commons::math::random::Seed;

    use super::*;
    use crate::circuit::KEYS_PER_PAIR;

    /// The parts of the key by tfhe, from the same seeds.
    #[test]
    fn keys_are_those_of_tfhe() {
        let p = &Parameters::TOURNAMENT_128;
        let mut seeder = seeder(&Randomness::simulation([7; 32]), "keys", 0, b"").expect("a simulation");
        let mut secret = SecretRandomGenerator::<DefaultRandomGenerator>::new(seeder.seed());
        let small = small_key(p, &mut secret);
        let ring = allocate_and_generate_new_binary_glwe_secret_key(GlweDimension(1), p.ring(), &mut secret);
        let big = ring.clone().into_lwe_secret_key();
        let ours = RingKey { bits: ring.as_ref(), polynomial: BinaryPolynomial::new(ring.as_ref()) };
        let modulus = CiphertextModulus::new_native();
        // The same two seeds for both: of the masks, and of the noise.
        let seeds = || crate::random::seeder(&Randomness::simulation([8; 32]), "keys", 0, b"").expect("a simulation");

        let found = key_switch_key(p, big.as_ref(), small.as_ref(), &Generators::new(&mut seeds()));
        let (base, levels) = (p.key_switch.base(), p.key_switch.level_count());
        let seed = Seed(found.seed).into();
        let (from, to) = (p.big_dimension(), p.small_dimension());
        let mut key = SeededLweKeyswitchKey::new(0, base, levels, from, to, seed, modulus);
        let mut seeder = seeds();
        let mut generator = EncryptionRandomGenerator::<DefaultRandomGenerator>::new(seeder.seed(), &mut seeder);
        let noise = DynamicDistribution::new_t_uniform(p.lwe_noise_log);
        generate_seeded_lwe_keyswitch_key_with_pre_seeded_generator(&big, &small, &mut key, noise, &mut generator);
        assert!(found.bodies == key.into_container(), "key switch");

        let d = p.select;
        let pairs = 3;
        let found = bootstrap_key(p, d, &small.as_ref()[..2 * pairs], &ours, &Generators::new(&mut seeds()));
        let products = small.as_ref().as_chunks::<2>().0[..pairs].iter();
        let products: Vec<u64> = products.flat_map(|[b, c]| [b * (1 - c), (1 - b) * c, b * c]).collect();
        assert_eq!(products.len(), KEYS_PER_PAIR * pairs);
        let products = LweSecretKey::from_container(products);
        let (size, seed) = (products.lwe_dimension(), Seed(found.seed).into());
        let mut key =
            SeededLweBootstrapKey::new(0, GlweSize(2), p.ring(), d.base(), d.level_count(), size, seed, modulus);
        let mut seeder = seeds();
        seeder.seed();
        par_generate_seeded_lwe_bootstrap_key(&products, &ring, &mut key, p.glwe_noise(), &mut seeder);
        let expected: Vec<_> = key.into_container().into_iter().map(Rounded::round).collect();
        assert!(found.bodies.0 == expected, "bootstrapping key");

        let found = trace_key(p, &ours, &Generators::new(&mut seeds()));
        let count = GlweCiphertextCount(found.bodies.len() / p.polynomial_size);
        let mut plaintexts = Vec::new();
        for exponent in trace_rotations(p) {
            for level in 0..p.trace.levels {
                let weight = |bit: u64| bit.wrapping_mul(p.trace.weight(level)).wrapping_neg();
                plaintexts.extend(rotate(ring.as_ref(), exponent).into_iter().map(weight));
            }
        }
        let mut list = SeededGlweCiphertextList::new(0, GlweSize(2), p.ring(), count, Seed(found.seed).into(), modulus);
        let mut seeder = seeds();
        seeder.seed();
        let plaintexts = PlaintextList::from_container(plaintexts);
        encrypt_seeded_glwe_ciphertext_list(&ring, &mut list, &plaintexts, p.glwe_noise(), &mut seeder);
        assert!(found.bodies == list.into_container(), "trace key");
    }
}
