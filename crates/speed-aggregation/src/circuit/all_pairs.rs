//! Argmax by all pairs: the winner is the class that beats all others.

use super::compare::SUM_STEP;
use super::engine::{Engine, Precision};
use super::lwe::{Lwe, add, add_constant, difference, negated, table};

/// The largest number of signs that can be added before their sum is read: twice this number of steps fills half the
/// torus.
pub(crate) const FAN_IN: usize = 16;

impl Engine<'_> {
    /// Returns the number of the winner of one query.
    pub(super) fn all_pairs(&mut self, counts: &[Lwe]) -> Lwe {
        let classes = counts.len();
        // Key switches are linear: once for each class and scale, not for each pair.
        let switched = self.at_scales(counts);
        let switched: Vec<&[Lwe]> = switched.chunks_exact(self.layout.scales().len()).collect();
        let mut outcomes = vec![Vec::with_capacity(classes - 1); classes];
        // Handles one later class at a time, which bounds memory.
        for later in 1..classes {
            let earlier = &switched[..later];
            let leads = earlier.iter().flat_map(|e| switched[later].iter().zip(*e).map(|(l, e)| difference(l, e)));
            let signs = self.compare(leads.collect());
            for (earlier, outcome) in self.signs(&signs).into_iter().enumerate() {
                outcomes[earlier].push(negated(&outcome));
                outcomes[later].push(outcome);
            }
        }
        let won: Vec<Lwe> = outcomes.into_iter().map(|outcomes| self.all_positive(outcomes)).collect();
        self.number_of_the_one(&won)
    }

    /// Returns plus or minus [`SUM_STEP`], with the sign of each input.
    fn signs(&mut self, inputs: &[Lwe]) -> Vec<Lwe> {
        let switched = self.key_switch(inputs);
        self.bootstrap(&switched, &vec![table(self.p, |_| SUM_STEP); inputs.len()], Precision::Coarse)
    }

    /// Computes from signs of plus or minus one step a ciphertext that is one step if all are positive, and at most
    /// minus one step otherwise, without wrapping around.
    fn all_positive(&mut self, mut signs: Vec<Lwe>) -> Lwe {
        while signs.len() > FAN_IN {
            let sums: Vec<Lwe> = signs.chunks(FAN_IN).map(|signs| self.sum_less_all_but_one(signs)).collect();
            signs = self.signs(&sums);
        }
        self.sum_less_all_but_one(&signs)
    }

    /// Computes the sum of the signs minus `signs.len() - 1` steps: one step if all are positive, and two steps less
    /// for each negative sign.
    fn sum_less_all_but_one(&self, signs: &[Lwe]) -> Lwe {
        let mut sum = self.constant((signs.len() as u64 - 1).wrapping_mul(SUM_STEP).wrapping_neg());
        signs.iter().for_each(|sign| add(&mut sum, sign));
        sum
    }

    /// Returns the number of the only class whose input is positive.
    fn number_of_the_one(&mut self, won: &[Lwe]) -> Lwe {
        let won = self.key_switch(won);
        // Half a number if the class won and minus half otherwise, plus half: the number of the winner, or 0.
        let halves: Vec<u64> = (0..won.len()).map(|class| self.layout.number(class) / 2).collect();
        let tables: Vec<_> = halves.iter().map(|&half| table(self.p, |_| half)).collect();
        let mut number = self.constant(0);
        for (part, half) in self.bootstrap(&won, &tables, Precision::Fine).iter().zip(halves) {
            add(&mut number, part);
            add_constant(&mut number, half);
        }
        number
    }
}
