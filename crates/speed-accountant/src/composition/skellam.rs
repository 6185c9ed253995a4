//! Composition of Skellam noise by privacy loss distributions: in every query, two counts move by one vote each, or by all votes of a
//! party.

use speed_mechanism::{HonestRatio, NoiseDeviation, Skellam};

use super::convolution::Composition;
use super::profile::PrivacyProfile;
use crate::sound::at_least_zero;

/// Largest standard deviation of a count's noise for which a table is made.
const WIDEST: f64 = 20_000.0;
/// Steps of the grid in one standard deviation of the loss of one count.
const RESOLUTION: f64 = 12.0;
/// Largest number of losses on each side of 0 in a grid.
const MAX_STEPS: usize = 4_000;
/// If the profile at the end of the grid is below this part of delta, losses beyond the grid count as infinite.
const NEGLIGIBLE: f64 = 1e-9;

/// Computes a data-independent upper bound of the least epsilon of `queries` queries at `delta`, for neighbours that differ in `votes` votes.
/// `tilt` is a good order of moments. Returns `None` if the noise is too narrow or too wide, or the queries are too many, for a grid.
///
/// Any move of `votes` votes, from or to empty ones too, changes the counts by integers of which the positive ones add up to at most `votes`, and so do the negative ones. None
/// reveals more than a move of two counts by `votes` each. Let `f_s` be the trade-off function of a count and the same count moved by
/// `s` (Dong, Roth, Su: Gaussian Differential Privacy); the noise is symmetric, so the direction does not matter. It is log-concave, so tests with a
/// threshold are the best for every `s`; hence `f_(s + t) = f_t o (1 - f_s)`, and `f_s` falls as `s` grows. Two counts that move by `s` and `t` do so
/// one after the other, so by the argument for group privacy their trade-off function is at least `f_t o (1 - f_s)`: one count that moves by `s + t`
/// reveals as much or more, also beside the other counts, because products of trade-off functions are monotone. This merges all
/// counts that gain votes into one, and all that lose votes into another.
pub(crate) fn skellam_epsilon(
    sigma: NoiseDeviation,
    tau: HonestRatio,
    votes: u32,
    queries: usize,
    delta: f64,
    tilt: f64,
) -> Option<f64> {
    let noise = Skellam::of_class(sigma, tau);
    let times = u32::try_from(queries.checked_mul(2)?).ok()?;
    let deviation = noise.variance().sqrt();
    if deviation > WIDEST {
        return None;
    }
    let moved = i64::from(votes);
    let reach = (40.0 * deviation + 200.0).ceil() as i64 + moved;
    let lattice = noise.lattice((reach + moved) as usize + 1);
    // The count gains the votes: the loss at k is ln p(k) / p(k - votes), which falls as k grows. Survival probabilities are
    // sums of positive terms, so differences of tails keep their digits.
    let loss = |k: i64| lattice.log_pmf(k) - lattice.log_pmf(k - moved);
    let excess = |at: f64| {
        // The loss is above `at` for all k up to a last one, `low`.
        let (mut low, mut high) = (-reach, reach);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if loss(middle) > at { low = middle } else { high = middle }
        }
        // P[X <= low] - alpha P[X <= low - votes], or computed from the other tail if that is close to 1 - alpha.
        if at >= 0.0 {
            at_least_zero(lattice.log_survival(-low).exp() - (at + lattice.log_survival(moved - low)).exp())
        } else {
            at_least_zero((at + lattice.log_survival(low + 1 - moved)).exp() - lattice.log_survival(low + 1).exp())
        }
    };
    let step = f64::from(votes) / (deviation * RESOLUTION);
    let allowed = NEGLIGIBLE * delta / f64::from(times);
    let half = (1..=MAX_STEPS / 8).map(|i| 8 * i).find(|&half| excess(half as f64 * step) < allowed)?;
    // The tables are accurate to eleven digits.
    let profile = PrivacyProfile::new(step, half, |at| excess(at) * (1.0 + 1e-10) + 1e-9 * allowed);
    Some(Composition::new(&[(profile.connect(), times)], tilt)?.epsilon(delta)).filter(|epsilon| epsilon.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_above_direct_sums_over_all_moves_of_the_votes() {
        let deviation = NoiseDeviation::new(3.0).expect("valid");
        let lattice = Skellam::of_class(deviation, HonestRatio::ALL).lattice(80);
        let table: Vec<f64> = (-40..=40).map(|k| lattice.log_pmf(k).exp()).collect();
        let p = |k: i64| table[(k + 40) as usize];
        // Moves of one, two and three votes between three counts; the last of each is the one of two counts.
        let moves: [(u32, &[[i64; 3]]); 3] = [
            (1, &[[1, -1, 0]]),
            (2, &[[1, 0, -1], [1, 1, -2], [2, -1, -1], [2, -2, 0]]),
            (3, &[[2, -2, 0], [2, 1, -3], [3, -2, -1], [3, -3, 0]]),
        ];
        for (votes, moves) in moves {
            for epsilon in [0.1f64, 0.5, 1.2] {
                let deltas = moves.iter().map(|moved| {
                    let mut delta = 0.0;
                    for at in (0..61_i64.pow(3)).map(|i| [i % 61 - 30, i / 61 % 61 - 30, i / 3_721 - 30]) {
                        let [here, there]: [f64; 2] = [0, 1].map(|s| (0..3).map(|j| p(at[j] - s * moved[j])).product());
                        delta += (here - epsilon.exp() * there).max(0.0);
                    }
                    delta
                });
                let deltas: Vec<f64> = deltas.collect();
                let most = deltas.iter().copied().fold(0.0, f64::max);
                assert_eq!(deltas.last(), Some(&most), "{votes} votes at {epsilon}: {deltas:?}");
                let found = skellam_epsilon(deviation, HonestRatio::ALL, votes, 1, most, 6.0).expect("a grid");
                // Half a step of the grid for several votes.
                let most = if votes == 1 { 0.01 * epsilon + 0.002 } else { f64::from(votes) / 72.0 };
                assert!((0.0..most).contains(&(found - epsilon)), "{votes}: {found} against {epsilon}");
            }
        }
    }
}
