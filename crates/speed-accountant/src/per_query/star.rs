//! `epsilon*`: fix the noise of all classes but the one that loses a vote and the one that gains it.
//!
//! Let class `a` lose a vote and `b` gain one, and let `m` be the best noisy count of the others (and of a threshold).
//! The answer is `a` with probability `J(m - n_a, n_a - n_b)`, where `J(A, D) = P[r >= A and r' <= r + D]` for two
//! classes' noise `r, r'`; at the neighbour with `J(A + 1, D - 2)`. So the loss at `a` is at most `epsilon* = sup over A,
//! D of ln J(A, D) / J(A + 1, D - 2)`. At `b` the same holds with `d` and `d'` exchanged. At any other answer (and at "no
//! answer") the ratio is at most `sup F(z) / F(z - 1)`, which is the limit `D -> infinity` of the supremum.

use speed_mechanism::{DiscreteLaplace, GeneralisedLaplace, LaplaceTable};

use super::search::simplex;
use crate::quadrature::{Place, Quality, half_line, interval};
use crate::{Noise, PrivacyEvent};

/// Beyond this inverse scale the lemma is as good, and probabilities underflow.
const LARGEST_SCALE: f64 = 8.0;
/// How far out `D` is looked for, in units of `1/gamma`.
const FURTHEST: f64 = 45.0;

/// Windows up to this are evaluated at every integer.
const EXHAUSTIVE: i64 = 500;

/// The largest `ln J(A, D) / J(A + 1, D - 2)` that a search finds, per query; the supremum is the larger of it and `2
/// gamma`, its limit for `D` to minus infinity. `None` where it is not computed: for noise that is not Laplace and for
/// inverse scales above 8.
///
/// It is a search: use [`SEARCH_MARGIN`](super::SEARCH_MARGIN), as
/// [`tight_per_query_epsilon`](super::tight_per_query_epsilon) does.
#[must_use]
pub fn epsilon_star(event: &PrivacyEvent) -> Option<f64> {
    match event.noise() {
        Noise::Laplace { gamma } if gamma.get() <= LARGEST_SCALE => {
            Some(continuous(&LaplaceTable::new(GeneralisedLaplace::of_class(gamma, event.tau())), gamma.get()))
        }
        Noise::DiscreteLaplace { gamma } if gamma.get() <= LARGEST_SCALE => {
            Some(integer(&DiscreteLaplace::of_class(gamma, event.tau()), gamma.get()))
        }
        _ => None,
    }
}

fn continuous(noise: &LaplaceTable, gamma: f64) -> f64 {
    let ratio = |[a, u]: [f64; 2]| {
        // D grows like e^|u|: it matters over many orders of magnitude.
        let d = u.sinh();
        log_j(noise, gamma, a, d) - log_j(noise, gamma, a + 1.0, d - 2.0)
    };
    let far = (FURTHEST / gamma).asinh();
    let mut best = (f64::NEG_INFINITY, [0.0, 0.0]);
    for a in [-0.5, -0.15, 0.0] {
        for i in -7..=4 {
            let u = if i < 0 { far / 7.0 * f64::from(i) } else { 0.2 * f64::from(i) };
            let value = ratio([a, u]);
            if value > best.0 {
                best = (value, [a, u]);
            }
        }
    }
    let refined = simplex(best.1, [0.05, far / 60.0], 55, |[a, u]| ratio([a, u.clamp(-far, far)]));
    refined.max(best.0)
}

/// `ln J(a, d)`.
fn log_j(noise: &LaplaceTable, gamma: f64, a: f64, d: f64) -> f64 {
    let density = |(place, weight): (Place, f64)| {
        // What is so far out does not show even where `d` is at its end.
        let log_density = noise.log_density(place.from(0.0));
        if log_density < -3.0 * FURTHEST {
            return 0.0;
        }
        let t = place.from(-d);
        let below = if t <= 0.0 { noise.log_survival(-t).exp() } else { 1.0 - noise.log_survival(t).exp() };
        weight * log_density.exp() * below
    };
    let (first, second) = if d > 0.0 { (-d, 0.0) } else { (0.0, -d) };
    let mut from = a;
    let mut sum = 0.0;
    for cut in [first, second] {
        if cut > from {
            sum += interval(from, cut, Quality::Coarse).map(density).sum::<f64>();
            from = cut;
        }
    }
    let tail = half_line(from, 1.0 / gamma, Quality::Coarse);
    (sum + tail.filter(|(place, _)| place.offset * gamma < 2.5 * FURTHEST).map(density).sum::<f64>()).ln()
}

fn integer(noise: &DiscreteLaplace, gamma: f64) -> f64 {
    let reach = (2.0 * FURTHEST / gamma).ceil() as i64 + 8;
    let lattice = noise.lattice(reach as usize + 4);
    // F(k) = P[X <= k] = P[X >= -k].
    let pmf: Vec<f64> = (-reach..=reach).map(|k| lattice.log_pmf(k).exp()).collect();
    let below: Vec<f64> = (-reach..=reach).map(|k| lattice.log_survival(-k).exp()).collect();
    let at = |values: &[f64], k: i64| values[(k + reach).clamp(0, 2 * reach) as usize];
    // J(., d) and J(., d - 2) from the right: the largest ratio over all A for one D. Sums start so far out that what
    // they leave out does not show at the places compared.
    let furthest = (FURTHEST / gamma).ceil() as i64;
    let ratio = |d: i64| {
        let (mut here, mut next, mut best) = (0.0f64, 0.0f64, f64::NEG_INFINITY);
        for a in (-furthest..=reach).rev() {
            here += at(&pmf, a) * at(&below, a + d);
            if a <= furthest / 2 && next > 0.0 {
                best = best.max((here / next).ln());
            }
            next += at(&pmf, a) * at(&below, a + d - 2);
        }
        best
    };
    if furthest <= EXHAUSTIVE {
        return (-furthest..=furthest).map(ratio).fold(f64::NEG_INFINITY, f64::max);
    }
    let mut places = vec![0];
    let mut d = 1i64;
    while d < furthest {
        places.extend([d, -d]);
        d = (d + 1).max(d * 3 / 2);
    }
    places.push(-furthest);
    places.sort_unstable();
    let values: Vec<f64> = places.iter().map(|&d| ratio(d)).collect();
    let best = (0..places.len()).max_by(|&i, &j| values[i].total_cmp(&values[j])).unwrap_or(0);
    // Between the neighbours of the best: halve on the slope.
    let (mut low, mut high) = (places[best.saturating_sub(1)], places[(best + 1).min(places.len() - 1)]);
    let mut largest = values[best];
    while high - low > 2 {
        let middle = low + (high - low) / 2;
        let (left, right) = (ratio(middle), ratio(middle + 1));
        largest = largest.max(left).max(right);
        if left >= right { high = middle } else { low = middle + 1 }
    }
    (low..=high).map(ratio).fold(largest, f64::max)
}
