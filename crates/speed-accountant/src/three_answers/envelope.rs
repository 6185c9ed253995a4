//! The largest moment of the three answers given a bound on the probability of any answer other than the likeliest.
//!
//! Let `o` be an answer with `P[not o] <= q` at the votes and at the neighbour. Each `(A, B)` gives a point: its
//! `1 - max P`, and the excess over 1 of its moment, in both directions. The smallest concave increasing function above
//! all these points bounds the moment given `q`. By Jensen's inequality it also bounds the mean over `m`, and over
//! known noise, where `q` is the probability with that noise unknown. For the region outside the plane,
//! `3 (2 l + 1) e^{eps (l + 1)}` times the tail is added, and the tail is added to `q`.

use super::profile::ThreeAnswers;
use super::rows::for_each_row;
use crate::sound::larger;

/// Buckets of probabilities in a factor of ten; each counts as its lower end.
const BUCKETS: f64 = 40.0;
/// Factors of ten below 1 that have buckets.
const DECADES: f64 = 11.0;

/// An increasing concave function of `q`: at least the excess over 1 of the moment of one query, in both directions, if
/// any answer other than a given one has at most the probability `q` at the votes and at the neighbour. It also holds
/// on average, so also with known noise, where `q` is the probability with all noise unknown.
#[derive(Clone, Debug)]
pub(crate) struct Envelope {
    /// Places `(q, excess)` in increasing order, from 0 to 1.
    corners: Vec<(f64, f64)>,
    /// Error of `q` at marks beyond the plane.
    tail: f64,
}

impl Envelope {
    /// Computes the excess over 1 of the moment of order `l` as a function of `q`.
    pub(crate) fn new(three: &ThreeAnswers, l: f64) -> Self {
        let count = (BUCKETS * DECADES) as usize;
        // The first bucket is for everything below the others.
        let mut largest = vec![0.0f64; count + 1];
        let lattice = three.noise.lattice(three.reach as usize + 4);
        let mut raise = |likeliest: f64, excess: f64| {
            let bucket = ((1.0 - likeliest).log10() + DECADES) * BUCKETS;
            let bucket = if bucket >= 0.0 { (bucket as usize + 1).min(count) } else { 0 };
            largest[bucket] = larger(largest[bucket], excess);
        };
        for_each_row(&lattice, three.reach, |mark, row, above| {
            if mark < -three.reach {
                return;
            }
            for b in 1..row.0[0].len() - 1 {
                let (mut there, mut back) = (0.0, 0.0);
                let (mut likeliest, mut likeliest_back) = (0.0f64, 0.0f64);
                for (row, above) in row.0.iter().zip(&above.0) {
                    let (here, moved) = (row[b], above[b - 1]);
                    likeliest = likeliest.max(here);
                    likeliest_back = likeliest_back.max(moved);
                    // The allowance covers such unlikely answers.
                    if here > 1e-280 && moved > 1e-280 {
                        let log = l * (here / moved).ln();
                        // e^-x - 1 is -(e^x - 1) / e^x: one exponential for both directions.
                        let rise = log.abs().exp_m1();
                        let fall = if rise.is_finite() { -rise / (1.0 + rise) } else { -1.0 };
                        let (up, down) = if log >= 0.0 { (rise, fall) } else { (fall, rise) };
                        there += here * up;
                        back += moved * down;
                    }
                }
                raise(likeliest, there);
                raise(likeliest_back, back);
            }
        });
        // p^{l+1} / p'^l changes by at most (2 l + 1) e^{epsilon (l + 1)} times the change of p and p'; there are three
        // answers.
        let allowance = 3.0 * (2.0 * l + 1.0) * (three.epsilon * (l + 1.0)).exp() * three.tail;
        let lower_end = |bucket: usize| 10f64.powf((bucket as f64 - 1.0) / BUCKETS - DECADES);
        let mut points: Vec<(f64, f64)> = vec![(0.0, largest[0] + allowance)];
        for (bucket, &excess) in largest.iter().enumerate().skip(1) {
            // The rounding of a logarithm must not move a place up.
            points.push((lower_end(bucket) * (1.0 - 1e-12), excess + allowance));
        }
        Self { corners: concave_hull(&points), tail: three.tail }
    }

    /// Returns the excess at `q = e^log_q`.
    pub(crate) fn at(&self, log_q: f64) -> f64 {
        let q = log_q.exp() + self.tail;
        let next = self.corners.partition_point(|corner| corner.0 <= q);
        match (self.corners.get(next.wrapping_sub(1)), self.corners.get(next)) {
            (Some(&(q0, low)), Some(&(q1, high))) => low + (high - low) * ((q - q0) / (q1 - q0)),
            (Some(&(_, last)), None) => last,
            (None, _) => f64::INFINITY,
        }
    }

    /// Returns the largest excess over all `q`.
    pub(crate) fn largest(&self) -> f64 {
        self.corners.last().map_or(f64::INFINITY, |corner| corner.1)
    }
}

/// Returns the corners of the least concave increasing function above points with increasing places.
fn concave_hull(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut hull: Vec<(f64, f64)> = Vec::new();
    for &(place, value) in points {
        if hull.last().is_some_and(|last| value <= last.1) {
            continue;
        }
        while let [.., (x0, y0), (x1, y1)] = hull[..] {
            if (y1 - y0) * (place - x1) > (value - y1) * (x1 - x0) {
                break;
            }
            hull.pop();
        }
        hull.push((place, value));
    }
    hull
}
