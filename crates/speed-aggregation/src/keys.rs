//! The keys of the three roles, and their generation.

use std::sync::Arc;

use sha2::{Digest, Sha256};
use tfhe::core_crypto::commons::math::random::DefaultRandomGenerator;
use tfhe::core_crypto::prelude::*;
use zeroize::Zeroize;

use crate::parameters::{Decomposition, Parameters};
use crate::random::{EntropyError, KeySource};

type Generator = EncryptionRandomGenerator<DefaultRandomGenerator>;

/// The identifier of a key set: SHA-256 of its public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeyId([u8; 32]);

impl KeyId {
    /// The 32 bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    pub(crate) fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

impl std::fmt::Display for KeyId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().take(8).try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The student's key: opens answers, and would open every teacher's message. It never leaves the student.
///
/// Neither `Clone` nor printable; its memory is overwritten on drop. (What tfhe copied internally while keys were
/// generated, and the state of its random generators, is beyond reach and is not overwritten.)
pub struct SecretKey {
    pub(crate) parameters: Parameters,
    pub(crate) id: KeyId,
    pub(crate) big: LweSecretKeyOwned<u64>,
}

impl SecretKey {
    /// The identifier of the key set.
    #[must_use]
    pub fn id(&self) -> KeyId {
        self.id
    }
}

impl Drop for SecretKey {
    fn drop(&mut self) {
        self.big.as_mut().zeroize();
    }
}

impl std::fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SecretKey({}, ..)", self.id)
    }
}

/// The teachers' key: encrypts, and does nothing else. Cloning is cheap.
#[derive(Clone)]
pub struct PublicKey {
    pub(crate) parameters: Parameters,
    pub(crate) id: KeyId,
    pub(crate) key: Arc<LweCompactPublicKeyOwned<u64>>,
}

impl PublicKey {
    /// The identifier of the key set.
    #[must_use]
    pub fn id(&self) -> KeyId {
        self.id
    }

    /// The parameter set.
    #[must_use]
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Size of the key's words in memory, in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        size_of_val(self.key.as_ref().as_ref())
    }
}

impl std::fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PublicKey({}, {})", self.id, self.parameters.name)
    }
}

/// The server's key: sums, compares and selects on ciphertexts, and decrypts nothing. It contains the public key, with
/// which the server re-randomises its answers. Cloning is cheap (the keys are shared).
#[derive(Clone)]
pub struct EvaluationKey {
    pub(crate) public: PublicKey,
    pub(crate) parts: Arc<EvaluationParts>,
}

/// The parts of an evaluation key, each an encryption of one secret key under another.
pub(crate) struct EvaluationParts {
    /// Big key to small key, before every bootstrap.
    pub(crate) key_switch: LweKeyswitchKeyOwned<u64>,
    /// The bootstrapping key of comparisons: one level, fast, coarse.
    pub(crate) bootstrap: FourierLweBootstrapKeyOwned,
    /// The bootstrapping key that selects wide values and writes answers: three levels, fine.
    pub(crate) select: FourierLweBootstrapKeyOwned,
    /// Turns a ciphertext into an encrypted look-up table.
    pub(crate) packing: LwePackingKeyswitchKeyOwned<u64>,
}

impl EvaluationKey {
    /// The identifier of the key set.
    #[must_use]
    pub fn id(&self) -> KeyId {
        self.public.id
    }

    /// The parameter set.
    #[must_use]
    pub fn parameters(&self) -> &Parameters {
        &self.public.parameters
    }

    /// The public key of the same key set.
    #[must_use]
    pub fn public_key(&self) -> &PublicKey {
        &self.public
    }

    /// Size of the key's words in memory, in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        let parts = &self.parts;
        size_of_val(parts.key_switch.as_ref())
            + size_of_val(parts.bootstrap.as_view().data())
            + size_of_val(parts.select.as_view().data())
            + size_of_val(parts.packing.as_ref())
            + self.public.size()
    }
}

impl std::fmt::Debug for EvaluationKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "EvaluationKey({}, {})", self.public.id, self.public.parameters.name)
    }
}

/// The keys of one student, to be split up: each goes to one role.
#[derive(Debug)]
pub struct KeySet {
    /// Stays with the student.
    pub secret: SecretKey,
    /// Goes to every teacher.
    pub public: PublicKey,
    /// Goes to the server.
    pub evaluation: EvaluationKey,
}

/// Generates the keys of the three roles. Takes five to ten core-seconds (partly in parallel, on rayon's current pool); the result
/// does not depend on the number of threads.
///
/// # Errors
/// If the operating system gives no randomness.
pub fn generate_keys(parameters: &Parameters, source: KeySource) -> Result<KeySet, EntropyError> {
    let (keys, mut small) = generate_with_small_key(parameters, &source)?;
    small.as_mut().zeroize();
    Ok(keys)
}

/// As [`generate_keys`], but also returns the small secret key, which nobody needs after generation (but noise tests
/// do).
pub(crate) fn generate_with_small_key(
    parameters: &Parameters,
    source: &KeySource,
) -> Result<(KeySet, LweSecretKeyOwned<u64>), EntropyError> {
    let p = parameters;
    let modulus = CiphertextModulus::new_native();
    let mut seeder = source.seeder("keys", 0, p.name.as_bytes())?;
    let mut secret_generator = SecretRandomGenerator::<DefaultRandomGenerator>::new(seeder.seed());
    let mut generator = Generator::new(seeder.seed(), &mut seeder);

    let small = allocate_and_generate_new_binary_lwe_secret_key(p.small_dimension(), &mut secret_generator);
    let mut ring = allocate_and_generate_new_binary_glwe_secret_key(GlweDimension(1), p.ring(), &mut secret_generator);
    let big = ring.clone().into_lwe_secret_key();

    let public = allocate_and_generate_new_lwe_compact_public_key(&big, p.glwe_noise(), modulus, &mut generator);
    let key_switch = allocate_and_generate_new_lwe_keyswitch_key(
        &big,
        &small,
        p.key_switch.base(),
        p.key_switch.level_count(),
        p.lwe_noise(),
        modulus,
        &mut generator,
    );
    let bootstrap = bootstrap_key(p, p.bootstrap, &small, &ring, &mut generator);
    let select = bootstrap_key(p, p.select, &small, &ring, &mut generator);
    let packing = allocate_and_generate_new_lwe_packing_keyswitch_key(
        &big,
        &ring,
        p.packing.base(),
        p.packing.level_count(),
        p.glwe_noise(),
        modulus,
        &mut generator,
    );
    ring.as_mut().zeroize();

    let mut hash = Sha256::new();
    hash.update(b"speed/public-key/v1");
    hash.update(p.name.as_bytes());
    for word in public.as_ref() {
        hash.update(word.to_le_bytes());
    }
    let id = KeyId(hash.finalize().into());
    let public = PublicKey { parameters: *p, id, key: Arc::new(public) };
    let parts = Arc::new(EvaluationParts { key_switch, bootstrap, select, packing });
    let keys = KeySet {
        secret: SecretKey { parameters: *p, id, big },
        evaluation: EvaluationKey { public: public.clone(), parts },
        public,
    };
    Ok((keys, small))
}

/// A bootstrapping key in the Fourier domain, the form in which it is used.
fn bootstrap_key(
    p: &Parameters,
    decomposition: Decomposition,
    small: &LweSecretKeyOwned<u64>,
    ring: &GlweSecretKeyOwned<u64>,
    generator: &mut Generator,
) -> FourierLweBootstrapKeyOwned {
    let key = par_allocate_and_generate_new_lwe_bootstrap_key(
        small,
        ring,
        decomposition.base(),
        decomposition.level_count(),
        p.glwe_noise(),
        CiphertextModulus::new_native(),
        generator,
    );
    let mut fourier = FourierLweBootstrapKeyOwned::new(
        key.input_lwe_dimension(),
        key.glwe_size(),
        key.polynomial_size(),
        key.decomposition_base_log(),
        key.decomposition_level_count(),
    );
    par_convert_standard_lwe_bootstrap_key_to_fourier(&key, &mut fourier);
    fourier
}
