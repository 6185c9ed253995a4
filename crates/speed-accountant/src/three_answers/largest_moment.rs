//! The largest moment of the three answers over all marks, for log-concave noise on the integers.
//!
//! The excess over 1 of the moment of order `l` is `E_P'[phi(P / P')]` with `phi(r) = r^{l+1} - 1 - (l + 1)(r - 1)`, a
//! sum of terms that are not negative. The three ratios `P / P'` grow with `A` and fall with `B` (docs/privacy.md,
//! "Largest moment"), and so does or falls every probability. A rectangle of marks is therefore bounded by its corners,
//! and rectangles are divided until the largest bound is close to an attained value.
//!
//! An answer that is less likely than [`LargestMoment::removed`] and whose loss is positive is left out, and its
//! probability is charged to delta. Beyond the support of bounded noise such a loss is infinite.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::Arc;

use speed_mechanism::Lattice;

use crate::event::PrivacyEvent;
use crate::lattice_noise::LatticeNoise;
use crate::memo::Memo;
use crate::sound::larger;

/// Division ends when the moment of the largest bound exceeds that of an attained value by at most this part.
const TOLERANCE: f64 = 4e-3;
/// The same for noise whose sums are not tabulated.
const TOLERANCE_OF_WIDE: f64 = 3e-2;
/// Sums are tabulated for noise up to this reach; longer tables take too much memory.
const TABULATED: i64 = 3_300;
/// After this number of divisions the largest bound is used as it is.
const MAX_DIVISIONS: usize = 200_000;
/// `ln` of the tail of the noise beyond the marks that are divided, relative to the removed probability.
const BEYOND_WINDOW: f64 = -21.0;
/// The same beyond the tables.
const BEYOND_TABLES: f64 = -40.0;
/// Products of two smaller probabilities may be subnormal.
const LEAST_REMOVED: f64 = 1e-140;
/// Places of a lattice beyond the tables made of it.
const BEYOND_REACH: i64 = 8;
/// Longer tables take too long.
const LONGEST: i64 = 1 << 18;
/// Marks of the estimate: this many on a side, within this many deviations.
const ESTIMATED: i64 = 33;
const ESTIMATED_DEVIATIONS: f64 = 5.0;
/// Relative error of a logarithm of a ratio, and its growth with the length of the tables.
const ROUNDING: (f64, f64) = (1e-12, 4e-15);

/// One query with log-concave integer noise, for any votes.
pub(crate) struct LargestMoment {
    noise: Tables,
    difference: Tables,
    /// Marks from `-window` to `window` are divided.
    window: i64,
    /// Probability of noise beyond the window, on either side, and of differences beyond their table.
    tail: f64,
    /// Answers that are less likely are left out.
    removed: f64,
    deviation: f64,
    ends_early: bool,
    rounding: f64,
    /// The answers that the estimate is made of.
    estimated: Vec<[Answer; 3]>,
}

/// Probabilities of noise, from `-reach` to `reach`.
struct Tables {
    reach: i64,
    pmf: Vec<f64>,
    /// `P[X <= k]`.
    below: Vec<f64>,
    /// `P[X >= k]`.
    above: Vec<f64>,
}

/// Probabilities that one noise beats another, computed when they are needed.
struct Wins<'a> {
    noise: &'a Tables,
    furthest: i64,
    /// For each lead `b - a` up to `furthest`, the sums over `x` from each place up to the reach of `p(x) F(x + b - a)`.
    by_lead: Vec<Option<Vec<f64>>>,
}

/// Bounds on one answer: of its probabilities, and of the ratio of the first to the second.
#[derive(Clone, Copy, Debug)]
struct Answer {
    here: f64,
    there: f64,
    /// Logarithms.
    lowest: f64,
    highest: f64,
}

/// Marks `A` and `B` from the first to the second number.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Rectangle {
    a: (i64, i64),
    b: (i64, i64),
}

/// A rectangle with the bound of its excess.
struct Bounded(f64, Rectangle);

impl Tables {
    fn new(noise: &Lattice, reach: i64) -> Self {
        let table = |f: &dyn Fn(i64) -> f64| -> Vec<f64> { (-reach..=reach).map(|k| f(k).exp()).collect() };
        Self {
            reach,
            pmf: table(&|k| noise.log_pmf(k)),
            below: table(&|k| noise.log_below(k)),
            above: table(&|k| noise.log_survival(k)),
        }
    }

    fn below(&self, k: i64) -> f64 {
        if k < -self.reach { 0.0 } else { self.below.get((k + self.reach) as usize).copied().unwrap_or(1.0) }
    }

    fn above(&self, k: i64) -> f64 {
        if k < -self.reach { 1.0 } else { self.above.get((k + self.reach) as usize).copied().unwrap_or(0.0) }
    }

    /// Returns the first place with a term in sums of this lead.
    fn first(&self, lead: i64) -> i64 {
        (-self.reach).max(-self.reach - lead)
    }

    /// Computes the sums of one lead.
    fn sums(&self, lead: i64) -> Vec<f64> {
        let places = (self.first(lead)..=self.reach).rev();
        let mut sums: Vec<f64> = places.map(|x| self.pmf[(x + self.reach) as usize] * self.below(x + lead)).collect();
        let mut sum = 0.0;
        for value in &mut sums {
            sum += *value;
            *value = sum;
        }
        sums.reverse();
        sums
    }

    /// Computes one of these sums.
    fn sum(&self, from: i64, lead: i64) -> f64 {
        let first = from.max(self.first(lead));
        // From here on `F` is 1.
        let certain = (self.reach + 1 - lead).max(first);
        let index = |place: i64| (place.min(self.reach + 1) + self.reach) as usize;
        let mine = &self.pmf[index(first)..index(certain)];
        let others = if mine.is_empty() { mine } else { &self.below[index(first + lead)..][..mine.len()] };
        product(mine, others) + self.above(certain)
    }
}

/// Returns `sum a b`, in lanes.
fn product(a: &[f64], b: &[f64]) -> f64 {
    const LANES: usize = 8;
    let ((of_a, rest_of_a), (of_b, rest_of_b)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    let mut sums = [0.0; LANES];
    for (a, b) in of_a.iter().zip(of_b) {
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            *sum += a * b;
        }
    }
    let rest: f64 = rest_of_a.iter().zip(rest_of_b).map(|(a, b)| a * b).sum();
    rest + sums.iter().sum::<f64>()
}

impl<'a> Wins<'a> {
    /// Prepares for marks up to `furthest`.
    fn new(noise: &'a Tables, furthest: i64) -> Self {
        let furthest = if noise.reach <= TABULATED { 2 * furthest + 8 } else { -1 };
        Self { noise, furthest, by_lead: (-furthest..=furthest).map(|_| None).collect() }
    }

    /// Returns the sum over `u >= 0` of `p(a + u) F(b + u)`: the noise reaches `a`, and exceeds it by at least as much as
    /// an independent copy exceeds `b`.
    fn at(&mut self, a: i64, b: i64) -> f64 {
        let (noise, lead) = (self.noise, b - a);
        match self.by_lead.get_mut((lead + self.furthest).max(0) as usize).filter(|_| lead.abs() <= self.furthest) {
            Some(sums) => {
                let sums = sums.get_or_insert_with(|| noise.sums(lead));
                let place = a.max(noise.first(lead)) - noise.first(lead);
                sums.get(place as usize).copied().unwrap_or(0.0)
            }
            None => noise.sum(a, lead),
        }
    }
}

impl Answer {
    /// Creates the bounds of an answer that is unlikely on both sides.
    fn unlikely(most: f64) -> Self {
        Self { here: most, there: most, lowest: f64::NEG_INFINITY, highest: f64::INFINITY }
    }

    /// Creates the bounds of an answer whose probabilities are at most these and less by at most `off`.
    fn about(here: f64, there: f64, off: f64) -> Self {
        let ln = |here: f64, there: f64| if here > 0.0 { (here / there.max(0.0)).ln() } else { f64::NEG_INFINITY };
        Self { here, there, lowest: ln(here - off, there), highest: ln(here, there - off) }
    }

    /// Returns the same bounds with both sides exchanged.
    fn reversed(self) -> Self {
        Self { here: self.there, there: self.here, lowest: -self.highest, highest: -self.lowest }
    }

    /// Bounds the term of this answer in the excess of the moment of order `l`.
    fn excess(&self, l: f64, removed: f64, rounding: f64) -> f64 {
        let (mut lowest, mut highest) = (self.lowest - rounding, self.highest + rounding);
        if self.here < removed {
            (lowest, highest) = (lowest.min(0.0), highest.min(0.0));
        }
        let phi = larger(phi(lowest, l), phi(highest, l));
        // An infinite ratio stays infinite, even if the other probability is 0.
        if phi == f64::INFINITY { phi } else { self.there * phi * (1.0 + 1e-11) }
    }
}

/// Returns `r^{l+1} - 1 - (l + 1)(r - 1)` for `ln r`.
fn phi(log_ratio: f64, l: f64) -> f64 {
    let order = l + 1.0;
    let power = order * log_ratio;
    if power == f64::INFINITY {
        return power;
    }
    if power.abs() < 0.02 && log_ratio.abs() < 0.02 {
        // The sum over j >= 2 of (order^j - order) log_ratio^j / j!; the terms left out are below a rounding error.
        let (mut sum, mut term, mut power) = (0.0, log_ratio, order);
        for j in 2..=8 {
            term *= log_ratio / f64::from(j);
            power *= order;
            sum += (power - order) * term;
        }
        return sum.max(0.0);
    }
    (power.exp_m1() - order * log_ratio.exp_m1()).max(0.0)
}

impl LargestMoment {
    /// Returns the query of an event. Answers less likely than `removed` are left out: [`Self::charge`] is to be charged
    /// to delta for each query. Returns `None` for noise that is not log-concave or not an integer, if `removed` is too
    /// small to compute with, or if the tables would be too long.
    pub(crate) fn of_event(event: &PrivacyEvent, removed: f64) -> Option<Arc<Self>> {
        static KNOWN: Memo<4, Option<Arc<LargestMoment>>> = Memo::new();
        let noise = LatticeNoise::new(event).filter(LatticeNoise::is_log_concave)?;
        let [kind, scale, tau] = event.noise_key();
        KNOWN.get_or([kind, scale, tau, removed], || Self::new(&noise, removed).map(Arc::new))
    }

    fn new(lattices: &LatticeNoise, removed: f64) -> Option<Self> {
        if !(LEAST_REMOVED..=0.5).contains(&removed) {
            return None;
        }
        let deviation = lattices.deviation();
        // Log-concave tails fall at least as fast as they do one deviation out.
        let reaching = |log_tail: f64, noise: &Lattice| -> Option<i64> {
            let enough = |k: i64| noise.log_survival(k).max(noise.log_below(-k)) <= log_tail;
            // Corners are a few places beyond the window. Beyond its reach a lattice has no log-concave probabilities.
            let (mut low, mut high) = (0, noise.reach() as i64 - BEYOND_REACH);
            if !enough(high) {
                return None;
            }
            while high - low > 1 {
                let middle = low + (high - low) / 2;
                if enough(middle) { high = middle } else { low = middle }
            }
            Some(high)
        };
        let mut length = (8.0 * deviation).ceil() as i64 + 8;
        let (noise, difference, window, reach) = loop {
            if length > LONGEST {
                return None;
            }
            let (noise, difference) = (lattices.of_class(length as usize), lattices.of_difference(length as usize));
            let window = reaching(removed.ln() + BEYOND_WINDOW, &noise);
            if let (Some(window), Some(reach), Some(_)) = (
                window,
                reaching(removed.ln() + BEYOND_TABLES, &noise),
                reaching(removed.ln() + BEYOND_TABLES, &difference),
            ) {
                break (noise, difference, window + 2, reach + 4);
            }
            length *= 2;
        };
        let wide = reaching(removed.ln() + BEYOND_TABLES, &difference)? + 4;
        let tail =
            noise.log_survival(window - 1).max(noise.log_below(1 - window)).max(difference.log_survival(wide)).exp();
        let rounding = ROUNDING.0 + ROUNDING.1 * reach.max(wide) as f64;
        let mut query = Self {
            noise: Tables::new(&noise, reach),
            difference: Tables::new(&difference, wide),
            window,
            tail,
            removed,
            deviation,
            ends_early: lattices.support().is_some_and(|end| end <= window),
            rounding,
            estimated: Vec::new(),
        };
        query.estimated = query.marks_of_estimate();
        Some(query)
    }

    /// Returns the probability by which answers that are left out increase delta, for each query.
    pub(crate) fn charge(&self) -> f64 {
        2.0 * self.removed
    }

    /// Returns whether the noise ends where it is not negligible, so that leaving out more may help.
    pub(crate) fn ends_early(&self) -> bool {
        self.ends_early
    }

    /// Bounds the excess over 1 of the moment of order `l`, in both directions, for any number of classes.
    pub(crate) fn excess(&self, l: f64) -> f64 {
        let outside = larger(self.beyond_one_mark(l), self.between_two(l));
        larger(outside, self.in_window(l)) * (1.0 + 1e-9)
    }

    /// The same for two classes and no threshold.
    fn excess_of_two_classes(&self, l: f64) -> f64 {
        self.between_two(l) * (1.0 + 1e-9)
    }

    /// Bounds the excess of a query whose answer depends on one difference of noise, or of any query.
    pub(crate) fn excess_of(&self, one_difference: bool, l: f64) -> f64 {
        if one_difference { self.excess_of_two_classes(l) } else { self.excess(l) }
    }

    /// Returns an estimate of the excess, which only guides the search for an order.
    pub(crate) fn estimate(&self, l: f64) -> f64 {
        self.estimated.iter().map(|answers| self.of_answers(answers, l)).fold(0.0, f64::max)
    }

    /// Returns a lower bound of the largest moment, from few marks.
    pub(crate) fn at_least(&self, l: f64) -> f64 {
        let few = self.estimated.iter().step_by(ESTIMATED as usize / 2 - 1);
        few.map(|answers| self.of_answers(answers, l)).fold(0.0, f64::max)
    }

    fn marks_of_estimate(&self) -> Vec<[Answer; 3]> {
        let most = (ESTIMATED_DEVIATIONS * self.deviation).min(self.window as f64);
        let step = (2.0 * most / (ESTIMATED - 1) as f64).max(1.0);
        let mark = |i: i64| (step * i as f64 - most).round() as i64;
        let marks: Vec<i64> = (0..ESTIMATED).map(mark).filter(|mark| *mark <= self.window).collect();
        let mut wins = Wins::new(&self.noise, self.window);
        let mut at = |a: i64, b: i64| self.answers(&Rectangle { a: (a, a), b: (b, b) }, &mut wins);
        marks.iter().flat_map(|&a| marks.iter().map(move |&b| (a, b))).map(|(a, b)| at(a, b)).collect()
    }

    /// Returns the larger of both directions.
    fn of_answers(&self, answers: &[Answer], l: f64) -> f64 {
        let sum = |reversed: bool| -> f64 {
            let term = |answer: &Answer| {
                let answer = if reversed { answer.reversed() } else { *answer };
                answer.excess(l, self.removed, self.rounding)
            };
            answers.iter().map(term).sum()
        };
        larger(sum(false), sum(true))
    }

    /// Divides the window.
    fn in_window(&self, l: f64) -> f64 {
        let whole = Rectangle { a: (-self.window, self.window), b: (-self.window, self.window) };
        let mut wins = Wins::new(&self.noise, self.window);
        let mut heap = BinaryHeap::from([Bounded(f64::INFINITY, whole)]);
        let tolerance = if self.noise.reach <= TABULATED { TOLERANCE } else { TOLERANCE_OF_WIDE };
        let mut attained = 0.0f64;
        let mut divisions = 0;
        while let Some(Bounded(bound, rectangle)) = heap.pop() {
            divisions += 1;
            if bound.ln_1p() <= attained.ln_1p() * (1.0 + tolerance) || divisions > MAX_DIVISIONS {
                return bound;
            }
            let Some(halves) = rectangle.halves() else { return bound };
            for half in halves {
                let found = self.of_answers(&self.answers(&half, &mut wins), l).min(bound);
                if half.is_mark() {
                    attained = attained.max(found);
                }
                if found > attained {
                    let (a, b) = half.middle();
                    let middle = self.answers(&Rectangle { a: (a, a), b: (b, b) }, &mut wins);
                    attained = attained.max(self.of_answers(&middle, l));
                }
                heap.push(Bounded(found, half));
            }
        }
        f64::INFINITY
    }

    /// Bounds the excess where one mark is beyond the window: that class does not win, and the other reaches its mark or
    /// not.
    fn beyond_one_mark(&self, l: f64) -> f64 {
        let (noise, tail) = (&self.noise, self.tail);
        let about = |here: f64, there: f64| Answer::about(here, there, tail);
        let rare = Answer::unlikely(tail);
        // Both marks are beyond the window, on the same or on different sides.
        let certain = Answer { here: 1.0, there: 1.0, lowest: 2.0 * (-tail).ln_1p(), highest: -2.0 * (-tail).ln_1p() };
        let mut worst = self.of_answers(&[rare, rare, certain], l);
        for mark in -self.window..=self.window {
            // `a` does not win: `b` reaches its mark, which is one lower at the neighbour.
            let b = about(noise.above(mark), noise.above(mark - 1));
            let neither = about(noise.below(mark - 1), noise.below(mark - 2));
            worst = larger(worst, self.of_answers(&[rare, b, neither], l));
            // `b` does not win.
            let a = about(noise.above(mark), noise.above(mark + 1));
            let neither = about(noise.below(mark - 1), noise.below(mark));
            worst = larger(worst, self.of_answers(&[a, rare, neither], l));
        }
        worst
    }

    /// Bounds the excess where one of the classes certainly reaches its mark, so that only their difference matters. With
    /// two classes this is always so.
    fn between_two(&self, l: f64) -> f64 {
        let (noise, tail) = (&self.difference, self.tail);
        let about = |here: f64, there: f64| Answer::about(here, there, tail);
        let rare = Answer::unlikely(tail);
        let certain = Answer { here: 1.0, there: 1.0, lowest: 2.0 * (-tail).ln_1p(), highest: -2.0 * (-tail).ln_1p() };
        let mut worst = self.of_answers(&[rare, rare, certain], l);
        for lead in -noise.reach - 2..=noise.reach + 2 {
            // `a` wins if its noise is larger than that of `b` by at least `-lead`.
            let a = about(noise.above(-lead), noise.above(2 - lead));
            let b = about(noise.below(-lead - 1), noise.below(1 - lead));
            worst = larger(worst, self.of_answers(&[a, b, rare], l));
        }
        worst
    }

    /// Bounds the answers in a rectangle.
    fn answers(&self, rectangle: &Rectangle, wins: &mut Wins<'_>) -> [Answer; 3] {
        let Rectangle { a: (a0, a1), b: (b0, b1) } = *rectangle;
        // Ratios are lowest at `(a0, b1)` and highest at `(a1, b0)`.
        let [a, b, neither] = [0, 1, 2].map(|i| {
            let mut at = |a: i64, b: i64| match i {
                0 => wins.at(a, b),
                1 => wins.at(b, a - 1),
                _ => self.noise.below(a - 1) * self.noise.below(b - 1),
            };
            let mut most = |shift: i64| match i {
                0 => at(a0 + shift, b1 - shift),
                1 => at(a1 + shift, b0 - shift),
                _ => at(a1 + shift, b1 - shift),
            };
            let (here, there) = (most(0), most(1));
            let mut ratio = |a: i64, b: i64, unknown: f64| {
                let (here, there) = (at(a, b), at(a + 1, b - 1));
                if here > 0.0 || there > 0.0 { (here / there).ln() } else { unknown }
            };
            let lowest = ratio(a0, b1, f64::NEG_INFINITY);
            let highest = if rectangle.is_mark() { lowest } else { ratio(a1, b0, f64::INFINITY) };
            Answer { here, there, lowest, highest }
        });
        // `a` is never likelier at the neighbour, and `b` never less likely.
        let a = Answer { lowest: a.lowest.max(0.0), highest: a.highest.max(0.0), ..a };
        let b = Answer { lowest: b.lowest.min(0.0), highest: b.highest.min(0.0), ..b };
        [a, b, neither]
    }
}

impl Rectangle {
    fn is_mark(&self) -> bool {
        self.a.0 == self.a.1 && self.b.0 == self.b.1
    }

    fn middle(&self) -> (i64, i64) {
        (self.a.0 + (self.a.1 - self.a.0) / 2, self.b.0 + (self.b.1 - self.b.0) / 2)
    }

    /// Divides the longer side; `None` for a single mark.
    fn halves(&self) -> Option<[Self; 2]> {
        let ((a0, a1), (b0, b1), (a, b)) = (self.a, self.b, self.middle());
        match (a1 - a0).cmp(&(b1 - b0)) {
            Ordering::Less => Some([Self { b: (b0, b), ..*self }, Self { b: (b + 1, b1), ..*self }]),
            _ if a1 > a0 => Some([Self { a: (a0, a), ..*self }, Self { a: (a + 1, a1), ..*self }]),
            _ => None,
        }
    }
}

impl PartialEq for Bounded {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Bounded {}

impl PartialOrd for Bounded {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Bounded {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

#[cfg(test)]
mod tests {
    use speed_mechanism::{HonestRatio, Mechanism, NoiseCoins, NoiseDeviation};

    use super::*;

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
                        let moment = |here: [f64; 3], there: [f64; 3]| -> f64 {
                            let kept =
                                here.into_iter().zip(there).filter(|&(p, q)| p > 0.0 && (p >= removed || p <= q));
                            kept.map(|(p, q)| p * (p / q).powf(l)).sum()
                        };
                        largest = larger(largest, larger(moment(here, there), moment(there, here)));
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
    fn two_classes_cost_no_more_and_wide_noise_is_nearly_gaussian() {
        let query = LargestMoment::of_event(&event(6_400), 1e-18).expect("a query");
        for l in [1.0, 12.0] {
            assert!(query.excess_of_two_classes(l) <= query.excess(l) * (1.0 + 1e-6));
            // Two noisy counts of deviation 40 tell everything: their moment is l (l + 1) / 40^2, nearly.
            let two_counts = l * (l + 1.0) / 1_600.0;
            let found = query.excess(l).ln_1p();
            assert!(found < two_counts && found > 0.5 * two_counts, "{l}: {found} against {two_counts}");
        }
        let deviation = NoiseDeviation::new(40.0).expect("a deviation");
        let skellam = PrivacyEvent::new(Mechanism::skellam(deviation), HonestRatio::ALL);
        let skellam = LargestMoment::of_event(&skellam, 1e-18).expect("a query");
        assert!((skellam.excess(5.0) / query.excess(5.0) - 1.0).abs() < 0.02);
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
                let moment = |here: [f64; 3], there: [f64; 3]| -> f64 {
                    let kept = here.into_iter().zip(there).filter(|&(p, q)| p > 0.0 && (p >= 1e-18 || p <= q));
                    kept.map(|(p, q)| p * (p / q).powf(l)).sum()
                };
                let largest = larger(moment(here, there), moment(there, here));
                let found = query.excess(l) + 1.0;
                assert!(found >= largest * (1.0 - 1e-9), "({a}, {b}) {l}: {found:e} below {largest:e}");
            }
        }
    }

    #[test]
    fn the_divergence_has_no_cancellation() {
        for (log_ratio, l) in [(1e-7, 3.0), (-1e-5, 0.02), (3e-4, 60.0), (0.019, 0.05), (0.02, 0.99), (-0.3, 20.0)] {
            // By quadrature of the second derivative: (l + 1) l times the integral of r^{l - 1} (r_1 - r).
            let end = f64::exp_m1(log_ratio);
            let steps = 20_000;
            let integral: f64 = (0..steps)
                .map(|i| {
                    let x = end * (f64::from(i) + 0.5) / f64::from(steps);
                    (1.0 + x).powf(l - 1.0) * (end - x) * end / f64::from(steps)
                })
                .sum();
            let exact = (l + 1.0) * l * integral;
            assert!((phi(log_ratio, l) / exact - 1.0).abs() < 1e-5, "{log_ratio} {l}: {} {exact}", phi(log_ratio, l));
        }
        assert_eq!(phi(f64::INFINITY, 2.0), f64::INFINITY);
        assert_eq!(phi(f64::NEG_INFINITY, 2.0), 2.0);
        assert_eq!(phi(0.0, 2.0), 0.0);
    }
}
