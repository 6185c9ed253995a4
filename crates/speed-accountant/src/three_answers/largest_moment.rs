//! The largest moment of the three answers over all marks, for log-concave noise.
//!
//! The noise is on the integers. Its probabilities `p` are log-concave, and so are their sums `F`. The supremum over
//! the marks is that of the moment of each order. The supremum of profiles lets the adversary choose other marks for
//! every `alpha`, which costs more.
//!
//! # Answers that are left out
//!
//! Noise with a bounded support has infinite losses at its end, so a moment over all answers is infinite. Fix a
//! probability `eta` ([`LargestMoment::removed`]). In the direction from `P` to `P'`, leave out every answer `o` with
//! `P[o] < eta` and `P[o] > P'[o]`. At most two answers have `P > P'`, so a query leaves out at most `2 eta` of
//! probability. Let `S` be the sequences of answers in which no answer was left out, where the marks of each query may
//! depend on earlier answers. Then
//!
//! ```text
//! sum of (P - e^eps P')_+  <=  P[not S] + E_P[(1 - e^{eps - loss})_+ 1_S].
//! ```
//!
//! The first term is at most `2 k eta` for `k` queries. The second is at most the conversion of moments, applied to
//! `E_P[e^{l loss} 1_S]`, because the conversion bounds `(1 - e^{eps - x})_+` by a multiple of `e^{l x}` for every `x`.
//! By induction over the queries this mean is at most the product of the largest moments. So `2 k eta` is subtracted
//! from delta.
//!
//! # The excess is a sum of positive terms
//!
//! With `phi(r) = r^{l+1} - 1 - (l + 1)(r - 1) >= 0`, the moment of order `l` less 1 is the sum over all `o` of
//! `P'[o] phi(P[o] / P'[o])`. Without an answer that has `P > P'`, the moment less 1 is at most the sum over the other
//! answers, because the rest, `-P'[o] - (l + 1)(P[o] - P'[o])`, is negative.
//!
//! # Ratios are monotone
//!
//! Let `Q(A, B) = sum over x >= A of p(x) F(x - A + B)`, so that `P[a] = Q(A, B)` and `P[b] = Q(B, A - 1)`. Each of the
//! ratios `P[o] / P'[o]` grows with `A` and falls with `B`:
//!
//! - Neither: `F(A-1) F(B-1) / (F(A) F(B-2))`, because `F` is log-concave as a sum of a log-concave `p`.
//! - `a`: the ratio `Q(A, B) / Q(A+1, B-1)`. Write `E = A - B` and `G(A, E) = Q(A, A - E)`. Three inequalities hold for
//!   all `A` and `E`. The ratio falls with `B` by (2) and (1), and grows with `A` by (3).
//! - `b`: the inverse of the same ratio at the marks `(B-1, A)`.
//!
//! ```text
//! G(A, E+1) G(A+1, E)    <=  G(A+1, E+1) G(A, E)          (1)
//! G(A+1, E+2) G(A, E-1)  <=  G(A, E+1) G(A+1, E)          (2)
//! G(A+2, E+3) G(A, E)    <=  G(A+1, E+2) G(A+1, E+1)      (3)
//! ```
//!
//! Each follows from the four functions theorem (Ahlswede and Daykin 1978) on the integers: if
//! `f1(x) f2(y) <= f3(max(x, y)) f4(min(x, y))` for all `x, y`, the same holds for the sums of the functions. For (1)
//! take the terms of the four sums as they are. The indicators agree. For `x >= y` both sides are equal, and for
//! `y > x` the claim is `F(x-E-1) F(y-E) <= F(y-E-1) F(x-E)`, which is log-concavity. For (2) and (3) shift the first
//! sum on the left and the second on the right by one, so that their terms contain `p(x+1)`. For `x >= y` the factors
//! `F` are equal, and the claim is `p(x+1) p(y) <= p(x) p(y+1)`. For `x < y` the factors `p` are equal, and the claim
//! is the log-concavity of `F` for places that move towards each other by two.
//!
//! # The supremum is certified
//!
//! `P[a]` falls with `A` and grows with `B`, `P[b]` the other way round, and `P[neither]` grows with both. So the
//! excess on a rectangle of marks is at most the sum over the answers of the largest `P'` times the larger `phi` of the
//! lowest and the highest ratio, all of them taken at corners. Rectangles are divided, the one with the largest bound
//! first, until the logarithm of the largest bound is close to that of an attained value. The marks are from `-R` to
//! `R`, where the tail `t` beyond `R` is at most `e^-21 eta`. Outside,
//!
//! - if `A > R`, class `a` does not win except with probability `t`, and `b` reaches its mark or not: two numbers that
//!   depend on `B` alone, each within a factor `1 - t`; the same for `B > R`;
//! - if neither is above `R` and one is below `-R`, that class reaches its mark except with probability `t`, and only
//!   `B - A` matters: the answers are those of two classes, each within `t`.
//!
//! Both are scanned in one dimension with these margins. Two classes without a threshold are the second case with
//! `t = 0`. Logarithms of ratios are moved outwards by 1e-12 and 4e-15 for each place of the tables, which covers
//! rounding.
//!
//! # Wide noise
//!
//! Tables of noise that reach beyond 3,300 places (from a deviation of about 260 votes on, at a delta of 1e-5) keep one in 64 of
//! the sums `Q(A, B)` for each `B - A`, and add the terms up to the next one that is kept. This changes only the order of a
//! sum. In any order the relative error of a sum of `n` positive terms is at most `n` times `2^-53` (Higham 2002, section
//! 4.2), and the margin of a ratio of two sums has `36 2^-53` for each place. Divisions end at 1 % instead of 0.4 %. At
//! given votes the search for an order uses an estimate of this bound, and the exact moment of a row is not compared with
//! it. Every order and both moments are valid, so a claim is never too small for that.
//!
//! # Neighbours that differ in a party of several teachers
//!
//! Any of a party's `M` votes may move from any class to any other, become empty, or no longer be. So the counts change by a
//! vector `d` of integers, of which the positive ones add up to at most `M`, and so do the negative ones. Such a `d` is a
//! mean, with weights, of 0 and the vectors `M (e_b - e_a)`, `-M e_a` and `M e_b`, that move all votes from one class `a`
//! to one class `b`, to none or from none. The largest moment is that of one of these vectors:
//!
//! The probability of the outcome `o` at the counts `n` is
//!
//! ```text
//! P_n(o) = sum over x of p(x - n_o) product over j of F(x - n_j - t_j),
//! ```
//!
//! with a constant `t_j` of 0 or 1 for ties, and for a threshold a factor that is 1 from some `x` on; "no answer" is a
//! product of factors `F(T - 1 - n_j)`. For Gaussian noise the sum is an integral of a function that is log-concave in
//! `(x, n)`, so `P_n(o)` is log-concave in `n` (Prékopa 1973). For noise on the integers, minus the logarithm of the
//! summand is a sum of convex functions of differences of coordinates. So it is L-natural-convex: its values at the
//! rounded-up and the rounded-down midpoint of two points add up to at most its values at the points (Murota 2003). The
//! discrete Prékopa-Leindler inequality for these midpoints (Klartag and Lehec 2019, Theorem 1.4) carries this over to
//! the sum. So `-ln P_n(o)` is L-natural-convex in `n`, hence the restriction of a convex function to the integers. In
//! both cases, for a fixed `n`, `P_{n+d}(o)^{-l}` is the exponential of a convex function of `d`, and so the moment
//! `sum over o of P_n(o)^{l+1} P_{n+d}(o)^{-l}` is convex. It is largest at one of these vectors, and 1 at 0. The set
//! of all `d` is symmetric, so this covers both directions.
//!
//! For such a `d`, with an infinite `B` for votes that become empty, the bounds of one teacher hold with marks that move by `M` votes instead of one, because the ratio of
//! `P[o]` at `(A, B)` to that at `(A + M, B - M)` is a product of `M` ratios of neighbours one place apart, each of
//! which grows with `A` and falls with `B`. A check's mark moves by at most `M` votes.
//!
//! Outcomes with `P_n(o) < eta` are left out, whatever `d` is: at most all classes but one, or "no answer". So they
//! cost at most `257 eta` of delta for at most 256 classes, and `eta` is chosen so that this is what one teacher's
//! query pays. The bounds above leave out answers given the other counts. For an outcome that is kept, let those
//! answers be the ones less likely than `10^-9 eta`. An outcome loses at most the part `10^-9` of its probability to
//! them, so the moment of the outcomes kept is at most `(1 - 10^-9)^{-(l+1)}` times that of the answers kept
//! ([`log_of_rest`]).

mod answer;
mod check;
mod division;
mod gaussian;
mod integers;
mod two_counts;

use std::sync::Arc;

pub(crate) use answer::{Answer, Excess};
use check::CheckMarks;
use gaussian::OnLattice;
use integers::{ESTIMATED, Integers};
pub(crate) use integers::{LONGEST, ROUNDING};
use speed_mechanism::{Mechanism, NoiseDeviation};
pub(crate) use two_counts::TwoCounts;

use crate::event::PrivacyEvent;
use crate::lattice_noise::LatticeNoise;
use crate::memo::Memo;
use crate::sound::larger;

/// Products of two smaller probabilities may be subnormal.
const LEAST_REMOVED: f64 = 1e-140;

/// Rectangles are divided for a party only if the noise has at least this deviation, in votes of the party: for narrower
/// noise the largest moments are at the edge of the removed answers.
const WIDE_FOR_A_PARTY: f64 = 5.0;
/// The largest deviation of noise on the integers for which a party's account computes largest moments and searches for
/// group privacy: beyond it that takes minutes, and two counts are compared.
pub(crate) const WIDEST_FOR_A_PARTY: f64 = 128.0;

/// The probability of an answer, as a part of that of the outcomes left out, which an outcome that is kept loses when its
/// answers are left out given the other counts.
const REST: f64 = 1e-9;

/// Returns the probability below which answers are left out, if `2 removed` of delta pays for all of them. If the votes of
/// several teachers differ, outcomes are left out by their probability, whatever the other counts are: the classes and "no
/// answer". Given the other counts, answers of the outcomes that are kept are left out only if they are less likely by the
/// factor [`REST`], which [`log_of_rest`] pays for.
fn part_of_party(event: &PrivacyEvent, removed: f64) -> f64 {
    if event.is_of_party() { REST * removed * (2.0 / (PrivacyEvent::MAX_PARTY_CLASSES + 1) as f64) } else { removed }
}

/// Returns a bound of the logarithm by which the moment of order `l` of the outcomes kept exceeds that of their answers kept:
/// an outcome has at most `1 / (1 - REST)` times the probability of its answers that are kept.
fn log_of_rest(l: f64) -> f64 {
    (l + 1.0) * 2.0 * REST
}

/// One query with log-concave noise, or one check, for any votes.
pub(crate) struct LargestMoment {
    marks: Marks,
    /// Answers that are less likely are left out.
    removed: f64,
    /// The probability by which they increase delta.
    charge: f64,
    /// Whether the votes of several teachers differ.
    is_of_party: bool,
    /// Relative error of a logarithm of a ratio.
    rounding: f64,
    /// The excess by order, of two classes and of any number.
    known: [Memo<1, f64>; 2],
}

/// The marks that decide the outcome.
enum Marks {
    /// The marks of both classes of an argmax, and the answers that the estimate is made of.
    Three(Integers, Vec<[Answer; 3]>),
    /// The mark of a check.
    Two(CheckMarks),
}

impl LargestMoment {
    /// Returns the query or check of an event. Answers less likely than `removed` are left out: [`Self::charge`] is to be charged
    /// to delta for each query. Returns `None` for continuous Laplace noise, for noise that is not log-concave, for
    /// Gaussian noise that is too narrow or too wide, if `removed` is too small to compute with, or if the tables would be too long.
    pub(crate) fn of_event(event: &PrivacyEvent, removed: f64) -> Option<Arc<Self>> {
        static KNOWN: Memo<5, Option<Arc<LargestMoment>>> = Memo::new();
        let [kind, scale, tau, moved] = event.noise_key();
        KNOWN.get_or([kind, scale, tau, moved, removed], || Self::new(event, removed).map(Arc::new))
    }

    fn new(event: &PrivacyEvent, removed: f64) -> Option<Self> {
        if !(LEAST_REMOVED..=0.5).contains(&removed) {
            return None;
        }
        let known = [Memo::new(), Memo::new()];
        let (charge, is_of_party) = (2.0 * removed, event.is_of_party());
        let (removed, votes) = (part_of_party(event, removed), event.party_teachers());
        if event.is_check() {
            let marks = match event.mechanism() {
                Mechanism::Gaussian { sigma } => CheckMarks::of_gaussian(sigma, event.tau(), votes, removed),
                _ => CheckMarks::new(&LatticeNoise::new(event).filter(LatticeNoise::is_log_concave)?, votes, removed)?,
            };
            let rounding = marks.rounding();
            return Some(Self { removed, charge, is_of_party, rounding, marks: Marks::Two(marks), known });
        }
        let marks = match event.mechanism() {
            // Marks are real, so a party of narrow noise is a teacher of wider noise.
            Mechanism::Gaussian { sigma } => {
                let of_teacher = NoiseDeviation::new(sigma.get() / f64::from(votes)).ok()?;
                Integers::of_gaussian(&OnLattice::new(of_teacher, event.tau())?, removed)?
            }
            _ => {
                let noise = LatticeNoise::new(event).filter(LatticeNoise::is_log_concave)?;
                let suits_a_party = WIDE_FOR_A_PARTY * f64::from(votes)..=WIDEST_FOR_A_PARTY;
                if is_of_party && !suits_a_party.contains(&noise.deviation()) {
                    return None;
                }
                Integers::new(&noise, votes, removed)?
            }
        };
        let (rounding, estimated) = (marks.rounding(), marks.estimated());
        Some(Self { removed, charge, is_of_party, rounding, marks: Marks::Three(marks, estimated), known })
    }

    /// Returns the probability by which answers that are left out increase delta, for each query.
    pub(crate) fn charge(&self) -> f64 {
        self.charge
    }

    /// Returns whether the noise ends where it is not negligible, so that leaving out more may help.
    pub(crate) fn ends_early(&self) -> bool {
        match &self.marks {
            Marks::Three(marks, _) => marks.ends_early(),
            Marks::Two(marks) => marks.ends_early(),
        }
    }

    /// Returns whether the noise is so wide that certifying a moment takes long, beside an estimate.
    pub(crate) fn is_wide(&self) -> bool {
        matches!(&self.marks, Marks::Three(marks, _) if marks.is_wide())
    }

    fn order(&self, l: f64) -> Excess {
        Excess { l, removed: self.removed, rounding: self.rounding }
    }

    /// Adds the part of outcomes whose answers are left out given the other counts.
    fn with_rest(&self, excess: f64, l: f64) -> f64 {
        if self.is_of_party { excess + (1.0 + excess) * log_of_rest(l).exp_m1() } else { excess }
    }

    /// Bounds the excess over 1 of the moment of order `l`, in both directions, for any number of classes.
    pub(crate) fn excess(&self, l: f64) -> f64 {
        self.known[0].get_or([l], || {
            let excess = self.order(l);
            let largest = match &self.marks {
                Marks::Three(marks, _) => {
                    let outside = larger(marks.beyond_one_mark(&excess), marks.between_two(&excess));
                    larger(outside, marks.in_window(&excess))
                }
                Marks::Two(marks) => marks.largest(&excess),
            };
            self.with_rest(largest * (1.0 + 1e-9), l)
        })
    }

    /// The same for two classes and no threshold.
    fn excess_of_two_classes(&self, l: f64) -> f64 {
        match &self.marks {
            Marks::Three(marks, _) => {
                self.known[1].get_or([l], || self.with_rest(marks.between_two(&self.order(l)) * (1.0 + 1e-9), l))
            }
            Marks::Two(_) => self.excess(l),
        }
    }

    /// Bounds the excess of a query whose answer depends on one difference of noise, or of any query.
    pub(crate) fn excess_of(&self, one_difference: bool, l: f64) -> f64 {
        if one_difference { self.excess_of_two_classes(l) } else { self.excess(l) }
    }

    /// Returns an estimate of [`Self::excess_of`], which only guides the search for an order. That of one difference takes
    /// little time itself.
    pub(crate) fn estimate_of(&self, one_difference: bool, l: f64) -> f64 {
        if one_difference { self.excess_of_two_classes(l) } else { self.largest_of_every(1, l) }
    }

    /// Returns a lower bound of the largest moment, from few marks.
    pub(crate) fn at_least(&self, l: f64) -> f64 {
        self.largest_of_every(ESTIMATED as usize / 2 - 1, l)
    }

    /// Returns the largest excess at one of every `step` marks of the estimate.
    fn largest_of_every(&self, step: usize, l: f64) -> f64 {
        let excess = self.order(l);
        match &self.marks {
            Marks::Three(_, estimated) => {
                estimated.iter().step_by(step).map(|answers| excess.of(answers)).fold(0.0, f64::max)
            }
            Marks::Two(marks) => marks.estimate(&excess),
        }
    }
}

#[cfg(test)]
mod tests {
    use speed_mechanism::log_normal_survival;
    use speed_mechanism::{HonestRatio, Lattice, NoiseCoins};

    use super::*;
    use crate::quadrature::{AnchoredPoint, Precision, interval};

    /// Returns the larger moment of order `l` of two sets of answers, without answers below `removed` that are likelier here.
    pub(super) fn moment<const N: usize>(here: [f64; N], there: [f64; N], l: f64, removed: f64) -> f64 {
        let of = |here: [f64; N], there: [f64; N]| -> f64 {
            let kept = here.into_iter().zip(there).filter(|&(p, q)| p > 0.0 && (p >= removed || p <= q));
            kept.map(|(p, q)| p * (p / q).powf(l)).sum()
        };
        larger(of(here, there), of(there, here))
    }

    fn gaussian(sigma: f64) -> PrivacyEvent {
        let sigma = NoiseDeviation::new(sigma).expect("a deviation");
        PrivacyEvent::new(Mechanism::gaussian(sigma), HonestRatio::ALL)
    }

    /// Returns the probabilities of `a`, `b` and neither with Gaussian noise for real marks in deviations, by quadrature.
    fn real_answers(a: f64, b: f64) -> [f64; 3] {
        let below = |x: f64| log_normal_survival(-x).exp();
        let wins = |a: f64, b: f64| -> f64 {
            let first = a.max(-11.0);
            let density = |x: f64| (-0.5 * x * x).exp() / std::f64::consts::TAU.sqrt();
            let at = |(x, weight): (AnchoredPoint, f64)| weight * density(x.from(0.0)) * below(x.from(0.0) - a + b);
            // The nodes of an interval are dense at its ends only.
            let pieces = (0..24).map(|i| first + f64::from(i));
            pieces.flat_map(|from| interval(from, from + 1.0, Precision::Fine)).map(at).sum()
        };
        [wins(a, b), wins(b, a), below(a) * below(b)]
    }

    #[test]
    fn gaussian_noise_is_bounded_at_all_real_marks() {
        for sigma in [5.5, 40.0] {
            let query = LargestMoment::of_event(&gaussian(sigma), 1e-18).expect("a query");
            let vote = 1.0 / sigma;
            // Steps that no lattice divides, and marks far out.
            let marks: Vec<f64> = (-20..=20).map(|i| 0.173_2 * f64::from(i)).chain([-7.1, 6.3]).collect();
            let all: Vec<_> = marks.iter().flat_map(|&a| marks.iter().map(move |&b| (a, b))).collect();
            let pairs: Vec<_> =
                all.iter().map(|&(a, b)| (real_answers(a, b), real_answers(a + vote, b - vote))).collect();
            assert!(pairs.iter().all(|(here, _)| (here.iter().sum::<f64>() - 1.0).abs() < 1e-9));
            for l in [0.4, 3.0, 15.0] {
                let excess = pairs.iter().map(|&(here, there)| moment(here, there, l, 1e-18) - 1.0);
                let (largest, found) = (excess.fold(0.0, f64::max), query.excess(l));
                assert!(found >= largest, "{sigma} {l}: {found} below {largest}");
                // The lattice, the end of the divisions and the distance between marks.
                assert!(found.ln_1p() <= largest.ln_1p() * 1.02, "{sigma} {l}: {found} above {largest}");
            }
        }
    }

    #[test]
    fn noise_on_a_lattice_and_seen_noise_add_up_to_gaussian_noise() {
        for (sigma, tau) in [(5.0, 1.0), (17.3, 1.0), (40.0, 0.7), (128.0, 1.0)] {
            let tau = HonestRatio::new(tau).expect("a ratio");
            let lattice = OnLattice::new(NoiseDeviation::new(sigma).expect("a deviation"), tau).expect("noise");
            let all = (sigma * lattice.vote as f64).powi(2) * tau.get();
            let on_lattice = lattice.deviation.powi(2);
            let seen = all - on_lattice;
            let density = |x: f64, v: f64| (-0.5 * x * x / v).exp() / (std::f64::consts::TAU * v).sqrt();
            for x in [0.0, 0.3, 0.5, 20.71, 3.0 * all.sqrt()] {
                let places = (x as i64 - 60)..=(x as i64 + 60);
                let sum: f64 = places.map(|k| density(k as f64, on_lattice) * density(x - k as f64, seen)).sum();
                assert!((sum / density(x, all) - 1.0).abs() < 1e-12, "{sigma} {x}: {sum}");
            }
            // Little is lost, and the next vote is a place of the lattice.
            assert!(on_lattice > 0.998 * all && lattice.vote >= 1, "{lattice:?}");
        }
    }

    #[test]
    fn gaussian_noise_costs_nearly_as_much_as_skellam_noise_of_its_deviation() {
        let deviation = NoiseDeviation::new(40.0).expect("a deviation");
        let skellam = PrivacyEvent::new(Mechanism::skellam(deviation), HonestRatio::ALL);
        let of = |event: &PrivacyEvent| LargestMoment::of_event(event, 1e-18).expect("a query");
        let (skellam, gaussian_40) = (of(&skellam), of(&gaussian(40.0)));
        for (two_classes, l) in [(false, 5.0), (true, 5.0), (true, 40.0)] {
            let ratio = gaussian_40.excess_of(two_classes, l) / skellam.excess_of(two_classes, l);
            assert!((ratio - 1.0).abs() < 0.01, "{two_classes} {l}: {ratio}");
        }
        for sigma in [0.01, 4.9, 170.0, 1e6] {
            assert!(LargestMoment::of_event(&gaussian(sigma), 1e-18).is_none(), "{sigma}");
        }
        // Two classes are one difference, whatever lattice it is on.
        let (l, vote) = (2.0, 2.0 / (2.0f64.sqrt() * 5.5));
        let exact = |lead: f64| {
            let p = [lead, -lead].map(|z| log_normal_survival(z).exp());
            let q = [lead + vote, -lead - vote].map(|z| log_normal_survival(z).exp());
            (0..2).map(|i| p[i] * (p[i] / q[i]).powf(l)).sum::<f64>() - 1.0
        };
        let largest = (-300..300).map(|i| exact(0.02 * f64::from(i))).fold(0.0, f64::max);
        let found = of(&gaussian(5.5)).excess_of(true, l);
        assert!(found >= largest && found < 1.005 * largest, "{found} against {largest}");
    }

    fn event(coins: u64) -> PrivacyEvent {
        PrivacyEvent::new(Mechanism::binomial(NoiseCoins::new(coins).expect("coins")), HonestRatio::ALL)
    }

    /// Returns the probabilities of `a`, `b` and neither for given marks, by a sum over all noise.
    fn answers(noise: &Lattice, furthest: i64, (a, b): (i64, i64)) -> [f64; 3] {
        let mut answers = [0.0; 3];
        for s in -furthest..=furthest {
            for t in -furthest..=furthest {
                let (u, v) = (s - a, t - b);
                let answer = if u.max(v) < 0 { 2 } else { usize::from(v > u) };
                answers[answer] += (noise.log_pmf(s) + noise.log_pmf(t)).exp();
            }
        }
        answers
    }

    /// Calls `visit` with the answers at all marks and at their neighbours.
    fn for_all_marks(coins: u64, mut visit: impl FnMut((i64, i64), [f64; 3], [f64; 3])) {
        let furthest = coins as i64 / 2 + 2;
        let noise = LatticeNoise::new(&event(coins)).expect("integers").of_class(furthest as usize);
        for a in -furthest - 2..=furthest + 2 {
            for b in -furthest - 2..=furthest + 2 {
                visit((a, b), answers(&noise, furthest, (a, b)), answers(&noise, furthest, (a + 1, b - 1)));
            }
        }
    }

    #[test]
    fn the_bound_is_just_above_the_largest_moment_of_all_marks() {
        for coins in [9, 24] {
            for removed in [1e-12, 1e-4, 3e-2] {
                let query = LargestMoment::of_event(&event(coins), removed).expect("a query");
                for l in [0.3, 2.0, 9.0] {
                    let mut largest = 0.0f64;
                    for_all_marks(coins, |_, here, there| {
                        largest = larger(largest, moment(here, there, l, removed));
                    });
                    let found = query.excess(l).ln_1p();
                    assert!(found >= largest.ln(), "{coins} {removed} {l}: {found} below {}", largest.ln());
                    // Answers that are left out lower the exact moment, but not the bound.
                    let most = largest.ln() * 1.01 + 3.0 * (l + 1.0) * removed;
                    assert!(found <= most, "{coins} {removed} {l}: {found} above {most}");
                }
            }
        }
    }

    #[test]
    fn ratios_grow_with_the_first_mark_and_fall_with_the_second() {
        let mut ratios = std::collections::HashMap::new();
        for_all_marks(11, |marks, here, there| {
            let possible = [0, 1, 2].map(|i| (here[i] > 1e-12 && there[i] > 1e-12).then(|| here[i] / there[i]));
            ratios.insert(marks, possible);
        });
        let mut compared = 0;
        for ((a, b), of) in &ratios {
            for (i, ratio) in of.iter().enumerate() {
                let other = |a: i64, b: i64| ratios.get(&(a, b)).and_then(|of| of[i]);
                if let (Some(ratio), Some(above), Some(beside)) = (ratio, other(a + 1, *b), other(*a, b + 1)) {
                    assert!(above >= ratio * (1.0 - 1e-9) && beside <= ratio * (1.0 + 1e-9), "({a}, {b}) {i}");
                    compared += 1;
                }
            }
        }
        assert!(compared > 200, "{compared}");
    }

    #[test]
    fn hardly_any_noise_is_bounded_from_above() {
        // The lattice of such narrow noise is hardly longer than its window.
        let deviation = NoiseDeviation::new(0.0152).expect("a deviation");
        let event = PrivacyEvent::new(Mechanism::skellam(deviation), HonestRatio::ALL);
        let noise = LatticeNoise::new(&event).expect("integers").of_class(12);
        let query = LargestMoment::of_event(&event, 1e-18).expect("a query");
        for l in [0.5, 2.0, 8.0] {
            for (a, b) in (-4..=4).flat_map(|a| (-4..=4).map(move |b| (a, b))) {
                let (here, there) = (answers(&noise, 6, (a, b)), answers(&noise, 6, (a + 1, b - 1)));
                let largest = moment(here, there, l, 1e-18);
                let found = query.excess(l) + 1.0;
                assert!(found >= largest * (1.0 - 1e-9), "({a}, {b}) {l}: {found:e} below {largest:e}");
            }
        }
    }
}
