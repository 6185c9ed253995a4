//! Symmetric distributions on the integers as tables of logarithms.

/// Logarithms of the probabilities and tails of a distribution on the integers that is symmetric about 0 or 1/2, up to
/// a reach.
#[derive(Clone, Debug, PartialEq)]
pub struct Lattice {
    /// Twice the centre: 0 or 1.
    twice_centre: i64,
    /// From the centre, rounded up.
    log_pmf: Vec<f64>,
    pub(crate) log_survival: Vec<f64>,
}

impl Lattice {
    /// Creates a table of a distribution that is symmetric about 0 from `ln P_{k+1}/P_k` and `P[X >= k]/P_k` for
    /// `k = 0..=reach`.
    pub(crate) fn from_ratios(entries: Vec<(f64, f64)>) -> Self {
        // P_0 = 1 / (2 R_0 - 1) by symmetry.
        Self::from_first(0, entries, |first| -(2.0 * first - 1.0).ln())
    }

    /// The same for a distribution that is symmetric about 1/2, from `k = 1..=reach + 1`.
    pub(crate) fn about_one_half(entries: Vec<(f64, f64)>) -> Self {
        // P_1 = 1 / (2 R_1) by symmetry.
        Self::from_first(1, entries, |first| -(2.0 * first).ln())
    }

    fn from_first(twice_centre: i64, entries: Vec<(f64, f64)>, log_first: impl Fn(f64) -> f64) -> Self {
        let (mut log_pmf, mut log_survival) = (Vec::new(), Vec::new());
        let mut current = entries.first().map_or(0.0, |(_, first)| log_first(*first));
        for (log_ratio, tail) in entries {
            log_pmf.push(current);
            log_survival.push(current + tail.ln());
            current += log_ratio;
        }
        Self { twice_centre, log_pmf, log_survival }
    }

    /// Returns twice the centre of the distribution: 0 or 1.
    pub fn twice_centre(&self) -> i64 {
        self.twice_centre
    }

    /// Returns the largest distance from the centre in the table, rounded down.
    pub fn reach(&self) -> usize {
        self.log_pmf.len() - 1
    }

    /// Returns `ln P[X = k]`, or minus infinity beyond the reach.
    pub fn log_pmf(&self, k: i64) -> f64 {
        let k = if 2 * k < self.twice_centre { self.twice_centre - k } else { k };
        self.index(k).map_or(f64::NEG_INFINITY, |k| self.log_pmf[k])
    }

    /// Returns `ln P[X >= t]`; beyond the reach, the value at the reach, which is an upper bound; below the reach, 0.
    pub fn log_survival(&self, t: i64) -> f64 {
        if 2 * t > self.twice_centre {
            return self.log_survival[self.index(t).unwrap_or(self.reach())];
        }
        // P[X >= t] = 1 - P[X <= t - 1], also at the centre, because it is close to 1 if there is hardly any noise.
        match self.index(self.twice_centre.saturating_sub(t).saturating_add(1)) {
            Some(k) => (-self.log_survival[k].exp()).ln_1p(),
            None => 0.0,
        }
    }

    /// Returns `ln P[X <= k]`, like [`Self::log_survival`].
    pub fn log_below(&self, k: i64) -> f64 {
        self.log_survival(self.twice_centre.saturating_sub(k))
    }

    /// Returns the place of `k`, which is not below the centre.
    fn index(&self, k: i64) -> Option<usize> {
        usize::try_from(k - self.twice_centre).ok().filter(|&k| k < self.log_pmf.len())
    }
}
