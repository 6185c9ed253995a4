//! The argmax circuits on ciphertexts.
//!
//! Both compare two counts exactly at three scales (`compare`). The tournament (`tournament`) lets the winner of a
//! match go on with its index in its high bits; all pairs (`all_pairs`) counts every class's wins.

mod all_pairs;
mod compare;
mod engine;
mod tournament;

#[cfg(test)]
mod tests;

pub(crate) use engine::{Engine, Lwe, add};

/// Which circuit computes the argmax. Both are exact on the same range and give the same winners; ties go to the lowest
/// class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Circuit {
    /// `K - 1` matches in `log2 K` rounds: fewest bootstraps (37 for ten classes). The default.
    #[default]
    Tournament,
    /// Every class against every other, then a count of wins: more work (190 bootstraps for ten classes), but only
    /// three bootstraps deep.
    AllPairs,
}

impl Engine<'_> {
    /// The argmax of the encrypted counts of one query (`values[k]` encrypts the count of class `k` under the big key),
    /// as a ciphertext whose phase is [`crate::Encoding`]'s code of the winner.
    pub(crate) fn argmax(&mut self, circuit: Circuit, values: &[Lwe]) -> Lwe {
        match circuit {
            Circuit::Tournament => self.tournament(values),
            Circuit::AllPairs => self.all_pairs(values),
        }
    }
}
