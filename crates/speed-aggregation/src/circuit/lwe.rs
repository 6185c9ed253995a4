//! Ciphertexts and their linear algebra.

use tfhe::core_crypto::prelude::*;

use crate::parameters::Parameters;

/// A ciphertext under the big or the small key.
pub(crate) type Lwe = LweCiphertextOwned<u64>;
/// A ring ciphertext: a look-up table.
pub(crate) type Glwe = GlweCiphertextOwned<u64>;

/// Returns a look-up table in clear: `entry(i)` for `i` in `0..N`.
pub(super) fn table(p: &Parameters, entry: impl Fn(usize) -> u64) -> Glwe {
    let mut table = GlweCiphertext::new(0, GlweSize(2), p.ring(), CiphertextModulus::new_native());
    for (i, coefficient) in table.get_mut_body().as_mut().iter_mut().enumerate() {
        *coefficient = entry(i);
    }
    table
}

pub(crate) fn add(to: &mut Lwe, other: &Lwe) {
    for (a, b) in to.as_mut().iter_mut().zip(other.as_ref()) {
        *a = a.wrapping_add(*b);
    }
}

pub(super) fn add_constant(to: &mut Lwe, constant: u64) {
    let body = to.get_mut_body().data;
    *body = body.wrapping_add(constant);
}

pub(super) fn difference(a: &Lwe, b: &Lwe) -> Lwe {
    let mut output = a.clone();
    for (a, b) in output.as_mut().iter_mut().zip(b.as_ref()) {
        *a = a.wrapping_sub(*b);
    }
    output
}

pub(super) fn negated(input: &Lwe) -> Lwe {
    scaled(input, u64::MAX)
}

pub(super) fn scaled(input: &Lwe, factor: u64) -> Lwe {
    let mut output = input.clone();
    for word in output.as_mut() {
        *word = word.wrapping_mul(factor);
    }
    output
}
