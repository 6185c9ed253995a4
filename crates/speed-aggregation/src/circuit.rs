//! The argmax circuits on ciphertexts.
//!
//! Both compare two counts exactly at a few scales (`compare`). The tournament (`tournament`) advances the winner of
//! each match together with its class's number; all pairs (`all_pairs`) finds the class that beats all others.
//! `digits` splits the winner's number into digits, and `read_out` refreshes them, so that they carry no information but the
//! winner.

mod all_pairs;
mod compare;
mod digits;
mod engine;
#[cfg(feature = "student")]
mod exact_product;
mod external_product;
mod fourier;
mod key_switch;
mod lanes;
mod lwe;
mod packing;
mod read_out;
mod tournament;
mod work;

#[cfg(test)]
mod tests;

pub(crate) use all_pairs::FAN_IN;
pub(crate) use compare::SUM_STEP;
pub(crate) use engine::Engine;
#[cfg(feature = "student")]
pub(crate) use exact_product::{BinaryPolynomial, ProductMemory};
pub(crate) use external_product::{GgswList, KEYS_PER_PAIR};
pub(crate) use key_switch::KeySwitchKey;
pub(crate) use lwe::{Lwe, add};
#[cfg(feature = "student")]
pub(crate) use packing::rotate;
pub(crate) use read_out::READ_OUTS;
pub use work::{Operations, Work};

use crate::exact_circuit::ExactCircuit;

impl Engine<'_> {
    /// Computes the argmax of the encrypted counts of several queries (under the big key, one ciphertext per class).
    /// Each result is the digits of the winner, least significant first.
    pub(crate) fn argmax(&mut self, circuit: ExactCircuit, queries: &[Vec<Lwe>]) -> Vec<Vec<Lwe>> {
        let numbers = match circuit {
            ExactCircuit::Tournament => self.tournament(queries),
            ExactCircuit::AllPairs => queries.iter().map(|counts| self.all_pairs(counts)).collect(),
        };
        self.digits(numbers)
    }
}
