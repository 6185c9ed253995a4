//! The read-out of a digit: from a ciphertext that may still carry traces of the counts to a fresh one.

use super::engine::{Engine, Precision};
use super::lwe::{Glwe, Lwe, table};
use crate::layout::digit_code;

/// The number of successive read-outs of every digit, with re-randomisation and flooding before, between and after
/// them. It is even: a table is negacyclic, so one read-out reverses the upper eight digits, and the next restores
/// their order.
pub(crate) const READ_OUTS: usize = 2;

impl Engine<'_> {
    /// Re-encodes each digit (all under the big key).
    pub(crate) fn read_out(&mut self, digits: &[Lwe]) -> Vec<Lwe> {
        let inputs = self.key_switch(digits);
        let slot = self.p.polynomial_size / 8;
        let tables: Vec<Glwe> = vec![table(self.p, |i| digit_code(i / slot)); digits.len()];
        self.bootstrap(&inputs, &tables, Precision::Fine)
    }
}
