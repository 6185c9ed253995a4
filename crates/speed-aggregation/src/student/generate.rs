//! Key generation for the three roles.

use speed_core::{EntropyError, Randomness};
use tfhe::core_crypto::algorithms::slice_algorithms::slice_semi_reverse_negacyclic_convolution;
use tfhe::core_crypto::commons::math::random::{DefaultRandomGenerator, RandomGenerator, Seed, Seeder as _};
use tfhe::core_crypto::prelude::*;
use zeroize::{Zeroize, Zeroizing};

use super::secret_key::SecretKey;
use crate::circuit::{KEYS_PER_PAIR, rotate};
use crate::keys::{PublicKey, Rounded, Seeded, SeededEvaluationKey, SeededParts, mask, trace_rotations};
use crate::parameters::{Decomposition, Parameters};
use crate::random::{Seeder, seeder};

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

/// Generates the keys of the three roles. Takes some core-seconds (in parallel, on rayon's current pool); the result
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
    let key_switch_seed = seeder.seed();
    let mut key_switch_generator = EncryptionRandomGenerator::new(key_switch_seed, &mut seeder);
    // The key switch has no parallel form, so it shares the pool with the others.
    let (key_switch, (bootstrap, select, trace)) = rayon::join(
        || key_switch_key(p, &big, &small, key_switch_seed, &mut key_switch_generator),
        || {
            let bootstrap = bootstrap_key(p, p.bootstrap, &small, &ring, &mut seeder);
            (bootstrap, bootstrap_key(p, p.select, &small, &ring, &mut seeder), trace_key(p, &ring, &mut seeder))
        },
    );
    let parts = SeededParts { key_switch, bootstrap, select, trace };
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

fn key_switch_key(
    p: &Parameters,
    big: &LweSecretKeyOwned<u64>,
    small: &LweSecretKeyOwned<u64>,
    seed: Seed,
    generator: &mut EncryptionRandomGenerator<DefaultRandomGenerator>,
) -> Seeded {
    let mut key = SeededLweKeyswitchKey::new(
        0,
        p.key_switch.base(),
        p.key_switch.level_count(),
        p.big_dimension(),
        p.small_dimension(),
        seed.into(),
        CiphertextModulus::new_native(),
    );
    generate_seeded_lwe_keyswitch_key_with_pre_seeded_generator(big, small, &mut key, p.lwe_noise(), generator);
    Seeded { seed: seed.0, bodies: key.into_container() }
}

fn bootstrap_key(
    p: &Parameters,
    d: Decomposition,
    small: &LweSecretKeyOwned<u64>,
    ring: &GlweSecretKeyOwned<u64>,
    seeder: &mut Seeder,
) -> Seeded<Rounded> {
    let seed = seeder.seed();
    let (pairs, _) = small.as_ref().as_chunks::<2>();
    // `circuit::external_product` says which products of two bits a pair needs.
    // A vector that grows would leave copies of key bits in memory.
    let mut products = Vec::with_capacity(KEYS_PER_PAIR * pairs.len());
    products.extend(pairs.iter().flat_map(|[b, c]| [b * (1 - c), (1 - b) * c, b * c]));
    let mut products = LweSecretKey::from_container(products);
    let mut key = SeededLweBootstrapKey::new(
        0,
        GlweSize(2),
        p.ring(),
        d.base(),
        d.level_count(),
        products.lwe_dimension(),
        seed.into(),
        CiphertextModulus::new_native(),
    );
    par_generate_seeded_lwe_bootstrap_key(&products, ring, &mut key, p.glwe_noise(), seeder);
    products.as_mut().zeroize();
    Seeded { seed: seed.0, bodies: Rounded::new(key.into_container()) }
}

/// Encrypts, for each automorphism `X -> X^t` of the trace and each level of the decomposition, from the last to the first,
/// an encryption of `-s(X^t)` times the level's weight.
fn trace_key(p: &Parameters, ring: &GlweSecretKeyOwned<u64>, seeder: &mut Seeder) -> Seeded {
    let seed = seeder.seed();
    let mut plaintexts = Zeroizing::new(Vec::new());
    for exponent in trace_rotations(p) {
        let rotated = Zeroizing::new(rotate(ring.as_ref(), exponent));
        for level in (1..=p.trace.levels).rev() {
            let weight = (1_u64 << (64 - p.trace.base_log * level)).wrapping_neg();
            plaintexts.extend(rotated.iter().map(|&bit| bit.wrapping_mul(weight)));
        }
    }
    let count = plaintexts.len() / p.polynomial_size;
    let mut list = SeededGlweCiphertextList::new(
        0,
        GlweSize(2),
        p.ring(),
        GlweCiphertextCount(count),
        seed.into(),
        CiphertextModulus::new_native(),
    );
    encrypt_seeded_glwe_ciphertext_list(
        ring,
        &mut list,
        &PlaintextList::from_container(plaintexts.as_slice()),
        p.glwe_noise(),
        seeder,
    );
    Seeded { seed: seed.0, bodies: list.into_container() }
}
