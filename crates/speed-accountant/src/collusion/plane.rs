//! The three answers given `(A, B)` ([`crate::three_answers`]), and their moments averaged over the known noise.

use rayon::prelude::*;
use rustfft::num_complex::Complex;
use rustfft::{Fft, FftPlanner};
use speed_mechanism::Lattice;
use std::sync::Arc;

use crate::three_answers::for_each_row;

/// Answers of Laplace noise that are not more likely than this are left out; the caller adds an allowance.
pub(super) const NEGLIGIBLE: f64 = 1e-18;

/// Bounds on the losses of answers.
#[derive(Clone, Copy, Debug)]
pub(super) enum LossBound {
    /// Losses are at most this pure epsilon of one query.
    Pure(f64),
    /// Losses are not bounded. Answers that are less likely than `left_out` and have a positive loss are left out.
    /// Probabilities are known except for a relative error of `rounding` and an absolute error of `off`.
    LeftOut { left_out: f64, off: f64, rounding: f64 },
}

/// One answer at `(A, B)`: its probability, and the logarithms of its ratios to the probabilities at `(A + 1, B - 1)`
/// and at `(A - 1, B + 1)`.
///
/// An answer that is left out has a probability of 0, or a ratio of 1.
#[derive(Clone, Copy, Debug, Default)]
struct Answer {
    probability: f64,
    log_ratios: [f64; 2],
}

/// Probabilities for `A` and `B` from `-reach` to `reach`, and the known noise.
pub(super) struct Plane {
    reach: i64,
    answers: Vec<[Answer; 3]>,
    /// Transform of the known noise of one class.
    kernel: Vec<Complex<f64>>,
    forward: Arc<dyn Fft<f64>>,
    backward: Arc<dyn Fft<f64>>,
}

impl LossBound {
    /// Bounds an answer with these probabilities at two votes. Returns the probability at each of them, with the
    /// logarithm of its ratio to the other; `None` for an answer that is left out.
    fn of(&self, here: f64, there: f64) -> [Option<(f64, f64)>; 2] {
        match *self {
            Self::Pure(epsilon) => {
                let log_ratio = (here / there).ln().clamp(-epsilon, epsilon);
                [(here, log_ratio), (there, -log_ratio)].map(|answer| (answer.0 > NEGLIGIBLE).then_some(answer))
            }
            Self::LeftOut { left_out, off, rounding } => {
                let towards = |here: f64, there: f64| {
                    let (most, least) = (here * (1.0 + rounding) + off, there * (1.0 - rounding) - off);
                    let log_ratio = if least > 0.0 { (most / least).ln() } else { f64::INFINITY };
                    let is_left_out = most < left_out && log_ratio > 0.0;
                    Some((most, if is_left_out { 0.0 } else { log_ratio }))
                };
                [towards(here, there), towards(there, here)]
            }
        }
    }
}

impl Plane {
    /// Computes the probabilities. Known noise is taken up to `known_reach`, and `side` is the length of transforms, at
    /// least `2 (reach + known_reach) + 3`.
    pub(super) fn new(
        secret: &Lattice,
        known: &Lattice,
        reach: i64,
        known_reach: i64,
        side: usize,
        losses: LossBound,
    ) -> Self {
        let width = (2 * reach + 1) as usize;
        let mut answers = vec![[Answer::default(); 3]; width * width];
        let index = |a: i64, b: i64| {
            let inside = a.abs() <= reach && b.abs() <= reach;
            inside.then(|| (a + reach) as usize * width + (b + reach) as usize)
        };
        for_each_row(secret, reach, |a, row, above| {
            for b in -reach..=reach + 1 {
                let at = (b + reach + 1) as usize;
                for (i, (here, there)) in row.0.iter().zip(&above.0).enumerate() {
                    let places = [index(a, b), index(a + 1, b - 1)];
                    let bounded = losses.of(here[at], there[at - 1]);
                    for (way, (place, answer)) in places.into_iter().zip(bounded).enumerate() {
                        if let (Some(place), Some((probability, log_ratio))) = (place, answer) {
                            answers[place][i].probability = probability;
                            answers[place][i].log_ratios[way] = log_ratio;
                        }
                    }
                }
            }
        });
        let mut planner = FftPlanner::new();
        let (forward, backward) = (planner.plan_fft_forward(side), planner.plan_fft_inverse(side));
        let mut kernel = vec![Complex::default(); side];
        for c in -known_reach..=known_reach {
            kernel[c.rem_euclid(side as i64) as usize] = Complex::new(known.log_pmf(c).exp() / side as f64, 0.0);
        }
        forward.process(&mut kernel);
        if known.twice_centre() == 0 {
            // The transform of symmetric noise is real.
            kernel.iter_mut().for_each(|value| value.im = 0.0);
        }
        Self { reach, answers, kernel, forward, backward }
    }

    pub(super) fn reach(&self) -> i64 {
        self.reach
    }

    /// Returns the sum over answers of `term(probability, log ratio)`, for both moves of a vote. The values are at
    /// `(A, B)` from `-reach` to `reach`, with all `B` of one `A` contiguous.
    pub(super) fn sums(&self, term: impl Fn(f64, f64) -> f64 + Sync) -> Vec<Complex<f64>> {
        let of_place = |answers: &[Answer; 3]| {
            answers.iter().filter(|answer| answer.probability > 0.0).fold(Complex::default(), |sum, answer| {
                let [plus, minus] = answer.log_ratios.map(|log_ratio| term(answer.probability, log_ratio));
                sum + Complex::new(plus, minus)
            })
        };
        self.answers.par_iter().map(of_place).collect()
    }

    /// Returns these sums averaged over the known noise of both classes. The values are at `(x, y)` from `-reach` to
    /// `reach`, with all `x` of one `y` contiguous; the last `y` stands for a class that never reaches its mark, whatever
    /// its known noise is.
    pub(super) fn averaged(&self, values: &[Complex<f64>]) -> Vec<Complex<f64>> {
        let width = (2 * self.reach + 1) as usize;
        let side = self.kernel.len();
        // Averages over c_b for every A that can be reached, then over c_a for every y.
        let half = (side / 2) as i64;
        let place = |index: usize| if index as i64 <= half { index as i64 } else { index as i64 - side as i64 };
        let at = |a: i64, b: i64| {
            let shift = (-self.reach - a.min(b)).max(0);
            let (a, b) = ((a + shift).min(self.reach), (b + shift).min(self.reach));
            values[(a + self.reach) as usize * width + (b + self.reach) as usize]
        };
        let memory =
            || (vec![Complex::default(); self.forward.get_inplace_scratch_len()], vec![Complex::default(); side]);
        // Places beyond the reach have the value at the reach.
        let smoothed: Vec<Complex<f64>> = (-half..=self.reach.min(half))
            .into_par_iter()
            .map_init(memory, |(scratch, line), a| {
                line.iter_mut().enumerate().for_each(|(j, value)| *value = at(a, place(j)));
                self.smooth(line, scratch);
                let smooth = (-self.reach..=self.reach).map(|y| line[y.rem_euclid(side as i64) as usize]);
                smooth.chain([at(a, self.reach)]).collect::<Vec<_>>()
            })
            .flatten_iter()
            .collect();
        let row = |a: i64| ((a.min(self.reach) + half) as usize) * (width + 1);
        (0..=width)
            .into_par_iter()
            .map_init(memory, |(scratch, line), y| {
                line.iter_mut().enumerate().for_each(|(i, value)| *value = smoothed[row(place(i)) + y]);
                self.smooth(line, scratch);
                (-self.reach..=self.reach).map(|x| line[x.rem_euclid(side as i64) as usize]).collect::<Vec<_>>()
            })
            .flatten_iter()
            .collect()
    }

    fn smooth(&self, line: &mut [Complex<f64>], scratch: &mut [Complex<f64>]) {
        self.forward.process_with_scratch(line, scratch);
        line.iter_mut().zip(&self.kernel).for_each(|(value, weight)| *value *= weight);
        self.backward.process_with_scratch(line, scratch);
    }
}

#[cfg(test)]
mod tests {
    use speed_mechanism::{DiscreteLaplace, HonestRatio, InverseScale};

    use super::*;

    #[test]
    fn probabilities_sum_to_one_and_the_mean_is_that_of_a_direct_sum() {
        let gamma = InverseScale::new(1.0).expect("valid");
        let secret = DiscreteLaplace::of_class(gamma, HonestRatio::new(0.6).expect("valid")).lattice(60);
        let known = DiscreteLaplace::new(gamma, 0.4).expect("valid").lattice(60);
        let (reach, known_reach) = (40, 30);
        let plane = Plane::new(&secret, &known, reach, known_reach, 150, LossBound::Pure(10.0));
        for answers in &plane.answers {
            let sum: f64 = answers.iter().map(|answer| answer.probability).sum();
            assert!((sum - 1.0).abs() < 1e-13, "{sum}");
        }
        let term = |p: f64, log_ratio: f64| p * (3.0 * log_ratio).exp_m1();
        let averaged = plane.averaged(&plane.sums(term));
        let width = 2 * reach + 1;
        // The last line: the second class never reaches its mark, so the first has one outcome and its opposite.
        for x in [-12i64, -1, 0, 2, 9] {
            for (i, step) in [(0, 1), (1, -1)] {
                let direct: f64 = (-known_reach..=known_reach)
                    .map(|c| {
                        let both = |mark: i64| [secret.log_survival(mark), secret.log_below(mark - 1)];
                        let pairs = both(x - c).into_iter().zip(both(x - c + step));
                        known.log_pmf(c).exp() * pairs.map(|(here, there)| term(here.exp(), here - there)).sum::<f64>()
                    })
                    .sum();
                let found = averaged[(width * width + x + reach) as usize];
                let found = [found.re, found.im][i];
                assert!((found - direct).abs() < 1e-11 * (1.0 + direct), "{x} {i}: {found} against {direct}");
            }
        }
        let of = |a: i64, b: i64, i: usize| -> f64 {
            let answers = plane.answers[((a + reach) * width + b + reach) as usize];
            answers.iter().map(|answer| term(answer.probability, answer.log_ratios[i])).sum()
        };
        for (x, y) in [(0, 0), (3, -5), (-7, 2), (10, 10), (-9, -9)] {
            for i in [0, 1] {
                let mut direct = 0.0;
                for a in -known_reach..=known_reach {
                    for b in -known_reach..=known_reach {
                        direct += (known.log_pmf(a) + known.log_pmf(b)).exp() * of(x - a, y - b, i);
                    }
                }
                let found = averaged[((y + reach) * width + x + reach) as usize];
                let found = [found.re, found.im][i];
                assert!((found - direct).abs() < 1e-13 * (1.0 + direct), "({x}, {y}) {i}: {found} against {direct}");
            }
        }
    }
}
