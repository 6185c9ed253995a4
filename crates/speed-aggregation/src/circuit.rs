//! The argmax circuits on ciphertexts.
//!
//! Both compare two counts exactly at a few scales (`compare`). The tournament (`tournament`) lets the winner of a match go
//! on with the digits of its class; all pairs (`all_pairs`) asks which class beats all others. Both give the digits of the
//! winner, which `read_out` then writes anew, so that nothing but the winner is left in them.

mod all_pairs;
mod compare;
mod engine;
mod external_product;
mod fourier;
mod key_switch;
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
pub(crate) use external_product::GgswList;
pub(crate) use key_switch::KeySwitchKey;
pub(crate) use lwe::{Lwe, add};
#[cfg(feature = "student")]
pub(crate) use packing::rotate;
pub(crate) use read_out::READ_OUTS;
pub use work::{Operations, Work};

use crate::exact_circuit::ExactCircuit;

impl Engine<'_> {
    /// Computes the argmax of the encrypted counts of several queries (under the big key, one ciphertext per class), each as the
    /// digits of its winner, least significant first.
    pub(crate) fn argmax(&mut self, circuit: ExactCircuit, queries: &[Vec<Lwe>]) -> Vec<Vec<Lwe>> {
        match circuit {
            ExactCircuit::Tournament => self.tournament(queries),
            ExactCircuit::AllPairs => queries.iter().map(|counts| self.all_pairs(counts)).collect(),
        }
    }
}
