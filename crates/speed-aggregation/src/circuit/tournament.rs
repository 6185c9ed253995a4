//! Argmax by a knock-out tournament: the winner of a match advances with its count and the number of its class.

use super::compare::SUM_STEP;
use super::engine::{Engine, Precision};
use super::lwe::{Glwe, Lwe, add, difference};

/// A class in a match: its count and its number.
type Contestant = [Lwe; 2];

impl Engine<'_> {
    /// Computes, for each query (a list of encrypted counts, all of the same length), the number of the winner.
    pub(super) fn tournament(&mut self, queries: &[Vec<Lwe>]) -> Vec<Lwe> {
        let enter = |(class, count): (usize, &Lwe)| [count.clone(), self.constant(self.layout.number(class))];
        let mut brackets: Vec<Vec<Contestant>> =
            queries.iter().map(|counts| counts.iter().enumerate().map(enter).collect()).collect();
        while brackets.iter().any(|bracket| bracket.len() > 1) {
            brackets = self.play_round(brackets);
        }
        brackets.into_iter().flatten().map(|[_, number]| number).collect()
    }

    /// Plays one round of all brackets: neighbours meet, and the one with the larger count advances, or the earlier one
    /// on a tie. With an odd number the last advances without a match. Contestants keep their order, so "earlier"
    /// always means "lower classes".
    pub(super) fn play_round(&mut self, brackets: Vec<Vec<Contestant>>) -> Vec<Vec<Contestant>> {
        let pairs = brackets.iter().flat_map(|bracket| bracket.as_chunks::<2>().0);
        let leads: Vec<Contestant> =
            pairs.map(|[earlier, later]| [0, 1].map(|part| difference(&later[part], &earlier[part]))).collect();
        let differences: Vec<Lwe> = leads.iter().map(|lead| lead[0].clone()).collect();
        let scaled = self.at_scales(&differences);
        let signs = self.compare(scaled);
        let mut gains = self.select(&signs, &leads).into_iter();
        brackets
            .into_iter()
            .map(|bracket| {
                let matches = bracket.len() / 2;
                let mut winners: Vec<Contestant> = bracket.into_iter().step_by(2).collect();
                for (winner, gain) in winners.iter_mut().take(matches).zip(&mut gains) {
                    winner.iter_mut().zip(&gain).for_each(|(winner, gain)| add(winner, gain));
                }
                winners
            })
            .collect()
    }

    /// Selects for each match the lead if the sum of signs is positive, and encryptions of zero otherwise. One
    /// bootstrap both compares and selects, because its table is itself encrypted and holds the lead where the sum is
    /// positive. If the sums leave enough room, a table holds two parts of a lead, half a table apart.
    fn select(&mut self, signs: &[Lwe], leads: &[Contestant]) -> Vec<Contestant> {
        let inputs = self.key_switch(signs);
        let n = self.p.polynomial_size;
        // Sums reach 2^scales - 1 steps to each side, and need that many entries and one step of room.
        let length = (SUM_STEP / self.p.bucket()) as usize * (1 << self.layout.scales().len());
        if 4 * length <= n {
            let tables: Vec<Glwe> =
                leads.iter().map(|[count, number]| spread(self.pack(count, Some(number)), n, n / 4)).collect();
            return self.bootstrap_at(&inputs, &tables, Precision::Fine, [0, n / 2]);
        }
        let [counts, numbers] = [0, 1].map(|part| {
            let tables: Vec<Glwe> = leads.iter().map(|lead| spread(self.pack(&lead[part], None), n, length)).collect();
            self.bootstrap(&inputs, &tables, Precision::Fine)
        });
        counts.into_iter().zip(numbers).map(|(count, number)| [count, number]).collect()
    }
}

/// Returns the table with `length` equal entries from each packed coefficient on: the product with
/// `1 + X + .. + X^(length-1)`.
fn spread(mut packed: Glwe, n: usize, length: usize) -> Glwe {
    for polynomial in packed.as_mut().chunks_exact_mut(n) {
        let input = polynomial.to_vec();
        // The polynomial from X^-N on: coefficients before the start come back with the opposite sign.
        let at = |i: usize| if i < n { input[i].wrapping_neg() } else { input[i - n] };
        let mut window = (n - length + 1..n).fold(0_u64, |sum, i| sum.wrapping_add(at(i)));
        for (i, output) in (n..).zip(polynomial) {
            window = window.wrapping_add(at(i));
            *output = window;
            window = window.wrapping_sub(at(i + 1 - length));
        }
    }
    packed
}
