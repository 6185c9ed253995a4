//! Argmax by a knock-out tournament that carries each winner's count and index in one ciphertext.

use tfhe::core_crypto::prelude::{
    CiphertextModulus, GlweCiphertext, GlweSize, keyswitch_lwe_ciphertext_into_glwe_ciphertext,
};

use super::engine::{Engine, Glwe, Lwe, Precision, add, add_constant, difference, table};

impl Engine<'_> {
    pub(super) fn tournament(&mut self, values: &[Lwe]) -> Lwe {
        let mut contestants: Vec<Lwe> = values.to_vec();
        for (class, contestant) in contestants.iter_mut().enumerate() {
            add_constant(contestant, self.encoding.index(class));
        }
        // Neighbours meet and keep their order, so that "earlier" always means "lower classes".
        while contestants.len() > 1 {
            contestants = contestants
                .chunks(2)
                .map(|pair| match pair {
                    [earlier, later] => self.play(earlier, later),
                    other => other[0].clone(),
                })
                .collect();
        }
        self.read_out(&contestants[0])
    }

    /// The contestant with the larger count; the earlier one on a tie.
    pub(crate) fn play(&mut self, earlier: &Lwe, later: &Lwe) -> Lwe {
        let lead = difference(later, earlier);
        let signs = self.compare([0, 1, 2].map(|scale| self.at_scale(&lead, scale)));
        let mut winner = earlier.clone();
        add(&mut winner, &self.select(&signs, &lead));
        winner
    }

    /// `lead` if the sum of signs is positive, else an encryption of zero: one bootstrap compares and selects, because
    /// its table is itself encrypted and holds `lead` where the sum is positive.
    fn select(&mut self, signs: &Lwe, lead: &Lwe) -> Lwe {
        let mut input = self.key_switch(signs);
        // A quarter turn moves the sums from (-1/4, 1/4) to (0, 1/2), where a table is free (not negacyclic).
        add_constant(&mut input, 1 << 62);
        let table = self.half_table(lead);
        self.bootstrap(&input, table, Precision::Fine)
    }

    /// An encrypted table that is 0 in its first half and the phase of `value` in its second.
    fn half_table(&self, value: &Lwe) -> Glwe {
        let mut packed = GlweCiphertext::new(0, GlweSize(2), self.p.ring(), CiphertextModulus::new_native());
        keyswitch_lwe_ciphertext_into_glwe_ciphertext(&self.keys.packing, value, &mut packed);
        let n = self.p.polynomial_size;
        for polynomial in packed.as_mut().chunks_exact_mut(n) {
            let input = polynomial.to_vec();
            // Multiplication by X^(N/2) + .. + X^(N-1) modulo X^N + 1: entry j is a sum over a window of N/2 entries,
            // j - N + 1 to j - N/2, which wrap around with a change of sign.
            let half = n / 2;
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
        let mut input = self.key_switch(winner);
        add_constant(&mut input, self.encoding.half_slot());
        let slots = self.p.max_classes();
        let width = 2 * self.p.polynomial_size / slots;
        let codes = table(self.p, |i| self.encoding.answer_code(i / width));
        self.bootstrap(&input, codes, Precision::Fine)
    }
}
