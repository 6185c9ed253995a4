//! The number of right labels: a sum of independent queries with their own probabilities (Poisson-binomial).

/// Probabilities below this are left out, on each side of each group of queries.
const NEGLIGIBLE: f64 = 1e-22;
/// The probability outside each end of the interval.
const OUTSIDE: f64 = 0.025;

pub(super) struct RightLabels {
    queries: usize,
    /// The mean share of right labels.
    pub(super) share: f64,
    log_all: f64,
    /// The least number of wrong labels that is not negligible.
    first: usize,
    /// Probabilities of numbers of wrong labels, from `first` on.
    wrong: Vec<f64>,
}

impl RightLabels {
    /// Adds groups of queries: the probability that a label is wrong, from 0 to 1, and the number of queries that have it.
    pub(super) fn new(groups: impl IntoIterator<Item = (f64, usize)>) -> Self {
        let mut sum = Self { queries: 0, share: 0.0, log_all: 0.0, first: 0, wrong: vec![1.0] };
        let mut expected = 0.0;
        for (wrong, times) in groups {
            let (first, group) = binomial(wrong, times);
            (sum.first, sum.wrong) = trimmed(sum.first + first, convolved(&sum.wrong, &group));
            sum.queries += times;
            sum.log_all += times as f64 * (-wrong).ln_1p();
            expected += times as f64 * wrong;
        }
        sum.share = 1.0 - expected / sum.queries.max(1) as f64;
        sum
    }

    pub(super) fn all(&self) -> f64 {
        self.log_all.exp()
    }

    /// Returns the least and the largest number of right labels of the interval: each side outside it has a probability of at
    /// most 2.5 %.
    pub(super) fn interval(&self) -> (usize, usize) {
        let (fewest, most) = (outside(self.wrong.iter()), self.wrong.len() - 1 - outside(self.wrong.iter().rev()));
        (self.queries - (self.first + most), self.queries - (self.first + fewest))
    }
}

/// Returns how many of the first probabilities together are at most [`OUTSIDE`].
fn outside<'a>(probabilities: impl Iterator<Item = &'a f64>) -> usize {
    let mut sum = 0.0;
    let is_outside = |probability: &&f64| {
        sum += **probability;
        sum <= OUTSIDE
    };
    probabilities.take_while(is_outside).count()
}

/// Returns the distribution of the wrong labels among `times` queries from its least number on that is not negligible.
fn binomial(wrong: f64, times: usize) -> (usize, Vec<f64>) {
    if wrong <= 0.0 || times == 0 {
        return (0, vec![1.0]);
    }
    if wrong >= 1.0 {
        return (times, vec![1.0]);
    }
    // From the likeliest number outwards, relative to its probability.
    let (odds, all) = (wrong / (1.0 - wrong), times as f64);
    let mode = (((all + 1.0) * wrong) as usize).min(times);
    let mut below = Vec::new();
    let mut current = 1.0;
    for k in (0..mode).rev() {
        current *= (k + 1) as f64 / ((times - k) as f64 * odds);
        if current < NEGLIGIBLE {
            break;
        }
        below.push(current);
    }
    let first = mode - below.len();
    let mut probabilities: Vec<f64> = below.into_iter().rev().collect();
    probabilities.push(1.0);
    current = 1.0;
    for k in mode + 1..=times {
        current *= (times - k + 1) as f64 * odds / k as f64;
        if current < NEGLIGIBLE {
            break;
        }
        probabilities.push(current);
    }
    let sum: f64 = probabilities.iter().sum();
    probabilities.iter_mut().for_each(|probability| *probability /= sum);
    (first, probabilities)
}

fn convolved(a: &[f64], b: &[f64]) -> Vec<f64> {
    let mut sums = vec![0.0; a.len() + b.len() - 1];
    for (offset, factor) in b.iter().enumerate() {
        sums[offset..].iter_mut().zip(a).for_each(|(sum, value)| *sum += factor * value);
    }
    sums
}

fn trimmed(first: usize, probabilities: Vec<f64>) -> (usize, Vec<f64>) {
    let is_negligible = |probability: &&f64| **probability < NEGLIGIBLE;
    let before = probabilities.iter().take_while(is_negligible).count();
    let after = probabilities.iter().rev().take_while(is_negligible).count();
    if before + after >= probabilities.len() {
        return (first, probabilities);
    }
    (first + before, probabilities[before..probabilities.len() - after].to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sums over all subsets of queries.
    fn enumerated(wrong: &[f64]) -> Vec<f64> {
        let mut right = vec![0.0; wrong.len() + 1];
        for subset in 0..1_u32 << wrong.len() {
            let probability: f64 =
                (0..wrong.len()).map(|i| if subset >> i & 1 == 1 { 1.0 - wrong[i] } else { wrong[i] }).product();
            right[subset.count_ones() as usize] += probability;
        }
        right
    }

    #[test]
    fn different_queries_add_up_like_all_their_subsets() {
        for wrong in [vec![0.1, 0.5, 0.02, 0.9, 0.3, 0.3, 0.7], vec![0.0, 1.0, 0.25], vec![1e-9; 10], vec![0.4; 12]] {
            let exact = enumerated(&wrong);
            let found = RightLabels::new(wrong.iter().map(|&wrong| (wrong, 1)));
            let mean: f64 =
                exact.iter().enumerate().map(|(right, p)| right as f64 * p).sum::<f64>() / wrong.len() as f64;
            assert!((found.share - mean).abs() < 1e-12);
            assert!((found.all() - exact[wrong.len()]).abs() < 1e-12);
            let (low, high) = found.interval();
            let below = |end: usize| exact[..end].iter().sum::<f64>();
            let above = |end: usize| exact[end + 1..].iter().sum::<f64>();
            assert!(below(low) <= 0.025 && below(low + 1) > 0.025, "{wrong:?}: from {low}");
            assert!(above(high) <= 0.025 && (high == 0 || above(high - 1) > 0.025), "{wrong:?}: to {high}");
        }
    }

    #[test]
    fn equal_queries_are_one_group() {
        for (wrong, times) in [(0.3, 500), (1e-4, 2000), (0.999, 50), (0.5, 1)] {
            let (group, single) =
                (RightLabels::new([(wrong, times)]), RightLabels::new(std::iter::repeat_n((wrong, 1), times)));
            assert_eq!(group.interval(), single.interval());
            assert!((group.share - single.share).abs() < 1e-12 && (group.all() - single.all()).abs() < 1e-12);
        }
        // A million queries take a moment, and the interval is that of the normal approximation.
        let (low, high) = RightLabels::new([(0.2, 1_000_000)]).interval();
        assert!(low.abs_diff(799_216) <= 2 && high.abs_diff(800_784) <= 2, "{low} to {high}");
    }
}
