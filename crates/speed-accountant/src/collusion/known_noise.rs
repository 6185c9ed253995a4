//! Secret and known noise together, averaged over the known part.
//!
//! # Integer Laplace noise
//!
//! If `A` or `B` is beyond `27 / gamma`, the point is moved to the edge, either along the diagonal (far out on the
//! winning side only `B - A` matters) or up to it. This moves probabilities by at most the tail of the noise there, and
//! `p^{l+1} / p'^l` by at most `(2 l + 1) e^{eps (l + 1)}` times the tail, which is added. Known noise beyond
//! `24 / gamma` counts with the worst moment. Transforms have an error of less than 1e-12 of the largest value, which
//! is added. Pairs of classes that win with probability at most 1e-7 together are bounded by the chord
//! ([`crate::moments::Chord`]), with "neither" as the outcome.
//!
//! # Binomial and Skellam noise
//!
//! Answers are left out as in [`crate::three_answers`]: given `c_a`, `c_b` and `m`, an answer that is less likely than
//! `eta` and likelier than at the other votes is left out. At most two of three answers are, so `2 eta` is charged for
//! each query. The excess `G` is the sum over the answers of `p (r^l - 1)`, `r = p / p'`, with 0 for an answer that is
//! left out. This is at least the mean of `r^l` over the other answers, less 1.
//!
//! - *Bounds of an answer.* Let `t`, at most `e^-21 eta`, be the tail of the secret noise beyond a distance `R_s`. Each
//!   `p` is replaced by `p (1 + rho) + 2 t` and each `p'` by `p' (1 - rho) - 2 t`, where `rho` covers rounding. An
//!   answer is left out only if the first value is below `eta`. An infinite ratio makes the bound infinite, and then no
//!   votes are used.
//! - *Edges.* The plane is `R = R_s + C` wide, where known noise beyond `C` has a probability of at most 4e-13 for two
//!   classes and counts with the largest `G`. So every average at the edge is made of places with a mark beyond `R_s`.
//!   If a mark is above `R_s`, that class does not win except with probability `t`, below `eta`, and the other two
//!   answers change by a factor within `1 - t` if the mark grows. If no mark is above and one is below `-R_s`, all
//!   probabilities change by at most `t` along the diagonal, which the bounds of an answer contain. Transforms,
//!   rounding and edges add `(1e-12 + 3 rho + 100 (2 l + 1) t)` times 1 plus the largest `G`.
//! - *Unlikely pairs.* Let `w`, below 1e-24, bound the probability that `a` or `b` wins, at the votes and at the
//!   neighbour. Given `v = (c_a, c_b, m)` let `q'_v` be this probability at the neighbour. Where `q'_v <= 1 / (l + 1)`,
//!   "neither" has `p r^l <= (1 - q'_v)^-l <= 1 + 2 (l + 1) q'_v`, by convexity and `(1 + 1/l)^l < e`. All other cases
//!   together have a probability of at most `(l + 2) w` at the votes: `a` or `b` wins, or `q'_v > 1 / (l + 1)`
//!   (Markov). By Hölder's inequality they contribute at most `((l + 2) w)^{1 - 1/s} (1 + G_{ls})^{1/s}`, where
//!   `G_{ls}` is the largest `G` of the order `l s`. The mean of `G` is therefore at most `2 (l + 1) w` plus this, for
//!   `s = 2` and `s = 4`.
//! - *Coins.* Coins that are not secret are known. If both numbers are odd, both parts are counted from half a coin
//!   more, so a threshold and `m` move by one.

use rustfft::num_complex::Complex;
use speed_mechanism::{Binomial, DiscreteLaplace, HonestRatio, InverseScale, Lattice, Mechanism, NoiseCoins, Skellam};

use super::plane::{LossBound, NEGLIGIBLE, Plane};
use crate::event::PrivacyEvent;
use crate::lattice_noise::LatticeNoise;
use crate::moments::pure_moment;
use crate::neighbour_losses::{MAX_EPSILON, Unlikely};
use crate::sound::{at_least_zero, larger};

/// Planes with more points a side are not worth their time; the chord is used instead.
const MAX_SIDE: usize = 2_200;
/// Secret and known noise together is cut off beyond this multiple of `1/gamma`.
const CUT: f64 = 27.0;
/// Known noise beyond this multiple of `1/gamma` counts with the worst moment.
const CUT_KNOWN: f64 = 24.0;
/// Error allowed for the transforms, relative to the largest value.
const TRANSFORM: f64 = 1e-12;
/// If either class of a pair wins with less than this probability, the pair is bounded by that probability.
const UNLIKELY: f64 = 1e-7;
/// The same for noise without a pure epsilon, for which that bound is worse.
const UNLIKELY_WITHOUT_EPSILON: f64 = 1e-24;
/// Multiples of the order whose moments bound a pair that is unlikely to win.
const HIGHER_ORDERS: [f64; 2] = [2.0, 4.0];
/// `ln` of the tail of secret noise beyond the plane, relative to the probability of answers that are left out.
const BEYOND_PLANE: f64 = -21.0;
/// Tail of known noise that counts with the worst moment.
const BEYOND_KNOWN: f64 = 1e-13;
/// Relative error of a probability of the plane, and its growth with the length of the tables.
const ROUNDING: (f64, f64) = (2e-12, 8e-15);
/// A sum over at most this many classes has errors of the tails.
const CLASSES: f64 = 100.0;
/// Tables of noise that are longer than this are beyond the largest plane.
const LONGEST: usize = 1 << 13;

/// The law of secret and known noise, ready to be averaged over the known part.
pub(crate) struct KnownNoise {
    unlikely: Unlikely,
    pub(super) threshold: Option<i64>,
    pub(super) plane: Plane,
    /// Probability, with all noise unknown, of the places that are moved to the edge of the plane.
    tail: f64,
    /// Probability of known noise that is cut off, for two classes.
    tail_known: f64,
    /// Relative error of probabilities, for noise without a pure epsilon.
    rounding: f64,
    /// `P[r <= k]` of secret and known noise together.
    below: Vec<f64>,
    /// `P[r - r' >= k]` of two classes' noise, `k = 0, 1, ...`.
    beats: Vec<f64>,
}

/// A function of the plane averaged over the known noise: the excess over 1 of the moment of one query. The real part
/// is towards the neighbour where `a` loses and `b` gains a vote, the imaginary part towards the neighbour where `b`
/// loses and `a` gains one. If `b` never reaches its mark, only the vote of `a` matters.
pub(crate) struct AveragedExcess {
    values: Vec<Complex<f64>>,
    reach: i64,
    /// Added to every mean: tails, truncations, rounding.
    pub(super) allowance: f64,
    pub(super) cap: f64,
    order: f64,
    /// Factors of the order, each with the largest excess of the moment of this higher order; empty for noise with a
    /// pure epsilon.
    higher: Vec<(f64, f64)>,
}

impl KnownNoise {
    /// Creates the law of integer noise of which a ratio `tau` is secret and a ratio `known` is known, if its plane is
    /// not too large.
    pub(crate) fn new(event: &PrivacyEvent, known: HonestRatio, unlikely: Unlikely) -> Option<Self> {
        match (unlikely, event.mechanism()) {
            (Unlikely::Bounded(epsilon), Mechanism::DiscreteLaplace { gamma }) => {
                Self::of_laplace(event, gamma, known, epsilon)
            }
            (Unlikely::LeftOut(probability), _) => Self::leaving_out(event, known, probability),
            (Unlikely::Bounded(_), _) => None,
        }
    }

    fn of_laplace(event: &PrivacyEvent, gamma: InverseScale, known: HonestRatio, epsilon: f64) -> Option<Self> {
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
            unlikely: Unlikely::Bounded(epsilon),
            threshold: event.threshold().map(|threshold| threshold as i64),
            plane: Plane::new(&secret, &known, reach, known_reach, side, LossBound::Pure(epsilon)),
            tail: 2.0 * (all.log_survival(reach - 3).exp() + secret.log_survival(reach - 3).exp() + NEGLIGIBLE),
            tail_known: 4.0 * known.log_survival(known_reach + 1).exp(),
            rounding: 0.0,
            below: (-reach..=reach).map(|k| all.log_below(k).exp()).collect(),
            beats: (0..=2 * reach).map(|k| difference.log_survival(k).exp()).collect(),
        })
    }

    /// Creates the law of noise whose loss is bounded only except for a small probability. Given the known noise and
    /// the best of the other classes, answers less likely than `left_out` may be left out.
    fn leaving_out(event: &PrivacyEvent, known: HonestRatio, left_out: f64) -> Option<Self> {
        let (secret, all) = (LatticeNoise::new(event)?, LatticeNoise::new(&event.with_more_noise(known))?);
        let (known, offset) = known_part(event, known)?;
        let reach_of = |noise: &dyn Fn(usize) -> Lattice, log_tail: f64| -> Option<i64> {
            let lengths = std::iter::successors(Some(64), |length| Some(2 * length)).take_while(|&l| l <= LONGEST);
            lengths.map(noise).find_map(|lattice| {
                // Beyond its reach, tails of a lattice are only bounds.
                let places = 0..lattice.reach() as i64;
                places.into_iter().find(|&k| lattice.log_survival(k).max(lattice.log_below(-k)) <= log_tail)
            })
        };
        let within = reach_of(&|reach| secret.of_class(reach), left_out.ln() + BEYOND_PLANE)?;
        let known_reach = reach_of(&*known, BEYOND_KNOWN.ln())? + 4;
        // Averages at the plane's edge are made of places where the secret noise has ended.
        let reach = within + known_reach + 8;
        let side = transform_length(2 * (reach + known_reach) as usize + 3);
        if side > MAX_SIDE {
            return None;
        }
        let length = reach as usize + 8;
        let (secret, all) = (secret.of_class(length), (all.of_class(length), all.of_difference(2 * length)));
        let known = known(known_reach as usize + 8);
        let beyond = |noise: &Lattice, reach: i64| noise.log_survival(reach).max(noise.log_below(-reach)).exp();
        let tail = beyond(&secret, within);
        let rounding = ROUNDING.0 + ROUNDING.1 * reach as f64;
        // Along the edge of the plane and at the start of its sums.
        let losses = LossBound::LeftOut { left_out, off: 2.0 * tail, rounding };
        Some(Self {
            unlikely: Unlikely::LeftOut(left_out),
            threshold: event.threshold().map(|threshold| threshold as i64 + offset),
            plane: Plane::new(&secret, &known, reach, known_reach, side, losses),
            tail: tail + beyond(&all.0, reach - 2),
            tail_known: 4.0 * beyond(&known, known_reach),
            rounding,
            below: (-reach..=reach).map(|k| all.0.log_below(k - offset).exp()).collect(),
            beats: (0..=2 * reach).map(|k| all.1.log_survival(k).exp()).collect(),
        })
    }

    pub(crate) fn has_pure_epsilon(&self) -> bool {
        matches!(self.unlikely, Unlikely::Bounded(_))
    }

    /// Returns the probability of winning below which a pair of classes is bounded by that probability.
    pub(super) fn unlikely_pair(&self) -> f64 {
        if self.has_pure_epsilon() { UNLIKELY } else { UNLIKELY_WITHOUT_EPSILON }
    }

    /// Returns the mean moment of order `l`.
    pub(crate) fn averaged(&self, l: f64) -> AveragedExcess {
        // The cancellation here is as small as the error of a transform.
        let sums = |l: f64| self.plane.sums(|p, log_ratio| p * ((l * log_ratio).exp() - 1.0));
        let (values, reach) = (sums(l), self.plane.reach());
        if let Unlikely::Bounded(epsilon) = self.unlikely {
            let cap = pure_moment(epsilon, l).exp_m1();
            // p^{l+1} / p'^l changes by at most (2 l + 1) e^{epsilon (l + 1)} times the change of p and p'; there are
            // three answers.
            let slope = 3.0 * (2.0 * l + 1.0) * (epsilon * (l + 1.0)).exp();
            let allowance = slope * self.tail + cap * self.tail_known + TRANSFORM * (1.0 + cap);
            let values = self.plane.averaged(&values);
            return AveragedExcess { values, reach, allowance, cap, order: l, higher: Vec::new() };
        }
        let largest = |values: &[Complex<f64>]| {
            at_least_zero(values.iter().fold(0.0, |most, value| larger(most, larger(value.re, value.im))))
        };
        let cap = largest(&values);
        if !cap.is_finite() {
            return AveragedExcess { values: Vec::new(), reach, allowance: cap, cap, order: l, higher: Vec::new() };
        }
        // Places moved to the edge have probabilities within a factor of 1 - tail there, or are covered by the bounds
        // of the plane.
        let off = self.tail_known + TRANSFORM + 3.0 * self.rounding + CLASSES * (2.0 * l + 1.0) * self.tail;
        let higher = HIGHER_ORDERS.map(|factor| (factor, largest(&sums(factor * l)))).into();
        let values = self.plane.averaged(&values);
        AveragedExcess { values, reach, allowance: off * (1.0 + cap), cap, order: l, higher }
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

    /// Returns the mean at `x` if the other class never reaches its mark, without the allowance.
    pub(super) fn at_alone(&self, x: i64) -> Complex<f64> {
        let (reach, width) = (self.reach, 2 * self.reach + 1);
        self.values[(width * width + x.clamp(-reach, reach) + reach) as usize]
    }

    /// Bounds the mean for a pair of classes of which either wins with at most this probability, at the votes and at
    /// the neighbour; `epsilon` is for one query. The documentation of the module has both bounds.
    pub(super) fn of_unlikely_pair(&self, either_wins: f64, epsilon: f64) -> f64 {
        if self.higher.is_empty() {
            // The chord.
            return self.cap * (either_wins * (1.0 + epsilon.exp())).min(1.0);
        }
        if either_wins == 0.0 {
            return 0.0;
        }
        let likely_views = 2.0 * (self.order + 1.0) * either_wins;
        let others = |&(factor, excess): &(f64, f64)| {
            ((self.order + 2.0) * either_wins).powf(1.0 - 1.0 / factor) * (1.0 + excess).powf(1.0 / factor)
        };
        self.higher.iter().map(|higher| likely_views + others(higher)).fold(self.cap, f64::min)
    }
}

/// Noise as a function of the reach of its table.
type Tabulated = Box<dyn Fn(usize) -> Lattice>;

/// Returns the known noise of one class, and the sum of the centres of secret and known noise less the centre of both.
/// Coins that are not secret are known.
fn known_part(event: &PrivacyEvent, known: HonestRatio) -> Option<(Tabulated, i64)> {
    match event.mechanism() {
        Mechanism::Skellam { sigma } => {
            let noise = Skellam::of_class(sigma, known);
            Some((Box::new(move |reach| noise.lattice(reach)), 0))
        }
        Mechanism::Binomial { coins } => {
            let secret = coins.of_ratio(event.tau());
            let known = coins.of_ratio(event.with_more_noise(known).tau()).checked_sub(secret)?;
            let noise = Binomial::of_class(NoiseCoins::new(known).ok()?, HonestRatio::ALL);
            let offset = ((secret + known) / 2 - secret / 2 - known / 2) as i64;
            Some((Box::new(move |reach| noise.lattice(reach)), offset))
        }
        Mechanism::Laplace { .. } | Mechanism::DiscreteLaplace { .. } | Mechanism::Gaussian { .. } => None,
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
