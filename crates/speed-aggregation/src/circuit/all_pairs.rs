//! Argmax by all pairs: the winner is the class that beats all others.

use super::engine::{Engine, Lwe, Precision, add, add_constant, difference, subtract, table};

impl Engine<'_> {
    pub(super) fn all_pairs(&mut self, values: &[Lwe]) -> Lwe {
        let classes = values.len();
        // Key switches are linear: once for each class and scale, not for each pair.
        let switched: Vec<[Lwe; 3]> = values.iter().map(|v| [0, 1, 2].map(|scale| self.at_scale(v, scale))).collect();
        // A win is worth +step, a loss -step; the winner of all has (K - 1) step = a quarter of the torus.
        let step = (1_u64 << 62) / (classes as u64 - 1);
        let sign = table(self.p, |_| step);
        let mut scores = vec![self.zero(); classes];
        for later in 1..classes {
            for earlier in 0..later {
                let lead = [0, 1, 2].map(|scale| difference(&switched[later][scale], &switched[earlier][scale]));
                let signs = self.compare(lead);
                let signs = self.key_switch(&signs);
                let outcome = self.bootstrap(&signs, sign.clone(), Precision::Coarse);
                add(&mut scores[later], &outcome);
                subtract(&mut scores[earlier], &outcome);
            }
        }
        let mut answer = self.zero();
        for (class, mut score) in scores.into_iter().enumerate() {
            // The best loser has at most (K - 3) steps: the threshold lies one step from both.
            add_constant(&mut score, (step * (classes as u64 - 2)).wrapping_neg());
            let score = self.key_switch(&score);
            // Codes are odd multiples of 2^59 as signed numbers, so half of one is exact.
            let half_code = (self.encoding.answer_code(class).cast_signed() / 2).cast_unsigned();
            let mut code = self.bootstrap(&score, table(self.p, |_| half_code), Precision::Fine);
            add_constant(&mut code, half_code);
            add(&mut answer, &code);
        }
        answer
    }
}
