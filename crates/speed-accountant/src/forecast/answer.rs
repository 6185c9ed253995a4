//! The probability that the noisy argmax is the right class.

use speed_mechanism::{Lattice, Mechanism};

use super::votes::QueryVotes;
use crate::error::AccountError;
use crate::event::PrivacyEvent;
use crate::lattice_noise::LatticeNoise;
use crate::outcome::{ClassNoise, Gaps, MIN_RATIO, NEGLIGIBLE, reach_of_variance, runs};
use crate::quadrature::Precision;

/// The least number of places of a sum for each deviation of binomial or Skellam noise. By Poisson's summation formula a sum
/// over every `s`-th integer of a product of smooth functions this wide differs from the sum over all of them by less than
/// rounding.
const PLACES: f64 = 64.0;

/// The noise of one class, prepared for the probability that the class with the largest noisy count is the right one.
///
/// Integer noise: in a tie of noisy counts the lowest class wins, as in all argmaxes of this project. With the noise `r` of the
/// right class `w` and `gap_j = n_w - n_j`,
///
/// ```text
/// P[right] = sum over r of P[X = r] prod over j < w of P[X <= r + gap_j - 1] prod over j > w of P[X <= r + gap_j].
/// ```
///
/// The sum leaves out a probability of at most `2 e^-50` and is accurate to 1e-10. Continuous noise has no ties, and an
/// integral of about ten digits.
pub struct AnswerForecast {
    noise: Noise,
    threshold: Option<f64>,
}

enum Noise {
    Integer(IntegerNoise),
    Continuous(ClassNoise),
}

/// Tables of integer noise between two integers, beyond which there is almost no probability.
struct IntegerNoise {
    /// The first integer of the tables.
    first: i64,
    pmf: Vec<f64>,
    /// `ln P[X <= k]`.
    log_at_most: Vec<f64>,
    step: usize,
}

impl AnswerForecast {
    /// Prepares the noise of an event, including its threshold: without an answer the label is not right.
    ///
    /// # Errors
    /// [`AccountError::Invalid`] for continuous Laplace noise with a ratio below 0.1.
    pub fn new(event: &PrivacyEvent) -> Result<Self, AccountError> {
        let noise = match LatticeNoise::new(event) {
            Some(noise) => Noise::Integer(IntegerNoise::new(event, &noise)),
            None if !ClassNoise::is_integrable(event) => {
                return Err(AccountError::integration_ratio(event.tau().get(), MIN_RATIO));
            }
            None => Noise::Continuous(ClassNoise::new(event, 0)),
        };
        Ok(Self { noise, threshold: event.threshold() })
    }

    /// Returns the probability that the label of a query is not the right class, from 0 to 1.
    ///
    /// # Errors
    /// [`AccountError::NotFinite`] if the sum is not a number.
    pub fn wrong(&self, votes: &QueryVotes) -> Result<f64, AccountError> {
        let wrong = match &self.noise {
            Noise::Integer(noise) => noise.wrong(votes, self.threshold),
            Noise::Continuous(noise) => {
                let winner = i64::from(votes.counts()[votes.right()]);
                let mut gaps: Vec<i64> = votes.gaps_before().chain(votes.gaps_after()).collect();
                gaps.sort_unstable();
                noise.log_q(&Gaps { gaps, winner }, self.threshold, Precision::Fine).exp()
            }
        };
        if wrong.is_nan() { Err(AccountError::NotFinite { found: wrong }) } else { Ok(wrong.clamp(0.0, 1.0)) }
    }
}

impl IntegerNoise {
    fn new(event: &PrivacyEvent, noise: &LatticeNoise) -> Self {
        let deviation = noise.deviation();
        let (reach, smooth) = match event.mechanism() {
            Mechanism::DiscreteLaplace { .. } => ((NEGLIGIBLE * deviation).ceil() as usize, false),
            _ => (reach_of_variance(deviation * deviation), true),
        };
        // A threshold cuts the sum, which is then not one of a smooth function.
        let step = if smooth && event.threshold().is_none() { (deviation / PLACES) as usize } else { 1 };
        Self::of_lattice(&noise.of_class(reach + 8), step.max(1))
    }

    fn of_lattice(lattice: &Lattice, step: usize) -> Self {
        let reach = lattice.reach() as i64;
        let places = -reach..=reach + lattice.twice_centre();
        Self {
            first: -reach,
            pmf: places.clone().map(|k| lattice.log_pmf(k).exp()).collect(),
            log_at_most: places.map(|k| lattice.log_below(k)).collect(),
            step,
        }
    }

    /// Returns the probability that the right class does not win or does not reach the threshold.
    fn wrong(&self, votes: &QueryVotes, threshold: Option<f64>) -> f64 {
        let enough = threshold.map_or(i64::MIN, |least| least as i64 - i64::from(votes.counts()[votes.right()]));
        let last = self.pmf.len() as i64 - 1;
        let mut shifts: Vec<i64> = votes.gaps_before().map(|gap| gap - 1).chain(votes.gaps_after()).collect();
        shifts.sort_unstable();
        let shifts = runs(&shifts);
        let mut wrong = 0.0;
        for (place, pmf) in self.pmf.iter().enumerate().step_by(self.step) {
            let loses = if self.first + (place as i64) < enough {
                1.0
            } else {
                let at_most = |shift: i64| self.log_at_most[(place as i64 + shift).clamp(0, last) as usize];
                let wins: f64 = shifts.iter().map(|&(shift, times)| times * at_most(shift)).sum();
                -wins.exp_m1()
            };
            wrong += pmf * loses;
        }
        wrong * self.step as f64
    }
}

#[cfg(test)]
mod tests {
    use speed_mechanism::{HonestRatio, NoiseDeviation, Skellam};

    use super::*;

    #[test]
    fn a_sum_over_some_integers_is_the_sum_over_all() {
        // 256 classes make the narrowest product.
        let deviation = NoiseDeviation::new(400.0).expect("valid");
        let lattice = Skellam::of_class(deviation, HonestRatio::ALL).lattice(reach_of_variance(160_000.0));
        let [all, some] = [1, 6].map(|step| IntegerNoise::of_lattice(&lattice, step));
        let mut counts = vec![100; 256];
        counts[9] = 2500;
        for votes in [vec![1000, 400], vec![700, 650, 600], counts] {
            let most = votes.iter().enumerate().max_by_key(|(_, count)| **count).expect("counts").0;
            let votes = QueryVotes::new(votes, most).expect("votes");
            let (all, some) = (all.wrong(&votes, None), some.wrong(&votes, None));
            assert!((all - some).abs() < 1e-12 && all > 1e-4, "{all} against {some}");
        }
    }
}
