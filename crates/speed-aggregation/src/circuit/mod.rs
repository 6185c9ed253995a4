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
mod packing;
mod read_out;
mod tournament;
mod work;

#[cfg(test)]
mod tests;

pub(crate) use engine::{Engine, Lwe, add};
pub(crate) use external_product::GgswList;
pub(crate) use key_switch::KeySwitchKey;
pub(crate) use packing::expand_trace_key;
#[cfg(feature = "student")]
pub(crate) use packing::rotate;
pub(crate) use read_out::READ_OUTS;
pub use work::{Operations, Work};

/// The unit of sums of signs: 64 buckets, a 64th of the torus. Eight of them make an eighth of the torus, so that the
/// signs of three scales (7 steps at most) leave room for a second table entry, and the signs of four (15) for one.
pub(crate) const SUM_STEP: u64 = 1 << 58;

/// Most signs that can be added before their sum is read: twice as many steps fill half the torus.
pub(crate) const FAN_IN: usize = 16;

/// Which circuit computes the argmax. Both are exact on the same range and give the same winners; ties go to the lowest
/// class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Circuit {
    /// `K - 1` matches in `log2 K` rounds: fewest bootstraps (38 for ten classes). The default.
    #[default]
    Tournament,
    /// Every class against every other, then a count of wins: more work (192 bootstraps for ten classes), but only
    /// three bootstraps deep before the read-out.
    AllPairs,
}

impl Engine<'_> {
    /// The argmax of the encrypted counts of several queries (under the big key, one ciphertext a class), each as the
    /// digits of its winner, least significant first.
    pub(crate) fn argmax(&mut self, circuit: Circuit, queries: &[Vec<Lwe>]) -> Vec<Vec<Lwe>> {
        match circuit {
            Circuit::Tournament => self.tournament(queries),
            Circuit::AllPairs => queries.iter().map(|counts| self.all_pairs(counts)).collect(),
        }
    }
}
