//! Moments of the privacy loss of one query: `alpha(l) = ln E[e^{l loss}]`, which is `l` times the Rényi divergence of
//! order `l + 1`.
//!
//! Let one query be `eps`-private, and let `q = P_d[answer != o]` and `q' = P_d'[answer != o]` for one outcome `o`.
//!
//! - **Any pure epsilon** ([`pure_moment`]). The function `x -> x^{l+1}` is convex. So for likelihood ratios in
//!   `[e^-eps, e^eps]` with mean 1 under `d'` the mean is largest at the two ends.
//! - **Given `q` exactly**. The moment is
//!   `(1 - q)^{l+1} / (1 - q')^l + sum over j != o of p_j (p_j / p'_j)^l`. By convexity the sum is largest if the
//!   ratios are `e^{+-eps}`: a mass of `(q e^eps - q') / (e^eps - e^-eps)` has `e^eps`. The total is convex in `q'`,
//!   hence largest at an end of its range: `q' = q e^{+-eps}`, clipped so that `(1 - q) / (1 - q')` is in
//!   `[e^-eps, e^eps]`. The argument holds for every convex divergence, including the hockey stick.
//! - **Given an upper bound of `q`** ([`outcome_moment`]). Below `q_0 = 1 / (1 + e^eps)` both ends of the last item are
//!   convex in `q`, because `u^{l+1} / v^l` is jointly convex. Their derivatives at 0 are
//!   `l e^eps - l - 1 + e^{-eps l} >= 0` and `e^{eps l} - l - 1 + l e^-eps >= 0` (from `e^x >= 1 + x`), so they grow
//!   with `q`. At `q_0` they equal the first item, which is used from there on.
//! - **Known noise** ([`Chord`]). Bound the moment given the known noise `c` by `T(q_c)`, where `ln T` is the last item
//!   and `E_c[q_c] = q_1`, the probability **with all noise unknown**. `T` is convex from `T(0) = 1` to `M = T(q_0)`
//!   and constant beyond. So `T(q) <= 1 + (M - 1) min(1, q / q_0)`, which is concave, and by Jensen's inequality
//!   `alpha <= ln(1 + (M - 1) min(1, q_1 / q_0))`. This is the concave envelope: given only `q_1` no smaller bound is
//!   valid.

use crate::composition::pure_excess;
use crate::logarithms::log_sum;
use crate::sound::{at_least_zero, larger};

/// Computes Theorem 3: the upper bound of the moment of real order `l` of the privacy loss of one query that is (`epsilon`,
/// 0)-differentially private and gives another answer than its likeliest class with a probability of at most `e^log_q`.
///
/// The least of `epsilon l`, `epsilon^2 l (l + 1) / 2` and, if `q < (e^epsilon - 1)/(e^{2 epsilon} - 1)`, which is
/// `1/(e^epsilon + 1)`, also `ln((1 - q) ((1 - q)/(1 - e^epsilon q))^l + q e^{epsilon l})`. The last depends on the
/// votes, and bounds the loss in one direction only (erratum 7). It takes `ln q`, because a `q` that underflows to zero
/// would be unsound: `e^{epsilon l}` may be larger than `1/q` (erratum 17).
pub fn theorem_3(epsilon: f64, log_q: f64, l: f64) -> f64 {
    let value = paper_without_votes(epsilon, l);
    if log_q >= -log_one_plus_exp(epsilon) { value } else { value.min(theorem_3_branch(epsilon, log_q, l)) }
}

/// Returns the branches of Theorem 3 that do not depend on votes.
pub(crate) fn paper_without_votes(epsilon: f64, l: f64) -> f64 {
    (epsilon * l).min(epsilon * epsilon * l * (l + 1.0) / 2.0)
}

/// Returns the branch of Theorem 3 that depends on votes, for `q < 1/(e^epsilon + 1)`.
fn theorem_3_branch(epsilon: f64, log_q: f64, l: f64) -> f64 {
    let stays = (l + 1.0) * (-log_q.exp()).ln_1p() - l * (-(epsilon + log_q).exp()).ln_1p();
    log_sum(stays, log_q + epsilon * l)
}

/// Returns the exact worst moment of order `l > 0` of any (`epsilon`, 0)-differentially private mechanism: the moment
/// of randomised response, `ln((e^{(l+1) epsilon} + e^{-l epsilon}) / (1 + e^epsilon))`. It holds in both directions.
pub fn pure_moment(epsilon: f64, l: f64) -> f64 {
    if l * epsilon < 0.5 {
        // The numerator less the denominator, without cancellation.
        let excess = (l * epsilon).exp_m1() * (epsilon.exp() - (-l * epsilon).exp());
        return (excess / (1.0 + epsilon.exp())).ln_1p();
    }
    l * epsilon + (-(2.0 * l + 1.0) * epsilon).exp().ln_1p() - (-epsilon).exp().ln_1p()
}

/// Returns the worst moment given an **upper bound** of `q`: below `1/(1 + e^epsilon)` the exact worst moment, which
/// grows with `q`, and beyond it [`pure_moment`].
pub fn outcome_moment(epsilon: f64, log_q: f64, l: f64) -> f64 {
    let any = pure_moment(epsilon, l);
    let log_q = rounded_up(epsilon, log_q);
    if log_q >= -log_one_plus_exp(epsilon) { any } else { below_the_cap(epsilon, log_q, l).min(any) }
}

/// Rounds `ln q` up, because if `q e^epsilon` is close to 1, its difference from 1 keeps few digits of `ln q`. Rounding
/// up is safe because the bounds grow with `q`.
fn rounded_up(epsilon: f64, log_q: f64) -> f64 {
    // A q of 0 stays 0.
    if log_q == f64::NEG_INFINITY { log_q } else { log_q + 1e-11 + 8.0 * f64::EPSILON * (log_q.abs() + epsilon) }
}

fn below_the_cap(epsilon: f64, log_q: f64, l: f64) -> f64 {
    let stays = (l + 1.0) * (-log_q.exp()).ln_1p();
    // All other outcomes become less likely at the neighbour, or all become likelier.
    let less = log_sum(stays - l * (-(log_q - epsilon).exp()).ln_1p(), log_q + epsilon * l);
    let more = log_sum(stays - l * (-(log_q + epsilon).exp()).ln_1p(), log_q - epsilon * l);
    larger(less, more).max(0.0)
}

/// Returns the worst moment if the adversary knows the other teachers' noise. `epsilon` is the epsilon of one query
/// with the secret noise; `e^log_q` bounds the probability of another outcome **with all noise unknown** (see
/// docs/privacy.md, "Collusion").
pub fn collusion_moment(epsilon: f64, log_q: f64, l: f64) -> f64 {
    Chord::new(Family::Exact, epsilon, l).moment(log_q)
}

/// Returns the counterpart of [`outcome_moment`] for privacy profiles: how much `delta(e^at)` can exceed
/// `(1 - e^at)_+`, given an upper bound of `q`. It is attained at the same ends, because the argument there holds for
/// every convex divergence (docs/privacy.md, "Privacy loss distributions").
pub(crate) fn outcome_excess(epsilon: f64, log_q: f64, at: f64) -> f64 {
    let any = pure_excess(epsilon, at);
    let log_q = rounded_up(epsilon, log_q);
    if log_q >= -log_one_plus_exp(epsilon) {
        return any;
    }
    let q = log_q.exp();
    // q (1 - alpha e^-epsilon) and q (alpha e^epsilon - 1).
    let (less, more) = (q * -(at - epsilon).exp_m1(), q * (at + epsilon).exp_m1());
    let gap = at.exp_m1();
    let worst = if at >= 0.0 { larger(less, more - gap) } else { larger(more, less + gap) };
    at_least_zero(worst).min(any)
}

/// Returns the same if a part of the noise is known: the [`Chord`].
pub(crate) fn known_noise_excess(epsilon: f64, log_q1: f64, at: f64) -> f64 {
    (log_q1 + log_one_plus_exp(epsilon)).min(0.0).exp() * pure_excess(epsilon, at)
}

/// The worst case for a given `q`, from which the bound of a mixture follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// Theorem 3.
    Paper,
    /// [`outcome_moment`].
    Exact,
}

/// The moment if the adversary knows a part of the noise: an average over that part, given `ln q_1`, where `q_1` is the
/// probability of another outcome **with all noise unknown**.
///
/// The bound is the chord `1 + (M - 1) q_1 / q_0`, where `M` is the cap of the worst case given `q`, which is reached at
/// `q_0`.
pub(crate) struct Chord {
    cap: f64,
    /// `ln (M - 1)`.
    log_rise: f64,
    log_q0: f64,
}

impl Chord {
    /// Creates the chord of one order; the expensive part is here, not in [`Self::moment`].
    pub(crate) fn new(family: Family, epsilon: f64, l: f64) -> Self {
        let (cap, log_q0) = match family {
            Family::Exact => (pure_moment(epsilon, l), -log_one_plus_exp(epsilon)),
            Family::Paper => {
                let cap = paper_without_votes(epsilon, l);
                (cap, log_q_at(|log_q| theorem_3_branch(epsilon, log_q, l), -log_one_plus_exp(epsilon), cap))
            }
        };
        // Without overflow.
        let log_rise = if cap > 30.0 { cap } else { cap.exp_m1().ln() };
        Self { cap, log_rise, log_q0 }
    }

    pub(crate) fn moment(&self, log_q1: f64) -> f64 {
        log_sum(0.0, self.log_rise + (log_q1 - self.log_q0).min(0.0)).min(self.cap)
    }
}

/// Returns the `ln q` below `end` at which an increasing function reaches `cap`, rounded down, which makes the chord
/// larger.
fn log_q_at(moment: impl Fn(f64) -> f64, end: f64, cap: f64) -> f64 {
    let (mut low, mut high) = (end - 2_000.0, end);
    for _ in 0..80 {
        let middle = 0.5 * (low + high);
        // At the end itself the branch diverges.
        if moment(middle) >= cap { high = middle } else { low = middle }
    }
    low
}

/// Returns `ln(1 + e^epsilon)`, without overflow.
fn log_one_plus_exp(epsilon: f64) -> f64 {
    epsilon + (-epsilon).exp().ln_1p()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use speed_mechanism::{HonestRatio, InverseScale, Mechanism};

    use super::*;
    use crate::composition::tail_bound_epsilon;
    use crate::event::PrivacyEvent;
    use crate::outcome::q_pairs;

    #[test]
    fn the_chord_has_the_reference_values() {
        // Block tightened_on_fixture, "collusion-correct (eps*)": Theorem 3's chord with epsilon* and all orders to 25.
        let all: Value = serde_json::from_str(include_str!("../tests/vectors/reference.json")).expect("a JSON file");
        let fixtures = all["composed_fixtures"]["rows"].as_array().expect("rows");
        let fixture = fixtures.iter().find(|row| row["name"] == "mnist_fit_mingap10_round").expect("the fixture");
        let scale = InverseScale::new(0.1).expect("a scale");
        let rows: Vec<(f64, f64)> = fixture["counts_with_multiplicity"]
            .as_array()
            .expect("votes")
            .iter()
            .map(|entry| {
                let counts = entry[0].as_array().expect("counts");
                let counts: Vec<u32> = counts.iter().map(|count| count.as_f64().expect("a count") as u32).collect();
                let all = PrivacyEvent::new(Mechanism::laplace(scale), HonestRatio::ALL);
                (q_pairs(&counts, &all).expect("votes").ln(), entry[1].as_f64().expect("a number"))
            })
            .collect();
        // epsilon* is the rounded value of block eps_star, and the tolerances allow for its rounding.
        for (tau, tolerance) in [("1", 1e-9), ("0.9", 1e-4), ("0.7", 1e-7)] {
            let of_tau = |row: &&Value| row["gamma"] == 0.1 && row["tau"].as_f64() == tau.parse().ok();
            let stars = all["eps_star"]["rows"].as_array().expect("rows");
            let star = stars.iter().find(of_tau).map_or(0.2, |row| row["eps_star"].as_f64().expect("a number"));
            let found = (1..=25)
                .map(f64::from)
                .map(|l| {
                    let chord = Chord::new(Family::Paper, star, l);
                    let alpha: f64 = rows.iter().map(|&(log_q, times)| times * chord.moment(log_q)).sum();
                    tail_bound_epsilon(alpha, l, 1e-5)
                })
                .fold(f64::INFINITY, f64::min);
            let reference = &all["tightened_on_fixture"]["rows"][tau]["collusion-correct (eps*)"][0];
            let reference = reference.as_f64().expect("a number");
            assert!((found / reference - 1.0).abs() < tolerance, "tau {tau}: {found} against {reference}");
        }
    }
}
