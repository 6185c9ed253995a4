//! Probabilities of the three answers by recurrences of positive terms, row by row.

use speed_mechanism::Lattice;

/// The probabilities of `a`, of `b` and of neither at one mark `A`, each for marks `B` from `-reach - 1` to
/// `reach + 1`.
#[derive(Clone, Debug)]
pub(crate) struct Row(pub(crate) [Vec<f64>; 3]);

/// Visits every row `A` from `reach` down to `-reach - 1`, together with the row above it, `A + 1`. If both classes
/// pass their marks by the same amount, `a` wins.
///
/// Beyond `reach + 1` a class never reaches its mark; this changes probabilities by at most the tail of the noise
/// there.
pub(crate) fn for_each_row(noise: &Lattice, reach: i64, mut visit: impl FnMut(i64, &Row, &Row)) {
    let edge = reach + 1;
    let width = (2 * edge + 1) as usize;
    let table = |f: &dyn Fn(i64) -> f64| -> Vec<f64> { (-edge..=edge + 1).map(f).collect() };
    let pmf = table(&|k| noise.log_pmf(k).exp());
    let survival = table(&|k| noise.log_survival(k).exp());
    // P[s <= k - 1].
    let below = table(&|k| noise.log_below(k - 1).exp());
    let next = |a: usize, above: Option<&Row>| {
        let mut row = Row([0, 1, 2].map(|_| vec![0.0; width]));
        let [first, second, neither] = &mut row.0;
        for b in 0..width {
            // The probabilities with both marks one higher.
            let (next_first, next_second) = match above {
                Some(Row([first, second, _])) if b + 1 < width => (first[b + 1], second[b + 1]),
                Some(_) => (survival[a + 1], 0.0),
                None if b + 1 < width => (0.0, survival[b + 1]),
                None => (0.0, 0.0),
            };
            first[b] = pmf[a] * below[b + 1] + next_first;
            second[b] = pmf[b] * below[a] + next_second;
            neither[b] = below[a] * below[b];
        }
        row
    };
    let mut above = next(width - 1, None);
    for a in (0..width - 1).rev() {
        let row = next(a, Some(&above));
        visit(a as i64 - edge, &row, &above);
        above = row;
    }
}

#[cfg(test)]
mod tests {
    use speed_mechanism::{DiscreteLaplace, HonestRatio, InverseScale};

    use super::*;

    #[test]
    fn probabilities_equal_a_direct_sum_over_all_noise() {
        let gamma = InverseScale::new(0.9).expect("valid");
        let noise = DiscreteLaplace::of_class(gamma, HonestRatio::new(0.6).expect("valid")).lattice(80);
        let (reach, furthest) = (45, 60i64);
        let mut rows = 0;
        for_each_row(&noise, reach, |mark_a, row, above| {
            rows += 1;
            if mark_a.abs() > 6 {
                return;
            }
            for mark_b in [-7i64, -1, 0, 1, 4] {
                for (row, mark_a) in [(row, mark_a), (above, mark_a + 1)] {
                    let mut direct = [0.0; 3];
                    for s in -furthest..=furthest {
                        for t in -furthest..=furthest {
                            let (u, v) = (s - mark_a, t - mark_b);
                            let answer = if u.max(v) < 0 { 2 } else { usize::from(v > u) };
                            direct[answer] += (noise.log_pmf(s) + noise.log_pmf(t)).exp();
                        }
                    }
                    let found = [0, 1, 2].map(|i| row.0[i][(mark_b + reach + 1) as usize]);
                    for (found, direct) in found.into_iter().zip(direct) {
                        assert!((found - direct).abs() < 1e-13, "({mark_a}, {mark_b}): {found} against {direct}");
                    }
                }
            }
        });
        assert_eq!(rows, 2 * reach + 2);
    }
}
