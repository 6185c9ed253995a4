//! The three answers with log-concave noise on the integers, from tables.

use std::f64::consts::{PI, SQRT_2};

use speed_mechanism::Lattice;

use super::answer::{Answer, Excess, outside_both};
use super::division::{Rectangle, largest};
use super::gaussian::OnLattice;
use crate::lattice_noise::LatticeNoise;
use crate::sound::larger;

/// Division ends when the moment of the largest bound exceeds that of an attained value by at most this part.
const TOLERANCE: f64 = 4e-3;
/// The same for noise of which only some sums are kept.
const TOLERANCE_OF_WIDE: f64 = 1e-2;
/// For noise up to this reach every sum of a lead is kept. For wider noise that takes too much memory: one sum in
/// [`SPACING`] places is kept, and the terms between two of them are added when they are needed.
const TABULATED: i64 = 3_300;
const SPACING: usize = 64;
/// `ln` of the tail of the noise beyond the marks that are divided, relative to the removed probability.
const BEYOND_WINDOW: f64 = -21.0;
/// `ln` of the tail of the noise beyond the tables, relative to the removed probability.
const BEYOND_TABLES: f64 = -40.0;
/// Places of a lattice beyond the tables made of it.
const BEYOND_REACH: i64 = 8;
/// Longer tables take too long.
pub(crate) const LONGEST: i64 = 1 << 18;
/// Relative error of a logarithm of a ratio, and its growth with the length of the tables.
pub(crate) const ROUNDING: (f64, f64) = (1e-12, 4e-15);

/// Marks of the estimate: this many on a side, within this many deviations.
pub(super) const ESTIMATED: i64 = 33;
const ESTIMATED_DEVIATIONS: f64 = 5.0;

/// Tables of the noise of one class and of the difference of two.
pub(super) struct Integers {
    noise: Tables,
    difference: Tables,
    /// Marks from `-window` to `window` are divided.
    window: i64,
    /// Probability of noise beyond the window, on either side, and of differences beyond their table.
    tail: f64,
    /// Places by which one vote moves a mark.
    vote: i64,
    deviation: f64,
    ends_early: bool,
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
///
/// The sum from a place is the kept sum from the next place that is a multiple of `spacing`, plus the terms before it. All
/// terms are positive, so this order of summation has the relative error of any other: [`ROUNDING`] covers it.
struct Wins<'a> {
    noise: &'a Tables,
    furthest: i64,
    spacing: usize,
    /// For each lead `b - a` up to `furthest`, the sums over `x` from one in `spacing` places up to the reach of
    /// `p(x) F(x + b - a)`.
    by_lead: Vec<Option<Vec<f64>>>,
}

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

    /// Creates the tables of the discrete Gaussian distribution.
    fn of_gaussian(deviation: f64, reach: i64) -> Self {
        // The sum over all integers equals the integral within a part of 2 e^{-2 pi^2 v}.
        let pmf = |k: i64| (-0.5 * (k as f64 / deviation).powi(2)).exp() / ((2.0 * PI).sqrt() * deviation);
        let beyond: f64 = (reach + 1..=reach + (9.0 * deviation) as i64).rev().map(pmf).sum();
        let pmf: Vec<f64> = (-reach..=reach).map(pmf).collect();
        let sums = pmf.iter().scan(beyond, |sum, p| {
            *sum += p;
            Some(f64::min(*sum, 1.0))
        });
        let below: Vec<f64> = sums.collect();
        let above = below.iter().rev().copied().collect();
        Self { reach, pmf, below, above }
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
        self.part(first, certain, lead) + self.above(certain)
    }

    /// Computes the terms of these sums from a place up to another one, which is excluded.
    fn part(&self, from: i64, to: i64, lead: i64) -> f64 {
        let index = |place: i64| (place.min(self.reach + 1) + self.reach) as usize;
        let mine = &self.pmf[index(from)..index(to)];
        // From here on `F` is 1.
        let certain = ((self.reach + 1 - lead - from).max(0) as usize).min(mine.len());
        let (mine, rest) = mine.split_at(certain);
        let others = if mine.is_empty() { mine } else { &self.below[index(from + lead)..][..mine.len()] };
        product(mine, others) + rest.iter().sum::<f64>()
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
    fn new(noise: &'a Tables, furthest: i64, spacing: usize) -> Self {
        let furthest = 2 * furthest + 8;
        Self { noise, furthest, spacing, by_lead: (-furthest..=furthest).map(|_| None).collect() }
    }

    /// Returns the sum over `u >= 0` of `p(a + u) F(b + u)`: the noise reaches `a`, and exceeds it by at least as much as
    /// an independent copy exceeds `b`.
    fn at(&mut self, a: i64, b: i64) -> f64 {
        let (noise, spacing, lead) = (self.noise, self.spacing, b - a);
        match self.by_lead.get_mut((lead + self.furthest).max(0) as usize).filter(|_| lead.abs() <= self.furthest) {
            Some(sums) => {
                let sums = sums.get_or_insert_with(|| noise.sums(lead).into_iter().step_by(spacing).collect());
                let first = noise.first(lead);
                let from = a.max(first);
                let next = ((from - first) as usize).div_ceil(spacing);
                let sum = sums.get(next).copied().unwrap_or(0.0);
                if spacing == 1 { sum } else { sum + noise.part(from, first + (next * spacing) as i64, lead) }
            }
            None => noise.sum(a, lead),
        }
    }
}

impl Integers {
    /// Tabulates the noise for neighbours that differ in `votes` votes. Returns `None` if the tables would be too long.
    pub(super) fn new(lattices: &LatticeNoise, votes: u32, removed: f64) -> Option<Self> {
        let vote = i64::from(votes);
        let deviation = lattices.deviation();
        // Log-concave tails fall at least as fast as they do one deviation out.
        let reaching = |log_tail: f64, noise: &Lattice| -> Option<i64> {
            let enough = |k: i64| noise.log_survival(k).max(noise.log_below(-k)) <= log_tail;
            // Corners are a few places beyond the window. Beyond its reach a lattice has no log-concave probabilities.
            let (mut low, mut high) = (0, noise.reach() as i64 - BEYOND_REACH - 2 * (vote - 1));
            if high < 1 || !enough(high) {
                return None;
            }
            while high - low > 1 {
                let middle = low + (high - low) / 2;
                if enough(middle) { high = middle } else { low = middle }
            }
            Some(high)
        };
        let mut length = (8.0 * deviation).ceil() as i64 + 8 + 2 * (vote - 1);
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
                break (noise, difference, window + 1 + vote, reach + 2 + 2 * vote);
            }
            length *= 2;
        };
        let wide = reaching(removed.ln() + BEYOND_TABLES, &difference)? + 2 + 2 * vote;
        let tail = noise
            .log_survival(window - vote)
            .max(noise.log_below(vote - window))
            .max(difference.log_survival(wide - 2 * (vote - 1)))
            .exp();
        Some(Self {
            noise: Tables::new(&noise, reach),
            difference: Tables::new(&difference, wide),
            window,
            tail,
            vote,
            deviation,
            ends_early: lattices.support().is_some_and(|end| end <= window),
        })
    }

    /// Returns `None` if the tables would be too long.
    pub(super) fn of_gaussian(noise: &OnLattice, removed: f64) -> Option<Self> {
        let OnLattice { deviation, vote } = *noise;
        // The difference is discrete Gaussian noise too, within a part of 4 e^{-pi^2 v}.
        let log_removed = removed.ln();
        let window = OnLattice::reaching(deviation, log_removed + BEYOND_WINDOW) + vote;
        let reach = OnLattice::reaching(deviation, log_removed + BEYOND_TABLES) + 2 * vote;
        let wide = OnLattice::reaching(SQRT_2 * deviation, log_removed + BEYOND_TABLES) + 2 * vote;
        if wide > LONGEST {
            return None;
        }
        let (noise, difference) =
            (Tables::of_gaussian(deviation, reach), Tables::of_gaussian(SQRT_2 * deviation, wide));
        let tail = noise.above(window - vote).max(difference.above(wide - 2 * vote));
        Some(Self { noise, difference, window, tail, vote, deviation, ends_early: false })
    }

    /// Returns whether the noise ends where it is not negligible, so that leaving out more may help.
    pub(super) fn ends_early(&self) -> bool {
        self.ends_early
    }

    /// Returns whether only some sums of the noise are kept.
    pub(super) fn is_wide(&self) -> bool {
        self.noise.reach > TABULATED
    }

    fn spacing(&self) -> usize {
        if self.is_wide() { SPACING } else { 1 }
    }

    /// Returns the relative error of a logarithm of a ratio.
    pub(super) fn rounding(&self) -> f64 {
        ROUNDING.0 + ROUNDING.1 * self.noise.reach.max(self.difference.reach) as f64
    }

    /// Bounds the answers in a rectangle.
    fn answers(&self, rectangle: &Rectangle, wins: &mut Wins<'_>) -> [Answer; 3] {
        let (Rectangle { a: (a0, a1), b: (b0, b1) }, vote) = (*rectangle, self.vote);
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
            let (here, there) = (most(0), most(vote));
            let mut ratio = |a: i64, b: i64, unknown: f64| {
                let (here, there) = (at(a, b), at(a + vote, b - vote));
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

    /// Returns the answers at the marks of the estimate.
    pub(super) fn estimated(&self) -> Vec<[Answer; 3]> {
        let mut wins = Wins::new(&self.noise, self.window, self.spacing());
        at_estimated_marks(self.deviation, self.window, |mark| self.answers(mark, &mut wins))
    }

    /// Bounds the excess where both marks are in the window.
    pub(super) fn in_window(&self, excess: &Excess) -> f64 {
        self.in_window_by(Wins::new(&self.noise, self.window + self.vote - 1, self.spacing()), excess)
    }

    fn in_window_by(&self, mut wins: Wins<'_>, excess: &Excess) -> f64 {
        let marks = (-self.window, self.window);
        let tolerance = if self.is_wide() { TOLERANCE_OF_WIDE } else { TOLERANCE };
        largest(Rectangle { a: marks, b: marks }, tolerance, excess, |marks| self.answers(marks, &mut wins))
    }

    /// Bounds the excess where one mark is beyond the window: that class does not win, and the other reaches its mark or
    /// not.
    pub(super) fn beyond_one_mark(&self, excess: &Excess) -> f64 {
        let (noise, tail, vote) = (&self.noise, self.tail, self.vote);
        let about = |here: f64, there: f64| Answer::about(here, there, tail);
        let rare = Answer::unlikely(tail);
        let mut worst = outside_both(tail, excess);
        for mark in -self.window..=self.window {
            // `a` does not win: `b` reaches its mark, which is one vote lower at the neighbour.
            let b = about(noise.above(mark), noise.above(mark - vote));
            let neither = about(noise.below(mark - 1), noise.below(mark - 1 - vote));
            worst = larger(worst, excess.of(&[rare, b, neither]));
            // `b` does not win.
            let a = about(noise.above(mark), noise.above(mark + vote));
            let neither = about(noise.below(mark - 1), noise.below(mark - 1 + vote));
            worst = larger(worst, excess.of(&[a, rare, neither]));
        }
        worst
    }

    /// Bounds the excess where one of the classes certainly reaches its mark, so that only their difference matters. With
    /// two classes this is always so.
    pub(super) fn between_two(&self, excess: &Excess) -> f64 {
        let (noise, tail, votes) = (&self.difference, self.tail, 2 * self.vote);
        let about = |here: f64, there: f64| Answer::about(here, there, tail);
        let rare = Answer::unlikely(tail);
        let mut worst = outside_both(tail, excess);
        for lead in -noise.reach - votes..=noise.reach + votes {
            // `a` wins if its noise is larger than that of `b` by at least `-lead`.
            let a = about(noise.above(-lead), noise.above(votes - lead));
            let b = about(noise.below(-lead - 1), noise.below(votes - 1 - lead));
            worst = larger(worst, excess.of(&[a, b, rare]));
        }
        worst
    }
}

/// Returns the answers at the marks of the estimate, which are within the window.
fn at_estimated_marks(
    deviation: f64,
    window: i64,
    mut answers: impl FnMut(&Rectangle) -> [Answer; 3],
) -> Vec<[Answer; 3]> {
    let most = (ESTIMATED_DEVIATIONS * deviation).min(window as f64);
    let step = (2.0 * most / (ESTIMATED - 1) as f64).max(1.0);
    let mark = |i: i64| (step * i as f64 - most).round() as i64;
    let marks: Vec<i64> = (0..ESTIMATED).map(mark).filter(|mark| *mark <= window).collect();
    let all = marks.iter().flat_map(|&a| marks.iter().map(move |&b| (a, b)));
    all.map(|(a, b)| answers(&Rectangle::of_mark(a, b))).collect()
}

#[cfg(test)]
mod tests {
    use speed_mechanism::{HonestRatio, Mechanism, NoiseCoins};

    use super::*;
    use crate::event::PrivacyEvent;

    fn integers(coins: u64) -> Integers {
        let noise = Mechanism::binomial(NoiseCoins::new(coins).expect("coins"));
        let noise = LatticeNoise::new(&PrivacyEvent::new(noise, HonestRatio::ALL)).expect("integers");
        Integers::new(&noise, 1, 1e-18).expect("tables")
    }

    fn order(l: f64) -> Excess {
        Excess { l, removed: 1e-18, rounding: 1e-11 }
    }

    #[test]
    fn spaced_sums_are_sums() {
        for coins in [9, 57_600] {
            let marks = integers(coins);
            let [mut every, mut spaced] = [1, SPACING].map(|spacing| Wins::new(&marks.noise, marks.window, spacing));
            let (reach, step) = (marks.noise.reach, (marks.window / 23).max(1) as usize);
            for a in (-reach - 1..=reach + 1).step_by(step) {
                for b in (-marks.window..=marks.window).step_by(step) {
                    let (expected, found) = (every.at(a, b), spaced.at(a, b));
                    assert!(
                        (found - expected).abs() <= 1e-12 * expected,
                        "{coins} coins ({a}, {b}): {found} {expected}"
                    );
                }
            }
        }
    }

    #[test]
    fn wide_noise_has_a_bound_just_above_the_largest_moment() {
        let marks = integers(NoiseCoins::MAX);
        assert!(marks.is_wide());
        for l in [3.0, 40.0] {
            let excess = order(l);
            // Whole sums for every mark, on a walk to the largest moment.
            let mut direct = Wins { noise: &marks.noise, furthest: -1, spacing: 1, by_lead: Vec::new() };
            let mut at = |a: i64, b: i64| excess.of(&marks.answers(&Rectangle::of_mark(a, b), &mut direct));
            let (mut best, mut largest, mut step) = ((0, 0), at(0, 0), 512);
            while step > 0 {
                let (a, b): (i64, i64) = best;
                for mark in [(a + step, b), (a - step, b), (a, b + step), (a, b - step)] {
                    let found = at(mark.0, mark.1);
                    if found > largest {
                        (best, largest) = (mark, found);
                    }
                }
                if best == (a, b) {
                    step /= 2;
                }
            }
            let found = marks.in_window(&excess);
            assert!(found >= largest, "{l}: {found} below {largest}");
            assert!(found.ln_1p() <= largest.ln_1p() * (1.001 + TOLERANCE_OF_WIDE), "{l}: {found} above {largest}");
        }
    }
}
