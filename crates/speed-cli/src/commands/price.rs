//! The data-independent price of a round. No party holds all votes, so none can compute a data-dependent price.

use serde::Serialize;
use speed_accountant::{
    AccountError, Accountant, Delta, Price as Epsilons, PriceLimit, epsilon_text, without_protection,
};
use speed_core::NoisePlacement;
use speed_roles::{RoundFile, privacy_event};

use super::{Failure, usage};
use crate::options::{MaxEpsilon, PriceOptions};

/// Returns the limit that a command line sets.
///
/// # Errors
/// If the limit is not above 0.
pub(super) fn limit(given: MaxEpsilon) -> Result<PriceLimit, Failure> {
    PriceLimit::new(given.max_epsilon).map_err(|error| usage("max-epsilon", error.to_string()))
}

/// Data-independent epsilons of a round.
#[derive(Debug, Serialize)]
pub(super) struct RoundPrice {
    /// Delta of all epsilons.
    delta: f64,
    /// Prices by the number of teachers whose noise is present and secret, beginning with the cheapest.
    of: Vec<PriceOf>,
}

#[derive(Debug, Serialize)]
struct PriceOf {
    /// Number of teachers whose noise is present and secret; `None` if the server adds the noise.
    teachers: Option<usize>,
    /// Pure epsilon of a single answer.
    one_answer: Option<f64>,
    /// Epsilon of all answers of the round.
    round: Option<f64>,
    /// The meaning of the price, or the reason for its absence.
    claim: String,
    #[serde(skip)]
    without: Option<AccountError>,
}

impl PriceOf {
    fn price(&self) -> Result<Epsilons, AccountError> {
        match (self.one_answer, self.round, &self.without) {
            (Some(one_answer), Some(all), _) => Ok(Epsilons { one_answer, all }),
            (_, _, Some(error)) => Err(error.clone()),
            _ => Err(AccountError::NotFinite { found: f64::INFINITY }),
        }
    }
}

impl RoundPrice {
    /// Computes the price of `file`'s round for `counted` teachers, or, if it is `None`, for all teachers and for the
    /// smallest number that the round accepts.
    pub(super) fn for_round(file: &RoundFile, counted: Option<usize>, delta: Delta) -> Result<Self, Failure> {
        let round = file.round();
        let teachers = round.shape().teachers();
        let numbers = match (round.placement(), counted) {
            (NoisePlacement::Central, _) => vec![None],
            (NoisePlacement::Distributed, Some(counted)) => vec![Some(counted)],
            (NoisePlacement::Distributed, None) if round.min_teachers() < teachers => {
                vec![Some(teachers), Some(round.min_teachers())]
            }
            (NoisePlacement::Distributed, None) => vec![Some(teachers)],
        };
        let of = numbers.into_iter().map(|number| price_of(file, number, delta)).collect::<Result<_, _>>()?;
        Ok(Self { delta: delta.get(), of })
    }

    /// Refuses a price above the limit of the options. A simulation is never refused.
    pub(super) fn check(&self, options: &PriceOptions, simulation: bool) -> Result<(), Failure> {
        let limit = limit(options.limit)?;
        match self.of.last() {
            Some(dearest) if !simulation => {
                let checked = limit.check("the round", dearest.price(), options.delta);
                checked.map_err(|error| usage("max-epsilon", error.to_string()))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn to_text(&self) -> String {
        let mut text = String::new();
        for price in &self.of {
            let scope = match price.teachers {
                Some(teachers) => format!("if the noise of {teachers} teachers is present and secret"),
                None => "for everyone but the server, which knows the noise".to_owned(),
            };
            text.push_str(&match (price.one_answer, price.round) {
                (Some(one), Some(round)) => format!(
                    "data-independent cost {scope}: epsilon {} for one answer, {} for the round, at delta {:e}\n",
                    epsilon_text(one),
                    epsilon_text(round),
                    self.delta
                ),
                _ => format!("data-independent cost {scope}: none known ({})\n", price.claim),
            });
        }
        let dearest = self.of.last().and_then(|price| without_protection(price.round?));
        text.extend(dearest.map(|words| format!("{words}\n")));
        text
    }
}

fn price_of(file: &RoundFile, number: Option<usize>, delta: Delta) -> Result<PriceOf, Failure> {
    let shape = file.round().shape();
    let event = privacy_event(file, number.unwrap_or(shape.teachers()))?;
    Ok(match Accountant::new(event, delta).with_classes(shape.classes()).account_queries(shape.queries()) {
        Ok(all) => PriceOf {
            teachers: number,
            one_answer: Some(all.per_query_epsilon),
            round: Some(all.epsilon),
            claim: all.claim,
            without: None,
        },
        Err(error) => {
            PriceOf { teachers: number, one_answer: None, round: None, claim: error.to_string(), without: Some(error) }
        }
    })
}
