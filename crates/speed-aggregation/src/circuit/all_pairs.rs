//! Argmax by all pairs: the winner is the class that beats all others.

use super::engine::{Engine, Lwe, Precision, add, add_constant, difference, subtract, table};

impl Engine<'_> {
    pub(super) fn all_pairs(&mut self, values: &[Lwe]) -> Lwe {
        let classes = values.len();
        // A win is worth +step, a loss -step; the winner of all has (K - 1) step = a quarter of the torus.
        let step = (1_u64 << 62) / (classes as u64 - 1);
        // Key switches are linear: once for each class and scale, not for each pair.
        let switched = self.at_scales(values);
        let switched: Vec<&[Lwe]> = switched.chunks_exact(3).collect();
        let mut scores = vec![self.zero(); classes];
        // One later class at a time, which bounds memory.
        for later in 1..classes {
            let earlier = &switched[..later];
            let leads = earlier.iter().flat_map(|e| switched[later].iter().zip(*e).map(|(l, e)| difference(l, e)));
            let signs = self.compare(leads.collect());
            let signs = self.key_switch(&signs);
            let outcomes = self.bootstrap(&signs, &vec![table(self.p, |_| step); later], Precision::Coarse);
            for (earlier, outcome) in outcomes.iter().enumerate() {
                add(&mut scores[later], outcome);
                subtract(&mut scores[earlier], outcome);
            }
        }
        for score in &mut scores {
            // The best loser has at most (K - 3) steps: the threshold lies one step from both.
            add_constant(score, (step * (classes as u64 - 2)).wrapping_neg());
        }
        // Codes are odd multiples of 2^59 as signed numbers, so half of one is exact: +half + half = code for the
        // winner, -half + half = 0 for the others.
        let halves: Vec<u64> =
            (0..classes).map(|class| (self.encoding.answer_code(class).cast_signed() / 2).cast_unsigned()).collect();
        let tables: Vec<_> = halves.iter().map(|&half| table(self.p, |_| half)).collect();
        let scores = self.key_switch(&scores);
        let codes = self.bootstrap(&scores, &tables, Precision::Fine);
        let mut answer = self.zero();
        for (code, half) in codes.iter().zip(halves) {
            add(&mut answer, code);
            add_constant(&mut answer, half);
        }
        answer
    }
}
