//! Encryption of a list of values under one mask, with random vectors that its proofs can use afterwards.

use tfhe::core_crypto::algorithms::slice_algorithms::{
    slice_semi_reverse_negacyclic_convolution, slice_wrapping_add_assign,
};
use tfhe::core_crypto::commons::math::random::{DefaultRandomGenerator, RandomGenerator};
use tfhe::core_crypto::prelude::{
    CiphertextModulus, LweCiphertextCount, LweCompactCiphertextList, LweCompactCiphertextListOwned, TUniform,
};
use zeroize::Zeroizing;

use crate::keys::PublicKey;

/// The random vectors of the encryption of one list. They are wiped when they go out of scope, because they open the
/// list.
pub(super) struct Witness {
    /// The bits that select the parts of the public key.
    pub(super) binary: Zeroizing<Vec<u64>>,
    /// The ciphertext noise of the mask.
    pub(super) mask_noise: Zeroizing<Vec<u64>>,
    /// The ciphertext noise of the bodies.
    pub(super) body_noise: Zeroizing<Vec<u64>>,
}

impl Witness {
    /// Draws the vectors for `count` values under `key`.
    pub(super) fn draw(key: &PublicKey, count: usize, generator: &mut RandomGenerator<DefaultRandomGenerator>) -> Self {
        let dimension = key.parameters.polynomial_size;
        let noise = TUniform::<u64>::new(key.parameters.glwe_noise_log);
        let mut witness = Self {
            binary: Zeroizing::new(vec![0; dimension]),
            mask_noise: Zeroizing::new(vec![0; dimension]),
            body_noise: Zeroizing::new(vec![0; count]),
        };
        generator.fill_slice_with_random_uniform_binary_bits(&mut witness.binary);
        generator.fill_slice_with_random_from_distribution(&mut witness.mask_noise, noise);
        generator.fill_slice_with_random_from_distribution(&mut witness.body_noise, noise);
        witness
    }

    /// Encrypts torus elements under one mask: the encryption of
    /// `encrypt_lwe_compact_ciphertext_list_with_compact_public_key`, which keeps its random vectors to itself.
    pub(super) fn encrypt(&self, key: &PublicKey, encoded: &[u64]) -> LweCompactCiphertextListOwned<u64> {
        let dimension = key.parameters.big_dimension();
        let mut list = LweCompactCiphertextList::new(
            0,
            dimension.to_lwe_size(),
            LweCiphertextCount(encoded.len()),
            CiphertextModulus::new_native(),
        );
        let (key_mask, key_body) = key.key.get_mask_and_body();
        let (mask, bodies) = list.as_mut().split_at_mut(dimension.0);
        slice_semi_reverse_negacyclic_convolution(mask, key_mask.as_ref(), &self.binary);
        slice_wrapping_add_assign(mask, &self.mask_noise);
        let mut product = Zeroizing::new(vec![0; dimension.0]);
        slice_semi_reverse_negacyclic_convolution(&mut product, key_body.as_ref(), &self.binary);
        let values = encoded.iter().zip(self.body_noise.iter()).zip(product.iter().rev());
        bodies.iter_mut().zip(values).for_each(|(body, ((value, noise), product))| {
            *body = value.wrapping_add(*noise).wrapping_add(*product);
        });
        list
    }
}
