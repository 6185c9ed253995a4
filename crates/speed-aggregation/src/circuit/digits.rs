//! The digits of the winner's number.

use super::engine::{Engine, Precision};
use super::lwe::{Glwe, Lwe, add, add_constant, difference, scaled, table};
use crate::layout::digit_code;

impl Engine<'_> {
    /// Returns the digits of each number, least significant first, by two steps of two fine bootstraps each. A number of
    /// one digit is its digit.
    ///
    /// `16 h + l` stands at the centre of one of 256 parts of the torus. Multiplied by 16 it stands where digit `l`
    /// stands, and `h` is gone. A table is negacyclic, so it cannot hold 16 arbitrary values. The first step therefore
    /// reads only whether `l` is at least 8 (the half of the torus), and the second reads `l mod 8`, which lies in one half.
    /// What remains of the number is digit `h`.
    pub(super) fn digits(&mut self, numbers: Vec<Lwe>) -> Vec<Vec<Lwe>> {
        if self.layout.digit_count() == 1 {
            return numbers.into_iter().map(|number| vec![number]).collect();
        }
        let slot = self.p.polynomial_size / 8;
        let halves = self.read_low_digits(&numbers, |_| 1 << 58, |_| 1 << 62);
        let rest: Vec<Lwe> = (numbers.into_iter().zip(&halves))
            .map(|(mut number, [half, _])| {
                add(&mut number, half);
                add_constant(&mut number, (1_u64 << 58).wrapping_neg());
                number
            })
            .collect();
        let eighths = self.read_low_digits(
            &rest,
            |i| (digit_code(i / slot) >> 4).wrapping_sub(1 << 59),
            |i| digit_code(i / slot),
        );
        rest.iter()
            .zip(halves)
            .zip(eighths)
            .map(|((rest, [_, half]), [below, mut low])| {
                low = difference(&low, &half);
                add_constant(&mut low, 1 << 62);
                vec![low, difference(rest, &below)]
            })
            .collect()
    }

    /// Reads two tables at the low digit of each number.
    fn read_low_digits(
        &mut self,
        numbers: &[Lwe],
        first: impl Fn(usize) -> u64,
        second: impl Fn(usize) -> u64,
    ) -> Vec<[Lwe; 2]> {
        let low: Vec<Lwe> = numbers.iter().map(|number| scaled(number, 16)).collect();
        let inputs: Vec<Lwe> = self.key_switch(&low).into_iter().flat_map(|input| [input.clone(), input]).collect();
        let tables = [table(self.p, first), table(self.p, second)];
        let tables: Vec<Glwe> = tables.into_iter().cycle().take(inputs.len()).collect();
        self.bootstrap(&inputs, &tables, Precision::Fine).as_chunks().0.to_vec()
    }
}
