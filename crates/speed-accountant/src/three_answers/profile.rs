//! The largest privacy profile of the three answers over all marks.
//!
//! `delta(alpha)` is at most the supremum over `(A, B)` of the larger of `sum of (P - alpha P')_+` and
//! `sum of (P' - alpha P)_+`. A supremum of convex functions is convex, so its values are connected by straight lines.
//! The pair of distributions behind it dominates every query, also if votes depend on earlier answers.
//!
//! # The supremum is certified
//!
//! Every `(A, B)` with `|A|, |B| <= R = 25 / gamma + 6` is examined: in blocks of 8 x 8 by a bound (for each answer the
//! largest probability times the largest share lost), and one by one where this bound exceeds a value attained
//! elsewhere. Outside, clip a mark above `R` to `R`, or move both marks up the diagonal until the lower one is `-R`:
//! there some class exceeds its mark anyway, and only `B - A` matters. This moves probabilities by at most the tail of
//! the noise there. So `4 S(R - 1) (1 + alpha)` is added at every point, and 1e-12 for rounding. From the proved
//! epsilon of one query on, the profile is 0.
//!
//! # Continuous noise of all teachers
//!
//! An exponential variable of rate gamma is `G + U`. `G` is geometric on the integers, `U` is in [0, 1), and they are
//! independent because the exponential distribution has no memory. So continuous Laplace noise, the difference of two
//! such variables, is integer Laplace noise of the same gamma plus an independent `V = U - U'`. Show the adversary also
//! all `V`. Given `V` and `m`, class `a` passes its mark if its integer noise is at least `A`, the smallest integer
//! that is at least `m - n_a - V_a`, and likewise for `b`. If both exceed `A` and `B` by different integers, the larger
//! excess wins; otherwise `V` alone decides. These are the marks and the two tie rules of integer noise, and the moved
//! vote changes the marks by one. So all bounds of the three answers hold unchanged. For `tau < 1` the remainder is not
//! known to be a distribution.

use std::ops::Range;

use speed_mechanism::{DiscreteLaplace, Mechanism};

use super::rows::{Row, for_each_row};
use crate::composition::{PrivacyLossDistribution, PrivacyProfile};
use crate::event::PrivacyEvent;

/// Noise beyond this multiple of `1/gamma` is beyond the plane.
const CUT: f64 = 25.0;
/// Planes for a smaller inverse scale take too long.
pub(crate) const MIN_SCALE_OF_THREE_ANSWERS: f64 = 0.01;
/// Steps of the grid of losses from 0 to the epsilon of one query.
const STEPS: usize = 64;
/// Error of the recurrences of a row (sums of some thousands of positive terms), relative to 1.
const ROUNDING: f64 = 1e-12;
/// Above this epsilon of one query, `e^epsilon` is too large to compute with.
const MAX_EPSILON: f64 = 300.0;
/// Marks on each side of a block that is bounded as one.
const SIDE: usize = 8;
/// Step between the marks that are evaluated first.
const SAMPLED: usize = 12;

/// One query with Laplace noise, for any votes.
#[derive(Clone, Debug)]
pub(crate) struct ThreeAnswers {
    pub(super) noise: DiscreteLaplace,
    pub(super) reach: i64,
    /// Pure epsilon of one query, proved without the plane.
    pub(super) epsilon: f64,
    /// Bound on the difference of probabilities from the probabilities at the nearest mark of the plane, including
    /// rounding errors.
    pub(super) tail: f64,
}

impl ThreeAnswers {
    /// Creates the query for integer Laplace noise, if the plane is not too large; `epsilon` is a proved pure epsilon
    /// of one query with such noise.
    ///
    /// Continuous noise of all teachers is integer noise and independent remainders in [-1, 1], because an exponential
    /// variable has no memory. An adversary who knows the remainders has the three answers of the integer noise.
    pub(crate) fn new(event: &PrivacyEvent, epsilon: f64) -> Option<Self> {
        let gamma = match event.mechanism() {
            // Profiles of moves between more than two classes are not known to be smaller than that of two.
            _ if event.is_of_party() => return None,
            // A check has two outcomes, and its pure epsilon tells all.
            _ if event.is_check() => return None,
            Mechanism::DiscreteLaplace { gamma } => gamma,
            Mechanism::Laplace { gamma } if event.tau().get() == 1.0 => gamma,
            _ => return None,
        };
        let reach = (CUT / gamma.get()).ceil() as i64 + 6;
        if gamma.get() < MIN_SCALE_OF_THREE_ANSWERS || epsilon.is_nan() || epsilon > MAX_EPSILON {
            return None;
        }
        let noise = DiscreteLaplace::of_class(gamma, event.tau());
        // Far out on the losing side, a mark is hardly ever reached. Far out on the winning side, one of the two always
        // is, so only the difference of the marks matters. The tail counts for each of two marks, at the votes and at
        // the neighbour, and the same again for the start of the recurrences.
        let tail = 4.0 * noise.survival(reach - 1) + ROUNDING;
        Some(Self { noise, reach, epsilon, tail })
    }

    /// Returns the distribution of the privacy loss that dominates one query, from the votes to any neighbour's and
    /// back.
    pub(crate) fn losses(&self) -> PrivacyLossDistribution {
        self.profile(self.epsilon / STEPS as f64, STEPS).connect()
    }

    /// Returns the profile on a grid. `step half` must be at least the pure epsilon; otherwise the profile is bounded
    /// by its ends.
    pub(crate) fn profile(&self, step: f64, half: usize) -> PrivacyProfile {
        // Only alpha of at least 1 is computed. Below 1 the reversed three answers give the same: delta(alpha) is alpha
        // delta'(1 / alpha) + 1 - alpha.
        let alphas: Vec<f64> = (0..=half).map(|j| (j as f64 * step).exp()).collect();
        let mut most = vec![0.0f64; alphas.len()];
        let lattice = self.noise.lattice(self.reach as usize + 4);
        // Marks far from each other come first, so that few marks between them need evaluation.
        for_each_row(&lattice, self.reach, |mark, row, above| {
            if mark.rem_euclid(SAMPLED as i64) == 0 {
                for b in (1..row.0[0].len() - 1).step_by(SAMPLED) {
                    let block = Block { rows: 1, columns: b..b + 1 };
                    block.raise(&[above, row], &alphas, &mut most, |_| true);
                }
            }
        });
        let mut band: Vec<Row> = Vec::with_capacity(SIDE + 1);
        for_each_row(&lattice, self.reach, |mark, row, above| {
            if band.is_empty() {
                band.push(above.clone());
            }
            band.push(row.clone());
            if band.len() > SIDE || mark == -self.reach {
                let rows: Vec<&Row> = band.iter().collect();
                for start in (1..row.0[0].len() - 1).step_by(SIDE) {
                    let columns = start..(start + SIDE).min(row.0[0].len() - 1);
                    let block = Block { rows: rows.len() - 1, columns };
                    let bounds = block.bounds(&rows);
                    block.raise(&rows, &alphas, &mut most, |(alpha, most)| bounds.at(alpha) > most);
                }
                band.clear();
            }
        });
        let excess = |j: i64| {
            let index = j.unsigned_abs() as usize;
            let (place, alpha) = (index as f64 * step, alphas[index]);
            if place >= self.epsilon {
                return 0.0;
            }
            let excess = most[index] + self.tail * (1.0 + alpha);
            if j < 0 { excess / alpha } else { excess }
        };
        PrivacyProfile::of_values(step, (-(half as i64)..=half as i64).map(excess).collect())
    }
}

/// A rectangle of marks: all rows of a band except the first, and columns of the tables.
struct Block {
    rows: usize,
    columns: Range<usize>,
}

/// The largest probability and the least ratio of its counterpart to it, per answer and direction, in a [`Block`].
struct Bounds([[(f64, f64); 3]; 2]);

impl Block {
    /// Returns the pairs of probabilities of answer `i`: at `(A, B)` and `(A + 1, B - 1)`.
    fn pairs<'a>(&self, band: &'a [&Row], row: usize, i: usize) -> (&'a [f64], &'a [f64]) {
        let there = self.columns.start - 1..self.columns.end - 1;
        (&band[row].0[i][self.columns.clone()], &band[row - 1].0[i][there])
    }

    fn bounds(&self, band: &[&Row]) -> Bounds {
        let mut bounds = Bounds([[(0.0, f64::INFINITY); 3]; 2]);
        for row in 1..=self.rows {
            for i in 0..3 {
                let (here, there) = self.pairs(band, row, i);
                for (&p, &q) in here.iter().zip(there) {
                    for (bound, (p, q)) in bounds.0.iter_mut().zip([(p, q), (q, p)]) {
                        let (most, ratio) = &mut bound[i];
                        // If a probability underflows, its ratio is not known.
                        let found = if p > f64::MIN_POSITIVE { q / p } else { 0.0 };
                        *most = if p > *most { p } else { *most };
                        *ratio = if found < *ratio { found } else { *ratio };
                    }
                }
            }
        }
        bounds
    }

    /// Raises `most` to the largest `sum over answers of (P - alpha P')_+`, in both directions, at the places that are
    /// worth it.
    fn raise(&self, band: &[&Row], alphas: &[f64], most: &mut [f64], worth: impl Fn((f64, f64)) -> bool) {
        let lose = |p: f64, q: f64, alpha: f64| {
            let loss = p - alpha * q;
            if loss > 0.0 { loss } else { 0.0 }
        };
        for (&alpha, most) in alphas.iter().zip(most) {
            if !worth((alpha, *most)) {
                continue;
            }
            for row in 1..=self.rows {
                let [a, b, neither] = [0, 1, 2].map(|i| self.pairs(band, row, i));
                for at in 0..self.columns.len() {
                    let (mut there, mut back) = (0.0, 0.0);
                    for (here, moved) in [a, b, neither] {
                        there += lose(here[at], moved[at], alpha);
                        back += lose(moved[at], here[at], alpha);
                    }
                    let larger = if there > back { there } else { back };
                    *most = if larger > *most { larger } else { *most };
                }
            }
        }
    }
}

impl Bounds {
    /// Bounds the excess at every place of the block.
    fn at(&self, alpha: f64) -> f64 {
        let sum = |bounds: &[(f64, f64); 3]| -> f64 {
            bounds.iter().map(|(most, ratio)| most * (1.0 - alpha * ratio).max(0.0)).sum()
        };
        sum(&self.0[0]).max(sum(&self.0[1]))
    }
}
