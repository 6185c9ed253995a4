//! How likely a query answers something else than the class with most votes.

use std::collections::HashMap;

use speed_mechanism::DiscreteLaplace;
use statrs::function::gamma::ln_gamma;

use crate::{AccountError, Noise, PrivacyEvent};

/// Gaps beyond this are treated as if they were this: the tail there is an upper bound of theirs.
const LARGEST_GAP: usize = 1 << 20;

/// Upper bound `q` of the probability that the query's answer is not the class with most votes (one of them, in a tie),
/// from its vote counts.
///
/// - [`Noise::Laplace`]: Proposition 4, capped at `1 - 1/K`: with continuous noise of the same law on every class, the
///   class with most votes is at least as likely as any other.
/// - [`Noise::DiscreteLaplace`]: the union bound over exact pairs, `sum over k of P[Y_k - Y_winner >= gap_k]`, where
///   the difference has shape `2 tau`; `>=` because a tie of noisy counts may go against the winner. Capped at 1 only:
///   with a fixed rule for ties the class with most votes can lose every tie, and then be less likely than `1/K`.
///
/// # Errors
/// [`AccountError::TooFewClasses`] for fewer than two counts, [`AccountError::NoVotes`] if all are zero.
pub fn q(counts: &[u32], event: &PrivacyEvent) -> Result<f64, AccountError> {
    let gaps = Gaps::of(0, counts)?;
    Ok(OutcomeBound::new(event, gaps.largest()).log_q(&gaps).exp())
}

/// Gaps between the winner's votes and every other class's, in increasing order: all that `q` depends on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Gaps(Vec<u32>);

impl Gaps {
    /// The gaps of one row of votes; `row` is for the error message.
    pub(crate) fn of(row: usize, counts: &[u32]) -> Result<Self, AccountError> {
        if counts.len() < 2 {
            return Err(AccountError::TooFewClasses { row, found: counts.len() });
        }
        let most = counts.iter().copied().max().unwrap_or(0);
        if most == 0 {
            return Err(AccountError::NoVotes { row });
        }
        let mut gaps: Vec<u32> = counts.iter().map(|count| most - count).collect();
        gaps.sort_unstable();
        // The smallest is the winner's own.
        gaps.remove(0);
        Ok(Self(gaps))
    }

    pub(crate) fn largest(&self) -> u32 {
        self.0.last().copied().unwrap_or(0)
    }
}

/// `ln q` for rows of one run; what does not depend on the row is computed once.
pub(crate) struct OutcomeBound {
    pairs: Pairs,
    known: HashMap<Gaps, f64>,
}

enum Pairs {
    /// `ln(1/2 + scale x^power) - x` for `x = gamma gap` (Proposition 4).
    Proposition4 { gamma: f64, log_scale: f64, power: f64 },
    /// Logarithms of the exact tails, by gap.
    Exact(Vec<f64>),
}

impl OutcomeBound {
    /// Prepares for gaps up to `largest` votes.
    pub(crate) fn new(event: &PrivacyEvent, largest: u32) -> Self {
        let (gamma, tau) = (event.gamma(), event.tau());
        let pairs = match event.noise() {
            Noise::Laplace => {
                let (log_scale, power) = proposition_4(tau.get());
                Pairs::Proposition4 { gamma: gamma.get(), log_scale, power }
            }
            Noise::DiscreteLaplace => {
                let reach = (largest as usize).min(LARGEST_GAP);
                Pairs::Exact(DiscreteLaplace::of_difference(gamma, tau).log_survivals(reach))
            }
        };
        Self { pairs, known: HashMap::new() }
    }

    /// `ln q` of one row.
    pub(crate) fn log_q(&mut self, gaps: &Gaps) -> f64 {
        if let Some(&log_q) = self.known.get(gaps) {
            return log_q;
        }
        let terms: Vec<f64> = gaps.0.iter().map(|&gap| self.pairs.log_term(gap)).collect();
        // Gaps rise, so terms fall but for Proposition 4's slight rise at small gaps.
        let largest = terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let log_sum = largest + terms.iter().map(|term| (term - largest).exp()).sum::<f64>().ln();
        let classes = (gaps.0.len() + 1) as f64;
        let log_q = log_sum.min(match self.pairs {
            Pairs::Proposition4 { .. } => (-1.0 / classes).ln_1p(),
            Pairs::Exact(_) => 0.0,
        });
        self.known.insert(gaps.clone(), log_q);
        log_q
    }
}

impl Pairs {
    fn log_term(&self, gap: u32) -> f64 {
        match self {
            Self::Proposition4 { gamma, log_scale, power } => {
                let x = gamma * f64::from(gap);
                (0.5 + (log_scale + power * x.ln()).exp()).ln() - x
            }
            Self::Exact(tails) => tails[(gap as usize).min(tails.len() - 1)],
        }
    }
}

/// Proposition 4's bound for a pair is `e^-x (1/2 + c x^power)`; this is `ln c` and the power.
fn proposition_4(tau: f64) -> (f64, f64) {
    use std::f64::consts::LN_2;
    let common = -tau.ln() - 2.0 * ln_gamma(tau);
    if tau > 0.5 {
        (common - (4.0 * tau - 2.0) * LN_2, 2.0 * tau - 1.0)
    } else {
        let hoelder = 1.5 * tau * (1.5 * tau).ln() + (1.0 - 1.5 * tau) * (2.0 / tau - 3.0).ln();
        (common - (2.5 * tau - 1.0) * LN_2 + hoelder, tau / 2.0)
    }
}
