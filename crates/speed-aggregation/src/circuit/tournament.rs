//! Argmax by a knock-out tournament that carries each winner's count and index in one ciphertext.

use super::engine::{Engine, Glwe, Lwe, Precision, add, add_constant, difference, table};

impl Engine<'_> {
    pub(super) fn tournament(&mut self, values: &[Lwe]) -> Lwe {
        let mut contestants: Vec<Lwe> = values.to_vec();
        for (class, contestant) in contestants.iter_mut().enumerate() {
            add_constant(contestant, self.encoding.index(class));
        }
        while contestants.len() > 1 {
            contestants = self.play_round(&contestants);
        }
        self.read_out(&contestants[0])
    }

    /// One round: neighbours meet, and the one with the larger count goes on; the earlier on a tie. An odd last one goes
    /// on without a match. Contestants keep their order, so that "earlier" always means "lower classes".
    pub(super) fn play_round(&mut self, contestants: &[Lwe]) -> Vec<Lwe> {
        let (pairs, odd) = contestants.as_chunks::<2>();
        let leads: Vec<Lwe> = pairs.iter().map(|[earlier, later]| difference(later, earlier)).collect();
        let differences = self.at_scales(&leads);
        let signs = self.compare(differences);
        let gains = self.select(&signs, &leads);
        let mut winners: Vec<Lwe> = pairs.iter().map(|[earlier, _]| earlier.clone()).collect();
        for (winner, gain) in winners.iter_mut().zip(&gains) {
            add(winner, gain);
        }
        winners.extend_from_slice(odd);
        winners
    }

    /// For each match the lead if the sum of signs is positive, else an encryption of zero: one bootstrap compares and
    /// selects, because its table is itself encrypted and holds the lead where the sum is positive.
    fn select(&mut self, signs: &[Lwe], leads: &[Lwe]) -> Vec<Lwe> {
        let mut inputs = self.key_switch(signs);
        for input in &mut inputs {
            // A quarter turn moves the sums from (-1/4, 1/4) to (0, 1/2), where a table is free (not negacyclic).
            add_constant(input, 1 << 62);
        }
        let tables: Vec<Glwe> = self.pack(leads).into_iter().map(|packed| self.half_table(packed)).collect();
        self.bootstrap(&inputs, &tables, Precision::Fine)
    }

    /// An encrypted table that is 0 in its first half and `packed`'s constant coefficient in its second: the product
    /// with `X^(N/2) + .. + X^(N-1)` modulo `X^N + 1`.
    fn half_table(&self, mut packed: Glwe) -> Glwe {
        let n = self.p.polynomial_size;
        let half = n / 2;
        for polynomial in packed.as_mut().chunks_exact_mut(n) {
            let input = polynomial.to_vec();
            // Entry j is the sum over a window of N/2 entries, j - N + 1 to j - N/2, which wrap around with a change of
            // sign.
            let mut window = input[1..=half].iter().fold(0_u64, |sum, x| sum.wrapping_sub(*x));
            for j in 0..n {
                polynomial[j] = window;
                let entering = if j + 1 >= half { input[j + 1 - half] } else { input[j + 1 + half].wrapping_neg() };
                let leaving = if j + 1 < n { input[j + 1].wrapping_neg() } else { input[0] };
                window = window.wrapping_add(entering).wrapping_sub(leaving);
            }
        }
        packed
    }

    /// The answer code of a contestant's index. Its count stays behind: it only moves the phase within a table entry.
    fn read_out(&mut self, winner: &Lwe) -> Lwe {
        let mut inputs = self.key_switch(std::slice::from_ref(winner));
        add_constant(&mut inputs[0], self.encoding.half_slot());
        let width = 2 * self.p.polynomial_size / self.p.max_classes();
        let codes = table(self.p, |i| self.encoding.answer_code(i / width));
        self.bootstrap(&inputs, &[codes], Precision::Fine).remove(0)
    }
}
