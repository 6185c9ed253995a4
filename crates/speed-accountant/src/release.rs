//! A data-dependent epsilon that may itself be published: a smooth upper bound of the moments, released with noise.
//!
//! The plain sum of moments jumps with the votes, so publishing it tells about them. Instead (Nissim, Raskhodnikova and
//! Smith 2007, in logarithms; Papernot et al. 2018, appendix B, for the idea):
//!
//! 1. A moment of each row that needs only an upper bound `Q` of the probability of another answer, and grows with it. With `t`
//!    teachers changed every sorted gap to the winner shrinks by at most `2 t`; `Q(t)` is the union bound at such gaps.
//! 2. `F = max over t of e^{-beta t} sum of moments at Q(t + 1)`. It is at least the sum of moments at the votes, in both
//!    directions, and at a neighbour it is at most `e^beta` times as large: `ln F` has sensitivity `beta`, whatever the
//!    votes.
//! 3. `ln F`, rounded up to a grid, plus discrete Gaussian noise, plus so much that it is too small with a probability of at
//!    most [`Release::failure`]: that is published, and its own Rényi divergence is added to the moments.
//!
//! The order of the moments and everything else in [`ReleaseOptions`] must not depend on the votes.

use rand::CryptoRng;
use serde::{Deserialize, Serialize};
use speed_mechanism::{DiscreteGaussian, NoiseDeviation};

use crate::composition::improved_epsilon;
use crate::costs::{Law, Others};
use crate::orders::best_real;
use crate::outcome::{Gaps, Pairs};
use crate::per_query::tight_per_query_epsilon;
use crate::sound::{at_least_zero, larger};
use crate::three_answers::{Envelope, ThreeAnswers};
use crate::{AccountError, Accountant, Bound, Noise, PrivacyEvent};

/// Steps of the grid in one `beta`: what rounding adds to the sensitivity is one of them.
const STEPS: f64 = 32.0;
/// The part of delta that may be spent on a released value that is too small.
const FAILURE: f64 = 0.1;
/// The default order is best if the queries cost this part of their worst case.
const EXPECTED: f64 = 0.08;

/// How a value is released. Choose before looking at votes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReleaseOptions {
    /// `beta`: how much `ln F` may change with one teacher. Larger values follow the votes more closely and need more noise.
    pub smoothness: f64,
    /// Standard deviation of the noise as a multiple of the sensitivity.
    pub noise: f64,
    /// The order of the moments; by default one that is best if queries cost a twelfth of their worst case.
    pub order: Option<f64>,
}

impl Default for ReleaseOptions {
    fn default() -> Self {
        Self { smoothness: 0.04, noise: 3.0, order: None }
    }
}

/// How a published value came about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Release {
    /// `beta`.
    pub smoothness: f64,
    /// Standard deviation of the noise as a multiple of the sensitivity.
    pub noise: f64,
    /// Moment of the released value itself, at the order of the account.
    pub moment: f64,
    /// Probability that the noise made the value smaller than what the queries cost; delta includes it.
    pub failure: f64,
    /// Whether the noise came from a seed: then the value is not private, and not to be published.
    pub simulation: bool,
}

/// A released sum of moments.
pub(crate) struct Released {
    pub(crate) order: f64,
    pub(crate) epsilon: f64,
    /// Whether the value is below the worst case at this order.
    pub(crate) helps: bool,
    pub(crate) release: Release,
}

impl ReleaseOptions {
    fn check(&self) -> Result<(), AccountError> {
        let refuse = |what: &str, found: f64, expected: &str| {
            Err(AccountError::Release { message: format!("{what} is {found}, expected {expected}") })
        };
        if !(1e-4..=2.0).contains(&self.smoothness) {
            return refuse("smoothness", self.smoothness, "a number from 0.0001 to 2");
        }
        if !(0.1..=1e3).contains(&self.noise) {
            return refuse("noise multiple", self.noise, "a number from 0.1 to 1000");
        }
        match self.order {
            Some(order) if !(0.1..=1e3).contains(&order) => refuse("order", order, "a number from 0.1 to 1000"),
            _ => Ok(()),
        }
    }
}

impl Accountant {
    /// Releases the moments of these rows between so many classes, the largest of all cases.
    #[expect(clippy::too_many_arguments, reason = "the arguments of `Accountant::release` and what it worked out")]
    pub(crate) fn released(
        &self,
        cases: &[(PrivacyEvent, Others)],
        rows: &[Gaps],
        classes: usize,
        delta: f64,
        options: &ReleaseOptions,
        rng: &mut impl CryptoRng,
        simulation: bool,
    ) -> Result<Released, AccountError> {
        options.check()?;
        let k = rows.len() as f64;
        let sensitivity = STEPS + 1.0;
        let noise = deviation(options.noise * sensitivity)?;
        let noise = DiscreteGaussian::new(noise);
        let divergence = |l: f64| l * (l + 1.0) * sensitivity * sensitivity / (2.0 * noise.variance_parameter());
        let left = delta * (1.0 - FAILURE);
        let (first, _) = cases.first().ok_or(AccountError::NoQueries)?;
        let order = match options.order {
            Some(order) => order,
            None => {
                let law = Law::new(first, tight_per_query_epsilon(first, classes), Others::Missing, Bound::Outcome);
                let typical = |l: f64| EXPECTED * k * law.without_votes(l) + divergence(l);
                best_real(200.0, |l| improved_epsilon(typical(l), l, left)).ok_or(AccountError::NoOrders)?.order
            }
        };

        // That of the least secret noise holds for all cases: more of it only averages over more marks, and the envelope is
        // concave.
        let envelope = ThreeAnswers::new(first, tight_per_query_epsilon(first, classes));
        let envelope = envelope.map(|three| three.envelope(order));
        // The largest of smooth bounds is one.
        let (mut log_bound, mut worst) = (f64::NEG_INFINITY, 0.0f64);
        for (event, others) in cases {
            let smooth = Smooth::new(event, *others, classes, rows, order, envelope.as_ref());
            let most = k * smooth.without_votes();
            log_bound = larger(log_bound, smooth.log_bound(options.smoothness).min(most.ln()));
            worst = larger(worst, most);
        }
        let step = options.smoothness / STEPS;
        let place = (log_bound / step).ceil();
        if !(place.abs() < 1e15 && worst.is_finite()) {
            return Err(AccountError::NotFinite { found: worst });
        }
        // So far up that the noise makes it too small with at most this probability.
        let failure = delta * FAILURE;
        // In logarithms: a tenth of the smallest delta is no number.
        let log_failure = delta.ln() + FAILURE.ln();
        let mut lift = 1;
        while noise.log_survival_bound(lift + 1) > log_failure {
            lift += 1;
        }
        let published = (place as i64 + noise.sample(rng) + lift as i64) as f64 * step;
        // What is above the worst case says nothing: that holds whatever the votes are.
        let alpha = published.exp().min(worst);
        let total = alpha + divergence(order);
        let release = Release {
            smoothness: options.smoothness,
            noise: options.noise,
            moment: divergence(order),
            failure,
            simulation,
        };
        Ok(Released { order, epsilon: improved_epsilon(total, order, left), helps: alpha < worst, release })
    }
}

fn deviation(votes: f64) -> Result<NoiseDeviation, AccountError> {
    NoiseDeviation::new(votes).map_err(|error| AccountError::Release { message: error.to_string() })
}

/// The moments of all rows with so many teachers changed.
struct Smooth<'a> {
    pairs: Pairs,
    law: Law,
    envelope: Option<&'a Envelope>,
    rows: Vec<(&'a Gaps, f64)>,
    order: f64,
    /// Orders at which Theorem 6 is evaluated; they may not depend on q.
    second_orders: Vec<f64>,
}

impl<'a> Smooth<'a> {
    fn new(
        event: &PrivacyEvent,
        others: Others,
        classes: usize,
        rows: &'a [Gaps],
        order: f64,
        envelope: Option<&'a Envelope>,
    ) -> Self {
        let epsilon = tight_per_query_epsilon(event, classes);
        let law = Law::new(event, epsilon, others, Bound::Outcome);
        // With known noise what counts is q with that noise unknown.
        let judged = match others {
            Others::Missing => *event,
            Others::Known(known) => event.with_more_noise(known),
        };
        let mut distinct: std::collections::HashMap<&Gaps, f64> = std::collections::HashMap::new();
        for row in rows {
            *distinct.entry(row).or_insert(0.0) += 1.0;
        }
        let mut rows: Vec<(&Gaps, f64)> = distinct.into_iter().collect();
        // One order of summation for one multiset of rows.
        rows.sort_by(|a, b| (a.0.winner, &a.0.gaps).cmp(&(b.0.winner, &b.0.gaps)));
        let pairs = Pairs::exact(&judged, &rows.iter().map(|(gaps, _)| (*gaps).clone()).collect::<Vec<_>>());
        let second_orders = match judged.noise() {
            Noise::Gaussian { sigma } | Noise::Skellam { sigma } => {
                let variance = sigma.get() * sigma.get() * judged.tau().get();
                (1..=24).map(|i| (variance * f64::from(i * i) / 8.0).sqrt()).collect()
            }
            Noise::Laplace { .. } | Noise::DiscreteLaplace { .. } => Vec::new(),
        };
        Self { pairs, law, envelope, rows, order, second_orders }
    }

    /// The moment of one query whatever the votes are.
    fn without_votes(&self) -> f64 {
        let of_envelope = self.envelope.map_or(f64::INFINITY, |envelope| envelope.most().ln_1p());
        self.law.without_votes(self.order).min(of_envelope)
    }

    /// `ln max over t of e^{-beta t} sum of moments`.
    fn log_bound(&self, beta: f64) -> f64 {
        let furthest = self.rows.iter().filter_map(|(gaps, _)| gaps.gaps.first()).max().copied().unwrap_or(0) / 2 + 1;
        let most = at_least_zero(self.rows.iter().map(|(_, times)| times).sum::<f64>() * self.without_votes());
        let mut largest = f64::NEG_INFINITY;
        for t in 0..=furthest {
            // From here on even the worst case is no more than what was found.
            if most.ln() - beta * (t as f64) <= largest {
                break;
            }
            largest = larger(largest, larger(self.sum(t + 1), 1e-300).ln() - beta * t as f64);
        }
        largest
    }

    /// The sum of moments where `t` teachers changed.
    fn sum(&self, t: i64) -> f64 {
        self.rows.iter().map(|(gaps, times)| times * self.moment(gaps, t)).sum()
    }

    fn moment(&self, gaps: &Gaps, t: i64) -> f64 {
        let without = self.without_votes();
        // Once another class may be ahead nothing is known.
        if gaps.gaps.first().is_none_or(|&gap| gap < 2 * t) {
            return without;
        }
        let moved = Gaps { gaps: gaps.gaps.iter().map(|gap| gap - 2 * t).collect(), winner: gaps.winner - t };
        let log_q = self.pairs.log_union(&moved);
        self.law.growing_with_q(log_q, self.order, &self.second_orders, self.envelope).min(without)
    }
}

#[cfg(test)]
mod tests {
    use speed_mechanism::{HonestRatio, InverseScale};

    use super::*;
    use crate::costs::{Costs, CostsRequest};
    use crate::moments::pure_moment;
    use crate::{Directions, PrivacyEvent};

    fn smooth_bound((event, others): (&PrivacyEvent, Others), rows: &[Vec<u32>], order: f64, beta: f64) -> f64 {
        let gaps: Vec<Gaps> = rows.iter().map(|row| Gaps::of(0, row).expect("votes")).collect();
        let envelope = ThreeAnswers::new(event, tight_per_query_epsilon(event, 3)).map(|three| three.envelope(order));
        Smooth::new(event, others, 3, &gaps, order, envelope.as_ref()).log_bound(beta)
    }

    /// Noise of all others missing, or known.
    fn both_cases(event: &PrivacyEvent) -> [Others; 2] {
        let known = HonestRatio::new(1.0 - event.tau().get()).expect("a ratio");
        [Others::Missing, Others::Known(known)]
    }

    /// All rows in which one vote moves, and the row itself.
    fn moves(row: &[u32]) -> Vec<Vec<u32>> {
        let mut all = vec![row.to_vec()];
        for from in (0..row.len()).filter(|&k| row[k] > 0) {
            for to in (0..row.len()).filter(|&k| k != from) {
                let mut moved = row.to_vec();
                moved[from] -= 1;
                moved[to] += 1;
                all.push(moved);
            }
        }
        all
    }

    #[test]
    fn the_bound_changes_by_at_most_beta_whatever_one_teacher_does() {
        let gamma = InverseScale::new(0.3).expect("valid");
        let sigma = NoiseDeviation::new(6.0).expect("valid");
        let tau = HonestRatio::new(0.8).expect("valid");
        let noises =
            [Noise::laplace(gamma), Noise::discrete_laplace(gamma), Noise::gaussian(sigma), Noise::skellam(sigma)];
        for noise in noises {
            for threshold in [None, Some(14.0)] {
                let mut event = PrivacyEvent::new(noise, tau);
                if let Some(threshold) = threshold {
                    event = event.with_threshold(threshold).expect("whole");
                }
                for others in both_cases(&event) {
                    let of = (&event, others);
                    for beta in [0.02, 0.5] {
                        for rows in [
                            vec![vec![24, 3, 0], vec![9, 9, 9]],
                            vec![vec![13, 12, 2], vec![27, 0, 0]],
                            vec![vec![20, 7, 0], vec![15, 6, 6]],
                        ] {
                            let here = smooth_bound(of, &rows, 4.0, beta);
                            for first in moves(&rows[0]) {
                                for second in moves(&rows[1]) {
                                    let there = smooth_bound(of, &[first.clone(), second.clone()], 4.0, beta);
                                    let change = (here - there).abs();
                                    assert!(
                                        change <= beta * (1.0 + 1e-9),
                                        "{noise} {rows:?} {first:?} {second:?}: {change}"
                                    );
                                }
                            }
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn the_bound_is_at_least_the_moments_at_the_votes() {
        let event = PrivacyEvent::new(
            Noise::discrete_laplace(InverseScale::new(0.1).expect("valid")),
            HonestRatio::new(0.9).expect("valid"),
        );
        let rows: Vec<Vec<u32>> = (0..20).map(|i| vec![200 - 5 * i, 30 + 5 * i, 20]).collect();
        for others in both_cases(&event) {
            let gaps: Vec<(Gaps, &[u32])> =
                rows.iter().map(|row| (Gaps::of(0, row).expect("votes"), row.as_slice())).collect();
            let request = CostsRequest {
                event: &event,
                epsilon: tight_per_query_epsilon(&event, 3),
                within: tight_per_query_epsilon(&event, 3),
                others,
                directions: Directions::Both,
                bound: Bound::Tight,
                integrals: true,
                delta: 1e-5,
            };
            let costs = Costs::new(&request, &gaps);
            for order in [1.0, 6.0, 20.0] {
                let bound = smooth_bound((&event, others), &rows, order, 0.1).exp();
                let total = costs.total(order).alpha;
                assert!(bound >= total, "{others:?} {order}: {bound} below {total}");
                assert!(bound <= 20.0 * pure_moment(request.epsilon, order) * (1.0 + 1e-9));
            }
        }
    }
}
