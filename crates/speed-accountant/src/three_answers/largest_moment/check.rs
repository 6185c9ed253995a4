//! The two outcomes of a check, for any votes: the largest count plus noise reaches the threshold, or it does not.
//!
//! Only the mark `A`, the threshold less the largest count, matters, and a neighbour moves it by at most one vote:
//! `P[reached] = P[X >= A]`, at the neighbour with `A + 1`. A move down is the same pair in reverse order. With noise on
//! the integers every mark is examined. With Gaussian noise marks are real, and the line is divided into intervals: both
//! ratios grow with `A`, because tails of Gaussian noise are log-concave, so the ends of an interval bound it.

use speed_mechanism::{HonestRatio, Lattice, NoiseDeviation, log_normal_survival};

use super::answer::{Answer, Excess};
use super::integers::{LONGEST, ROUNDING};
use crate::lattice_noise::LatticeNoise;
use crate::sound::larger;

/// `ln` of the tail of the noise beyond the marks that are examined, relative to the removed probability.
const BEYOND: f64 = -21.0;
/// Intervals of Gaussian noise in a deviation: they cost at most a part of 1/500 of the moment.
const INTERVALS: f64 = 400.0;
/// The estimate takes one mark of this many.
const OF_ESTIMATE: usize = 16;

/// All marks of a check.
pub(super) struct CheckMarks {
    marks: Vec<[Answer; 2]>,
    /// Probability of noise beyond the marks, on either side.
    tail: f64,
    ends_early: bool,
    rounding: f64,
}

impl CheckMarks {
    /// Examines noise on the integers, and neighbours that differ in `votes` votes. Returns `None` if the tables would be too long.
    pub(super) fn new(noise: &LatticeNoise, votes: u32, removed: f64) -> Option<Self> {
        let log_tail = removed.ln() + BEYOND;
        let votes = i64::from(votes);
        let mut length = (8.0 * noise.deviation()).ceil() as i64 + 8 + (votes - 1);
        let (lattice, furthest) = loop {
            if length > LONGEST {
                return None;
            }
            let lattice = noise.of_class(length as usize);
            let enough = |k: &i64| lattice.log_survival(*k).max(lattice.log_below(-*k)) <= log_tail;
            match (1..length - 1 - votes).find(enough) {
                Some(furthest) => break (lattice, furthest),
                None => length *= 2,
            }
        };
        Some(Self {
            marks: (-furthest - (votes - 1)..=furthest).map(|mark| integer_mark(&lattice, mark, votes)).collect(),
            tail: lattice.log_survival(furthest).max(lattice.log_below(-furthest)).exp(),
            ends_early: noise.support().is_some_and(|end| end <= furthest),
            rounding: ROUNDING.0 + ROUNDING.1 * length as f64,
        })
    }

    /// Divides the line for Gaussian noise.
    pub(super) fn of_gaussian(sigma: NoiseDeviation, tau: HonestRatio, votes: u32, removed: f64) -> Self {
        let vote = f64::from(votes) / (sigma.get() * tau.get().sqrt());
        // P[X >= z] is at most e^{-z^2/2}, and marks move by a vote.
        let furthest = (-2.0 * (removed.ln() + BEYOND)).sqrt() + vote;
        let intervals = (2.0 * furthest * INTERVALS).ceil();
        let at = |i: f64| -furthest + 2.0 * furthest * i / intervals;
        let marks = (0..intervals as usize).map(|i| gaussian_marks(at(i as f64), at(i as f64 + 1.0), vote)).collect();
        let tail = log_normal_survival(furthest - vote).exp();
        Self { marks, tail, ends_early: false, rounding: ROUNDING.0 }
    }

    pub(super) fn ends_early(&self) -> bool {
        self.ends_early
    }

    pub(super) fn rounding(&self) -> f64 {
        self.rounding
    }

    /// Bounds the excess at all marks. Beyond them one outcome has at most the probability of the tail at both marks,
    /// which is below the removed probability.
    pub(super) fn largest(&self, excess: &Excess) -> f64 {
        let rare = Answer::unlikely(self.tail);
        let certain = Answer::about(1.0, 1.0, self.tail);
        self.marks.iter().map(|mark| excess.of(mark)).fold(excess.of(&[rare, certain]), larger)
    }

    /// Returns the largest excess at some marks.
    pub(super) fn estimate(&self, excess: &Excess) -> f64 {
        self.marks.iter().step_by(OF_ESTIMATE).map(|mark| excess.of(mark)).fold(0.0, larger)
    }
}

/// Returns the outcomes at a mark: reached, and not. A neighbour's mark is `votes` higher.
fn integer_mark(noise: &Lattice, mark: i64, votes: i64) -> [Answer; 2] {
    [
        Answer::of_logarithms(noise.log_survival(mark), noise.log_survival(mark + votes)),
        Answer::of_logarithms(noise.log_below(mark - 1), noise.log_below(mark - 1 + votes)),
    ]
}

/// Bounds the outcomes at all marks of an interval, in deviations.
fn gaussian_marks(low: f64, high: f64, vote: f64) -> [Answer; 2] {
    let (above, below) = (log_normal_survival, |x: f64| log_normal_survival(-x));
    [
        Answer {
            here: above(low).exp(),
            there: above(low + vote).exp(),
            lowest: above(low) - above(low + vote),
            highest: above(high) - above(high + vote),
        },
        Answer {
            here: below(high).exp(),
            there: below(high + vote).exp(),
            lowest: below(low) - below(low + vote),
            highest: below(high) - below(high + vote),
        },
    ]
}

#[cfg(test)]
mod tests {
    use speed_mechanism::{HonestRatio, Mechanism, MechanismKind, log_normal_survival};

    use super::super::LargestMoment;
    use super::super::tests::moment;
    use crate::event::PrivacyEvent;
    use crate::sound::larger;

    fn event(kind: MechanismKind, scale: f64, tau: f64) -> PrivacyEvent {
        let mechanism = kind.with_scale(scale).expect("in range");
        PrivacyEvent::check(mechanism, HonestRatio::new(tau).expect("a ratio"), 0.0).expect("a check")
    }

    #[test]
    fn coins_are_enumerated_at_every_mark() {
        for (coins, removed) in [(4, 1e-9), (12, 1e-9), (12, 1e-2), (31, 1e-4)] {
            let mut row = vec![1.0f64];
            for _ in 0..coins {
                row = row
                    .iter()
                    .copied()
                    .chain([0.0])
                    .zip([0.0].into_iter().chain(row.iter().copied()))
                    .map(|(a, b)| 0.5 * (a + b))
                    .collect();
            }
            let both = |heads: i64| {
                let (below, above) = row.split_at((heads.max(0) as usize).min(row.len()));
                // An empty sum is -0.
                [above, below].map(|part| part.iter().sum::<f64>() + 0.0)
            };
            let query =
                LargestMoment::of_event(&event(MechanismKind::Binomial, coins as f64, 1.0), removed).expect("coins");
            for l in [0.4, 2.0, 11.0] {
                let all = (-2..coins + 3).map(|heads| moment(both(heads), both(heads + 1), l, removed) - 1.0);
                let (largest, found) = (all.fold(0.0, larger), query.excess(l));
                assert!(found >= largest, "{coins} {removed} {l}: {found} below {largest}");
                let most = (largest * (1.0 + 1e-8) + 3.0 * (l + 1.0) * removed).max(1e-12);
                assert!(found <= most || largest == f64::INFINITY, "{coins} {removed} {l}: {found} above {most}");
            }
        }
    }

    #[test]
    fn gaussian_noise_is_bounded_at_all_real_marks() {
        for (sigma, tau) in [(0.7, 1.0), (40.0, 1.0), (150.0, 0.6)] {
            let query = LargestMoment::of_event(&event(MechanismKind::Gaussian, sigma, tau), 1e-18).expect("a query");
            let vote = 1.0 / (sigma * tau.sqrt());
            let both = |x: f64| [x, -x].map(|x| log_normal_survival(x).exp());
            for l in [0.4, 3.0, 25.0] {
                // Steps that do not divide the intervals.
                let all = (-5000..5000).map(|i| 0.001_732 * f64::from(i));
                let largest = all.map(|x| moment(both(x), both(x + vote), l, 1e-18) - 1.0).fold(0.0, larger);
                let found = query.excess(l);
                assert!(found >= largest * (1.0 - 1e-6), "{sigma} {l}: {found} below {largest}");
                assert!(found.ln_1p() <= largest.ln_1p() * 1.02, "{sigma} {l}: {found} above {largest}");
            }
        }
    }

    #[test]
    fn a_check_costs_less_than_its_noisy_count_and_skellam_noise_what_gaussian_noise_does() {
        for sigma in [12.0, 60.0, 300.0] {
            for l in [1.0, 6.0] {
                let of =
                    |kind| LargestMoment::of_event(&event(kind, sigma, 1.0), 1e-18).expect("a query").excess(l).ln_1p();
                let (gaussian, skellam) = (of(MechanismKind::Gaussian), of(MechanismKind::Skellam));
                // The count alone has l (l + 1) / 2 sigma^2. Of small moves a check shows 2/pi of it.
                let count = l * (l + 1.0) / (2.0 * sigma * sigma);
                assert!(gaussian > count * std::f64::consts::FRAC_2_PI && gaussian < count, "{sigma} {l}");
                assert!((skellam / gaussian - 1.0).abs() < 0.02, "{sigma} {l}: {skellam} and {gaussian}");
            }
        }
        assert!(LargestMoment::of_event(&event(MechanismKind::Laplace, 0.1, 1.0), 1e-18).is_none());
        let Mechanism::Skellam { sigma } = MechanismKind::Skellam.with_scale(1e6).expect("wide") else {
            unreachable!()
        };
        let wide = PrivacyEvent::check(Mechanism::skellam(sigma), HonestRatio::ALL, 0.0).expect("a check");
        assert!(LargestMoment::of_event(&wide, 1e-18).is_none(), "too long");
    }
}
