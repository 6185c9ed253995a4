//! The union bound: the winner loses if any other class beats it, or if it stays below the threshold.

use speed_mechanism::{
    Binomial, DiscreteLaplace, Gaussian, GeneralisedLaplace, LaplaceTable, Lattice, Mechanism, Skellam,
};

use super::exact::reach_of_variance;
use super::gaps::Gaps;
use super::proposition4::Proposition4;
use crate::event::PrivacyEvent;
use crate::logarithms::log_sum_exp;
use crate::sound::larger;

/// Larger gaps count as this gap, whose tail is an upper bound of theirs.
const MAX_GAP: i64 = 1 << 20;

/// Tails of the difference of two classes' noise, and of one class's noise.
pub(crate) struct Pairs {
    difference: Difference,
    class: Class,
    threshold: Option<f64>,
    /// With continuous noise the class with most votes is the likeliest.
    winner_is_likeliest: bool,
}

enum Difference {
    Proposition4(Proposition4),
    /// Logarithms of the tails at gaps from -2 upwards.
    Table(Vec<f64>),
    Gaussian(Gaussian),
}

enum Class {
    Laplace(GeneralisedLaplace),
    Gaussian(Gaussian),
    Integer(Option<Lattice>),
}

impl Pairs {
    /// Creates the bound from the paper's Proposition 4 if it applies.
    pub(crate) fn paper(event: &PrivacyEvent, rows: &[Gaps]) -> Self {
        match event.mechanism() {
            Mechanism::Laplace { gamma } => {
                Self::with(event, rows, Difference::Proposition4(Proposition4::new(gamma.get(), event.tau().get())))
            }
            _ => Self::exact(event, rows),
        }
    }

    pub(crate) fn exact(event: &PrivacyEvent, rows: &[Gaps]) -> Self {
        let tau = event.tau();
        let largest = rows.iter().filter_map(|gaps| gaps.gaps.last()).max().copied().unwrap_or(0).min(MAX_GAP);
        let from_lattice =
            |lattice: Lattice| Difference::Table((-2..=largest).map(|gap| lattice.log_survival(gap)).collect());
        let difference = match event.mechanism() {
            Mechanism::Laplace { gamma } => {
                let noise = LaplaceTable::new(GeneralisedLaplace::of_difference(gamma, tau));
                Difference::Table((-2..=largest).map(|gap| noise.log_survival(gap as f64)).collect())
            }
            Mechanism::DiscreteLaplace { gamma } => {
                from_lattice(DiscreteLaplace::of_difference(gamma, tau).lattice(largest as usize + 3))
            }
            Mechanism::Gaussian { sigma } => Difference::Gaussian(Gaussian::of_difference(sigma, tau)),
            Mechanism::Skellam { sigma } => {
                from_lattice(Skellam::of_difference(sigma, tau).lattice(largest as usize + 3))
            }
            Mechanism::Binomial { coins } => {
                from_lattice(Binomial::of_difference(coins, tau).lattice(largest as usize + 3))
            }
        };
        Self::with(event, rows, difference)
    }

    fn with(event: &PrivacyEvent, rows: &[Gaps], difference: Difference) -> Self {
        let tau = event.tau();
        // How far a count can be from the threshold.
        let reach = event.threshold().map(|threshold| {
            let furthest = rows.iter().map(|gaps| gaps.winner + 2).max().unwrap_or(0) as f64;
            (threshold.abs() + furthest).min(MAX_GAP as f64) as usize + 2
        });
        let class = match event.mechanism() {
            Mechanism::Laplace { gamma } => Class::Laplace(GeneralisedLaplace::of_class(gamma, tau)),
            Mechanism::Gaussian { sigma } => Class::Gaussian(Gaussian::of_class(sigma, tau)),
            Mechanism::DiscreteLaplace { gamma } => {
                Class::Integer(reach.map(|reach| DiscreteLaplace::of_class(gamma, tau).lattice(reach)))
            }
            Mechanism::Skellam { sigma } => Class::Integer(reach.map(|reach| {
                let noise = Skellam::of_class(sigma, tau);
                noise.lattice(reach.max(reach_of_variance(noise.variance())))
            })),
            Mechanism::Binomial { coins } => Class::Integer(reach.map(|reach| {
                let noise = Binomial::of_class(coins, tau);
                noise.lattice(reach.max(reach_of_variance(noise.variance())))
            })),
        };
        let winner_is_likeliest = !event.mechanism().is_integer() && event.threshold().is_none();
        Self { difference, class, threshold: event.threshold(), winner_is_likeliest }
    }

    /// Returns `ln` of the union bound for the outcome "the winner".
    pub(crate) fn log_union(&self, gaps: &Gaps) -> f64 {
        let terms = gaps.gaps.iter().map(|&gap| self.log_term(gap));
        // Below the threshold the winner does not answer: P[r < t] = P[r > -t].
        let silent = self.threshold.map(|threshold| self.log_below(threshold - gaps.winner as f64));
        let log_sum = log_sum_exp(terms.chain(silent));
        let ahead = gaps.gaps.first().is_some_and(|&gap| gap >= 0);
        let cap = if self.winner_is_likeliest && ahead { (-1.0 / gaps.classes() as f64).ln_1p() } else { 0.0 };
        log_sum.min(cap)
    }

    /// Returns `ln P[some count reaches the threshold]`, the `q` of the outcome "no answer".
    pub(crate) fn log_any_answer(&self, gaps: &Gaps) -> f64 {
        let Some(threshold) = self.threshold else { return 0.0 };
        let counts = std::iter::once(gaps.winner).chain(gaps.gaps.iter().map(|gap| gaps.winner - gap));
        // Counts are independent: 1 - prod (1 - p). Small p may be lost in 1 - p; then the sum of all p is used, which
        // is as good.
        let none: f64 = counts.clone().map(|count| self.log_below(threshold - count as f64)).sum();
        if none > -1e-9 {
            return log_sum_exp(counts.map(|count| self.log_reaches(threshold - count as f64)));
        }
        (-none.exp_m1()).ln()
    }

    /// Returns the same at the worst neighbour. It tries every way to move a vote, and every class for an empty vote. A
    /// vote that becomes empty makes answers less likely.
    pub(crate) fn log_any_answer_of_neighbours(&self, gaps: &Gaps, has_empty_vote: bool) -> f64 {
        let counts: Vec<i64> =
            std::iter::once(gaps.winner).chain(gaps.gaps.iter().map(|gap| gaps.winner - gap)).collect();
        // Too many ways to move a vote: the bound that always holds.
        if counts.len() > 100 {
            return 0.0;
        }
        let mut worst = f64::NEG_INFINITY;
        for from in 0..counts.len() + usize::from(has_empty_vote) {
            for to in (0..counts.len()).filter(|&to| to != from) {
                let mut moved = counts.clone();
                // The last place is that of the empty vote.
                if let Some(loses) = moved.get_mut(from) {
                    *loses -= 1;
                }
                moved[to] += 1;
                let most = moved.iter().copied().max().unwrap_or(0);
                let mut others: Vec<i64> = moved.iter().map(|count| most - count).collect();
                others.sort_unstable();
                others.remove(0);
                worst = larger(worst, self.log_any_answer(&Gaps { gaps: others, winner: most }));
            }
        }
        worst
    }

    fn log_term(&self, gap: i64) -> f64 {
        match &self.difference {
            Difference::Proposition4(bound) => bound.log_term(gap),
            Difference::Table(tails) => tails[((gap + 2).max(0) as usize).min(tails.len() - 1)],
            Difference::Gaussian(noise) => noise.log_survival(gap as f64),
        }
    }

    /// Returns `ln P[r >= t]`.
    fn log_reaches(&self, t: f64) -> f64 {
        match &self.class {
            Class::Laplace(noise) => noise.log_survival(t),
            Class::Gaussian(noise) => noise.log_survival(t),
            Class::Integer(lattice) => lattice.as_ref().map_or(0.0, |lattice| lattice.log_survival(t as i64)),
        }
    }

    /// Returns `ln P[r < t]`.
    fn log_below(&self, t: f64) -> f64 {
        match &self.class {
            Class::Laplace(noise) => noise.log_survival(-t),
            Class::Gaussian(noise) => noise.log_survival(-t),
            Class::Integer(lattice) => lattice.as_ref().map_or(0.0, |lattice| lattice.log_below(t as i64 - 1)),
        }
    }
}
