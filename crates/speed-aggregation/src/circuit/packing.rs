//! Packing of ciphertexts into a ring ciphertext, by automorphisms (Chen, Dai, Kim, Song: Efficient Homomorphic
//! Conversion Between (Ring) LWE Ciphertexts, <https://eprint.iacr.org/2020/015>, algorithm 2).
//!
//! A ciphertext becomes a ring ciphertext whose constant coefficient is its message; the other coefficients are
//! garbage. The trace, a sum over all automorphisms `X -> X^t` in `log2 N` steps of doubling, removes the garbage and
//! multiplies the message by `N`. Torus elements cannot be divided by `N`, but ciphertexts can: after the division of
//! all words, the message is `m / N` plus an unknown multiple of `2^64 / N`, which the multiplication by `N` removes. A
//! packing costs about 4 % of a bootstrap. A table of key switching keys for the same task would take 200 MB and as
//! long as a bootstrap.

use std::time::Instant;

use tfhe::core_crypto::prelude::*;

use super::engine::Engine;
use super::lwe::{Glwe, Lwe};
use crate::keys::trace_rotations;
use crate::parameters::Parameters;

impl Engine<'_> {
    /// Returns a ring ciphertext whose constant coefficient is the message of `first` and whose coefficient of
    /// `X^(N/2)` is the message of `second`, if given; all others are 0.
    pub(super) fn pack(&mut self, first: &Lwe, second: Option<&Lwe>) -> Glwe {
        let start = Instant::now();
        let p = self.p;
        let mut packed = embed(p, first);
        // (first + X^(N/2) second) + tau(first - X^(N/2) second): tau turns X^(N/2) into its negative.
        let mut rotated = packed.clone();
        if let Some(second) = second {
            let turned = turn_by_half(&embed(p, second), p.polynomial_size);
            for ((a, b), c) in packed.as_mut().iter_mut().zip(rotated.as_mut()).zip(turned) {
                *a = a.wrapping_add(c);
                *b = b.wrapping_sub(c);
            }
        }
        let n = p.polynomial_size;
        let mut automorphic = vec![0; 2 * n];
        for (step, (exponent, key)) in trace_rotations(p).zip(self.keys.trace.iter()).enumerate() {
            let source = if step == 0 { &rotated } else { &packed };
            for (output, input) in automorphic.chunks_exact_mut(n).zip(source.as_ref().chunks_exact(n)) {
                output.copy_from_slice(&rotate(input, exponent));
            }
            self.products.add(packed.as_mut(), &self.keys.trace, key, &automorphic);
        }
        self.work.packings.record(1, start);
        packed
    }
}

/// Returns the ring ciphertext whose constant coefficient is the message, with all words divided by `N`.
fn embed(p: &Parameters, input: &Lwe) -> Glwe {
    let n = p.polynomial_size;
    let log = n.trailing_zeros();
    let divide = |word: u64| (word >> log).wrapping_add(word >> (log - 1) & 1);
    let (mask, body) = input.as_ref().split_at(n);
    let mut words = vec![0; 2 * n];
    // If the mask is laid out backwards, the constant coefficient of mask times key is the scalar product.
    words[0] = divide(mask[0]);
    for (i, &word) in mask.iter().enumerate().skip(1) {
        words[n - i] = divide(word).wrapping_neg();
    }
    words[n] = divide(body[0]);
    GlweCiphertext::from_container(words, p.ring(), CiphertextModulus::new_native())
}

/// Returns all polynomials times `X^(N/2)`.
fn turn_by_half(input: &Glwe, n: usize) -> Vec<u64> {
    let turn = |polynomial: &[u64]| {
        let (low, high) = polynomial.split_at(n / 2);
        high.iter().map(|x| x.wrapping_neg()).chain(low.iter().copied()).collect::<Vec<u64>>()
    };
    input.as_ref().chunks_exact(n).flat_map(turn).collect()
}

/// Returns the polynomial `f(X^exponent)` modulo `X^N + 1`, for an odd exponent.
pub(crate) fn rotate(polynomial: &[u64], exponent: usize) -> Vec<u64> {
    let n = polynomial.len();
    let mut rotated = vec![0; n];
    for (i, &coefficient) in polynomial.iter().enumerate() {
        let position = i * exponent % (2 * n);
        if position < n {
            rotated[position] = coefficient;
        } else {
            rotated[position - n] = coefficient.wrapping_neg();
        }
    }
    rotated
}
