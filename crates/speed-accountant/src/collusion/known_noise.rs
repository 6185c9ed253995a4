//! Secret and known noise together, averaged over the known part.

use rustfft::num_complex::Complex;
use speed_mechanism::{DiscreteLaplace, HonestRatio, Mechanism};

use super::plane::{NEGLIGIBLE, Plane};
use crate::event::PrivacyEvent;
use crate::moments::pure_moment;
use crate::neighbour_losses::MAX_EPSILON;

/// Planes with more points a side are not worth their time; the chord is used instead.
const MAX_SIDE: usize = 2_200;
/// Secret and known noise together is cut off beyond this multiple of `1/gamma`.
const CUT: f64 = 27.0;
/// Known noise beyond this multiple of `1/gamma` counts with the worst moment.
const CUT_KNOWN: f64 = 24.0;
/// Error allowed for the transforms, relative to the largest value.
const TRANSFORM: f64 = 1e-12;

/// The law of secret and known noise, ready to be averaged over the known part.
pub(crate) struct KnownNoise {
    epsilon: f64,
    pub(super) threshold: Option<i64>,
    pub(super) plane: Plane,
    /// Probability, with all noise unknown, of the places that are moved to the edge of the plane.
    tail: f64,
    /// Probability of known noise that is cut off, for two classes.
    tail_known: f64,
    /// `P[r <= k]` of secret and known noise together.
    below: Vec<f64>,
    /// `P[r - r' >= k]` of two classes' noise, `k = 0, 1, ...`.
    beats: Vec<f64>,
}

/// A function of the plane averaged over the known noise: the excess over 1 of the moment of one query. The real part
/// is towards the neighbour where `a` loses and `b` gains a vote, the imaginary part towards the neighbour where `b`
/// loses and `a` gains one.
pub(crate) struct AveragedExcess {
    values: Vec<Complex<f64>>,
    reach: i64,
    /// Added to every mean: tails, truncations, rounding.
    pub(super) allowance: f64,
    /// The largest excess possible.
    pub(super) cap: f64,
}

impl KnownNoise {
    /// Creates the law for discrete Laplace noise of which a ratio `tau` is secret and a ratio `known` is known, if its
    /// plane is not too large. `epsilon` is the epsilon of one query.
    pub(crate) fn new(event: &PrivacyEvent, known: HonestRatio, epsilon: f64) -> Option<Self> {
        let Mechanism::DiscreteLaplace { gamma } = event.mechanism() else { return None };
        if epsilon.is_nan() || epsilon > MAX_EPSILON {
            return None;
        }
        let scale = gamma.get();
        let reach = (CUT / scale).ceil() as i64 + 6;
        let known_reach = (CUT_KNOWN / scale).ceil() as i64 + 4;
        let side = transform_length(2 * (reach + known_reach) as usize + 3);
        if side > MAX_SIDE {
            return None;
        }
        let secret = DiscreteLaplace::of_class(gamma, event.tau()).lattice(reach as usize + 8);
        let both = event.with_more_noise(known).tau();
        let known = DiscreteLaplace::of_class(gamma, known).lattice(known_reach as usize + 8);
        let all = DiscreteLaplace::of_class(gamma, both).lattice(reach as usize + 8);
        let difference = DiscreteLaplace::of_difference(gamma, both).lattice(2 * reach as usize + 8);
        Some(Self {
            epsilon,
            threshold: event.threshold().map(|threshold| threshold as i64),
            plane: Plane::new(&secret, &known, reach, known_reach, side, epsilon),
            tail: 2.0 * (all.log_survival(reach - 3).exp() + secret.log_survival(reach - 3).exp() + NEGLIGIBLE),
            tail_known: 4.0 * known.log_survival(known_reach + 1).exp(),
            below: (-reach..=reach).map(|k| all.log_survival(-k).exp()).collect(),
            beats: (0..=2 * reach).map(|k| difference.log_survival(k).exp()).collect(),
        })
    }

    /// Returns the mean moment of order `l`.
    pub(crate) fn averaged(&self, l: f64) -> AveragedExcess {
        let cap = pure_moment(self.epsilon, l).exp_m1();
        // The cancellation here is as small as the error of a transform.
        let values = self.plane.averaged(|p, log_ratio| p * ((l * log_ratio).exp() - 1.0));
        // p^{l+1} / p'^l changes by at most (2 l + 1) e^{epsilon (l + 1)} times the change of p and p'; there are three
        // answers.
        let slope = 3.0 * (2.0 * l + 1.0) * (self.epsilon * (l + 1.0)).exp();
        let allowance = slope * self.tail + cap * self.tail_known + TRANSFORM * (1.0 + cap);
        AveragedExcess { values, reach: self.plane.reach(), allowance, cap }
    }

    /// Returns `P[r <= k]` of secret and known noise together.
    pub(super) fn below(&self, k: i64) -> f64 {
        let reach = self.plane.reach();
        if k < -reach { 0.0 } else { self.below.get((k + reach) as usize).copied().unwrap_or(1.0) }
    }

    /// Returns at least `P[r - r' >= k]`.
    pub(super) fn beats(&self, k: i64) -> f64 {
        if k <= 0 { 1.0 } else { self.beats[(k as usize).min(self.beats.len() - 1)] }
    }
}

impl AveragedExcess {
    /// Returns the mean at `(x, y)`, without the allowance. Far out on the winning side, only the difference matters;
    /// far out on the other side, nothing does.
    pub(super) fn at(&self, x: i64, y: i64) -> Complex<f64> {
        let reach = self.reach;
        let shift = (-reach - x.min(y)).max(0);
        let (x, y) = ((x + shift).min(reach), (y + shift).min(reach));
        self.values[((y + reach) * (2 * reach + 1) + x + reach) as usize]
    }
}

/// Returns the smallest length of at least `least` without prime factors above 5.
fn transform_length(least: usize) -> usize {
    (least..)
        .find(|&n| {
            let mut rest = n;
            for prime in [2, 3, 5] {
                while rest.is_multiple_of(prime) {
                    rest /= prime;
                }
            }
            rest == 1
        })
        .unwrap_or(least)
}
