//! A small generator of random numbers, which gives the same cases on every machine.

/// SplitMix64 (Steele, Lea and Flood 2014).
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// Creates the generator for one case of a run.
    pub(crate) fn of_case(seed: u64, case: u64) -> Self {
        let mut random = Self(seed ^ case.wrapping_mul(0xd134_2543_de82_ef95));
        random.next();
        Self(random.next())
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Draws a number in [0, 1).
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// Draws an integer; both ends are included.
    pub(crate) fn within(&mut self, from: i64, to: i64) -> i64 {
        from + (self.next() % (to - from + 1) as u64) as i64
    }

    /// Draws a number between `from` and `to` whose logarithm is uniform.
    pub(crate) fn log_uniform(&mut self, from: f64, to: f64) -> f64 {
        (from.ln() + self.unit() * (to / from).ln()).exp().clamp(from.min(to), from.max(to))
    }

    /// Draws an integer with a log-uniform distribution.
    pub(crate) fn log_within(&mut self, from: i64, to: i64) -> i64 {
        (self.log_uniform(from as f64, (to + 1) as f64) as i64).clamp(from, to)
    }

    pub(crate) fn choose<T: Copy>(&mut self, from: &[T]) -> T {
        from[(self.next() % from.len() as u64) as usize]
    }
}
