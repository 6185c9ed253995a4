//! The smooth sum of moments: its logarithm changes by at most `beta` with one teacher.

use std::collections::HashMap;

use speed_mechanism::Mechanism;

use crate::assumption::Bound;
use crate::moment_bound::MomentBound;
use crate::noise_case::NoiseCase;
use crate::outcome::{Gaps, Pairs};
use crate::per_query::tight_per_query_epsilon;
use crate::sound::{at_least_zero, larger};
use crate::three_answers::Envelope;

/// The moments of all rows as a function of the number of changed teachers.
pub(super) struct SmoothMoments<'a> {
    pairs: Pairs,
    moments: MomentBound,
    envelope: Option<&'a Envelope>,
    rows: Vec<(&'a Gaps, f64)>,
    order: f64,
    /// Orders at which Theorem 6 is evaluated; they must not depend on q.
    second_orders: Vec<f64>,
}

impl<'a> SmoothMoments<'a> {
    pub(super) fn new(
        case: &NoiseCase,
        classes: usize,
        rows: &'a [Gaps],
        order: f64,
        envelope: Option<&'a Envelope>,
        left_out: f64,
    ) -> Self {
        let epsilon = tight_per_query_epsilon(&case.event, classes);
        let moments = MomentBound::new(case, epsilon, Bound::Outcome, left_out);
        let judged = case.with_all_noise_unknown();
        let mut distinct: HashMap<&Gaps, f64> = HashMap::new();
        for row in rows {
            *distinct.entry(row).or_insert(0.0) += 1.0;
        }
        let mut rows: Vec<(&Gaps, f64)> = distinct.into_iter().collect();
        // The order of summation depends only on the multiset of rows.
        rows.sort_by(|a, b| (a.0.winner, &a.0.gaps).cmp(&(b.0.winner, &b.0.gaps)));
        let pairs = Pairs::exact(&judged, &rows.iter().map(|(gaps, _)| (*gaps).clone()).collect::<Vec<_>>());
        let second_orders = match judged.mechanism() {
            Mechanism::Gaussian { sigma } | Mechanism::Skellam { sigma } => {
                let variance = sigma.get() * sigma.get() * judged.tau().get();
                (1..=24).map(|i| (variance * f64::from(i * i) / 8.0).sqrt()).collect()
            }
            Mechanism::Laplace { .. } | Mechanism::DiscreteLaplace { .. } | Mechanism::Binomial { .. } => Vec::new(),
        };
        Self { pairs, moments, envelope, rows, order, second_orders }
    }

    pub(super) fn without_votes(&self) -> f64 {
        let of_envelope = self.envelope.map_or(f64::INFINITY, |envelope| envelope.largest().ln_1p());
        self.moments.without_votes(self.order).min(of_envelope)
    }

    /// Returns `ln max over t of e^{-beta t} sum of moments`.
    pub(super) fn log_bound(&self, beta: f64) -> f64 {
        let furthest = self.rows.iter().filter_map(|(gaps, _)| gaps.gaps.first()).max().copied().unwrap_or(0) / 2 + 1;
        let largest_sum = at_least_zero(self.rows.iter().map(|(_, times)| times).sum::<f64>() * self.without_votes());
        let mut largest = f64::NEG_INFINITY;
        for t in 0..=furthest {
            // From here on, even the worst case is at most the largest value found.
            if largest_sum.ln() - beta * (t as f64) <= largest {
                break;
            }
            largest = larger(largest, larger(self.sum(t + 1), 1e-300).ln() - beta * t as f64);
        }
        largest
    }

    fn sum(&self, t: i64) -> f64 {
        self.rows.iter().map(|(gaps, times)| times * self.moment(gaps, t)).sum()
    }

    fn moment(&self, gaps: &Gaps, t: i64) -> f64 {
        let without = self.without_votes();
        // Once another class may be ahead, only the data-independent moment holds.
        if gaps.gaps.first().is_none_or(|&gap| gap < 2 * t) {
            return without;
        }
        let moved = Gaps { gaps: gaps.gaps.iter().map(|gap| gap - 2 * t).collect(), winner: gaps.winner - t };
        let log_q = self.pairs.log_union(&moved);
        self.moments.growing_with_q(log_q, self.order, &self.second_orders, self.envelope).min(without)
    }
}

#[cfg(test)]
mod tests {
    use speed_mechanism::{HonestRatio, InverseScale, NoiseDeviation};

    use super::*;
    use crate::assumption::Assumptions;
    use crate::data_dependent::{CostsRequest, DataDependentCosts};
    use crate::event::PrivacyEvent;
    use crate::moments::pure_moment;
    use crate::neighbour_losses::Unlikely;
    use crate::neighbours::neighbours;
    use crate::noise_case::OtherNoise;
    use crate::three_answers::ThreeAnswers;
    use crate::votes::CheckedCounts;

    fn smooth_bound(case: &NoiseCase, rows: &[Vec<u32>], order: f64, beta: f64) -> f64 {
        let gaps: Vec<Gaps> = rows.iter().map(|row| Gaps::from_counts(0, row).expect("votes")).collect();
        let envelope = ThreeAnswers::new(&case.event, tight_per_query_epsilon(&case.event, 3));
        let envelope = envelope.map(|three| Envelope::new(&three, order));
        SmoothMoments::new(case, 3, &gaps, order, envelope.as_ref(), 0.0).log_bound(beta)
    }

    /// The noise of all other teachers is missing, or known.
    fn both_cases(event: PrivacyEvent) -> [NoiseCase; 2] {
        let known = HonestRatio::new(1.0 - event.tau().get()).expect("a ratio");
        [OtherNoise::Missing, OtherNoise::Known(known)].map(|others| NoiseCase { event, others })
    }

    /// Lists the row itself and all rows in which one vote moves, one of them to or from an empty vote.
    fn moves(row: &[u32]) -> Vec<Vec<u32>> {
        let counts: Vec<i64> = row.iter().map(|&count| count.into()).collect();
        let others = neighbours(&counts, counts.iter().sum::<i64>() + 1);
        let rows = [counts].into_iter().chain(others);
        rows.map(|row| row.into_iter().map(|count| count as u32).collect()).collect()
    }

    #[test]
    fn one_teacher_changes_the_bound_by_at_most_beta() {
        let gamma = InverseScale::new(0.3).expect("valid");
        let sigma = NoiseDeviation::new(6.0).expect("valid");
        let tau = HonestRatio::new(0.8).expect("valid");
        let noises = [
            Mechanism::laplace(gamma),
            Mechanism::discrete_laplace(gamma),
            Mechanism::gaussian(sigma),
            Mechanism::skellam(sigma),
        ];
        for noise in noises {
            for threshold in [None, Some(14.0)] {
                let mut event = PrivacyEvent::new(noise, tau);
                if let Some(threshold) = threshold {
                    event = event.with_threshold(threshold).expect("whole");
                }
                for case in both_cases(event) {
                    for beta in [0.02, 0.5] {
                        for rows in [vec![vec![24, 3, 0], vec![9, 9, 9]], vec![vec![13, 12, 2], vec![27, 0, 0]]] {
                            let here = smooth_bound(&case, &rows, 4.0, beta);
                            for (at, first) in moves(&rows[0]).into_iter().enumerate() {
                                // A third for each first move; all occur.
                                for second in moves(&rows[1]).into_iter().skip(at % 3).step_by(3) {
                                    let there = smooth_bound(&case, &[first.clone(), second.clone()], 4.0, beta);
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
            Mechanism::discrete_laplace(InverseScale::new(0.1).expect("valid")),
            HonestRatio::new(0.9).expect("valid"),
        );
        let rows: Vec<Vec<u32>> = (0..20).map(|i| vec![200 - 5 * i, 30 + 5 * i, 20]).collect();
        let votes = CheckedCounts::new(&rows, 250).expect("votes");
        for case in both_cases(event) {
            let request = CostsRequest {
                case,
                assumptions: Assumptions::default(),
                integrals: true,
                epsilon: tight_per_query_epsilon(&event, 3),
                within: tight_per_query_epsilon(&event, 3),
                delta: 1e-5,
                unlikely: Unlikely::Bounded(tight_per_query_epsilon(&event, 3)),
                check: None,
            };
            let costs = DataDependentCosts::new(&request, &votes);
            for order in [1.0, 6.0, 20.0] {
                let bound = smooth_bound(&case, &rows, order, 0.1).exp();
                let total = costs.total(order).alpha;
                assert!(bound >= total, "{case:?} {order}: {bound} below {total}");
                assert!(bound <= 20.0 * pure_moment(request.epsilon, order) * (1.0 + 1e-9));
            }
        }
    }
}
