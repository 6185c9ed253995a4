//! Symmetric distributions on the integers as tables of logarithms.

/// Logarithms of the probabilities and tails of a symmetric distribution on the integers, up to a reach.
#[derive(Clone, Debug, PartialEq)]
pub struct Lattice {
    log_pmf: Vec<f64>,
    log_survival: Vec<f64>,
}

impl Lattice {
    /// Creates a table from `ln P_{k+1}/P_k` and `P[X >= k]/P_k` for `k = 0..=reach`.
    pub(crate) fn from_ratios(entries: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let (mut log_pmf, mut log_survival) = (Vec::new(), Vec::new());
        let mut entries = entries.into_iter().peekable();
        // P_0 = 1 / (2 R_0 - 1) by symmetry.
        let mut current = entries.peek().map_or(0.0, |(_, first)| -(2.0 * first - 1.0).ln());
        for (log_ratio, tail) in entries {
            log_pmf.push(current);
            log_survival.push(current + tail.ln());
            current += log_ratio;
        }
        Self { log_pmf, log_survival }
    }

    /// Returns the largest magnitude in the table.
    #[must_use]
    pub fn reach(&self) -> usize {
        self.log_pmf.len() - 1
    }

    /// Returns `ln P[X = k]`, or minus infinity beyond the reach.
    #[must_use]
    pub fn log_pmf(&self, k: i64) -> f64 {
        self.index(k).map_or(f64::NEG_INFINITY, |k| self.log_pmf[k])
    }

    /// Returns `ln P[X >= t]`; beyond the reach, the value at the reach, which is an upper bound; below minus the
    /// reach, 0.
    #[must_use]
    pub fn log_survival(&self, t: i64) -> f64 {
        if t > 0 {
            return self.log_survival[self.index(t).unwrap_or(self.reach())];
        }
        // P[X >= -m] = 1 - P[X >= m + 1], also for m = 0, because it is close to 1 if there is hardly any noise.
        match self.index(t.unsigned_abs().saturating_add(1).try_into().unwrap_or(i64::MAX)) {
            Some(k) => (-self.log_survival[k].exp()).ln_1p(),
            None => 0.0,
        }
    }

    fn index(&self, k: i64) -> Option<usize> {
        usize::try_from(k.unsigned_abs()).ok().filter(|&k| k < self.log_pmf.len())
    }
}
