//! The data-independent accounts and the price of a round. No party holds all votes, so none can compute data-dependent ones.

use serde::Serialize;
use speed_accountant::{
    Account, AccountError, Accountant, Delta, Price as Epsilons, PriceError, PriceLimit, PrivacyEvent, UNDIVIDED,
    epsilon_text, without_protection,
};
use speed_aggregation::{Encoding, Parameters};
use speed_core::{Circuit, NoisePlacement};

use crate::charge::{party_event, privacy_event};
use crate::error::Refused;
use crate::round_file::RoundFile;

/// The accounts of all answers of a round for any votes, or the reasons for their absence.
#[derive(Clone, Debug)]
pub struct RoundAccounts {
    /// The account for neighbours that differ in the vote of one teacher.
    pub one_teacher: Result<Account, AccountError>,
    /// The number of teachers of the largest party, and the account for neighbours that differ in all its votes; `None` if every
    /// party has one teacher.
    pub party: Option<(u32, Result<Account, AccountError>)>,
}

impl RoundAccounts {
    /// Computes the accounts if the noise of `present` teachers is present and secret.
    ///
    /// # Errors
    /// If the noise cannot be described.
    pub fn new(file: &RoundFile, present: usize, delta: Delta) -> Result<Self, Refused> {
        let shape = file.round().shape();
        let account = |event: PrivacyEvent| {
            Accountant::new(event, delta).with_classes(shape.classes()).account_queries(shape.queries())
        };
        Ok(Self {
            one_teacher: account(privacy_event(file, present)?),
            party: party_event(file, present)?.map(|event| (event.party_teachers(), account(event))),
        })
    }
}

/// Data-independent epsilons of a round.
#[derive(Debug, Serialize)]
pub struct RoundPrice {
    /// Delta of all epsilons.
    delta: Delta,
    /// Prices by the number of teachers whose noise is present and secret, beginning with the cheapest.
    of: Vec<PriceOf>,
}

#[derive(Debug, Serialize)]
struct PriceOf {
    /// Number of teachers whose noise is present and secret; `None` if the server adds the noise.
    teachers: Option<usize>,
    /// Pure epsilon of a single answer.
    one_answer: Option<f64>,
    /// Epsilon of all answers of the round for one teacher.
    round: Option<f64>,
    /// Delta at which this epsilon holds against the student and the server together, if an opener takes part.
    #[serde(skip_serializing_if = "Option::is_none")]
    delta_of_student_and_server: Option<f64>,
    /// The claim for all votes of the largest party, if a party has several teachers.
    #[serde(skip_serializing_if = "Option::is_none")]
    party: Option<PriceOfParty>,
    /// The meaning of the price, or the reason for its absence.
    claim: String,
    #[serde(skip)]
    without: Option<AccountError>,
}

/// The price of a round for neighbours that differ in all votes of one party.
#[derive(Debug, Serialize)]
struct PriceOfParty {
    /// Teachers of the party.
    teachers: u32,
    /// Epsilon of all answers of the round.
    round: Option<f64>,
    /// Delta at which this epsilon holds against the student and the server together, if an opener takes part.
    #[serde(skip_serializing_if = "Option::is_none")]
    delta_of_student_and_server: Option<f64>,
    /// The meaning of the price, or the reason for its absence.
    claim: String,
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
    ///
    /// # Errors
    /// If the noise cannot be described.
    pub fn for_round(file: &RoundFile, counted: Option<usize>, delta: Delta) -> Result<Self, Refused> {
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
        Ok(Self { delta, of })
    }

    /// Checks the dearest price.
    ///
    /// # Errors
    /// If it is above the limit, or not known.
    pub fn check(&self, limit: PriceLimit) -> Result<(), PriceError> {
        let dearest = self.of.last().map(|dearest| limit.check("the round", dearest.price(), self.delta));
        dearest.unwrap_or(Ok(()))
    }

    /// Returns the price in lines for people.
    pub fn to_text(&self) -> String {
        let delta = self.delta.get();
        let mut text = String::new();
        for price in &self.of {
            let scope = match price.teachers {
                Some(teachers) => format!("if the noise of {teachers} teachers is present and secret"),
                None => "for everyone but the server, which knows the noise".to_owned(),
            };
            text.push_str(&match (price.one_answer, price.round) {
                (Some(one), Some(round)) => format!(
                    "data-independent cost{} {scope}: epsilon {} for one answer, {} for the round, at delta {delta:e}\n",
                    if price.party.is_some() { " for one teacher" } else { "" },
                    epsilon_text(one),
                    epsilon_text(round)
                ),
                _ => format!("data-independent cost {scope}: none known ({})\n", price.claim),
            });
            text.extend(price.delta_of_student_and_server.map(together));
            text.extend(price.party.as_ref().map(|party| party.to_text(&scope, delta)));
        }
        if self.of.iter().any(|price| price.party.is_some()) {
            text.push_str(&format!("the cost for one teacher is that for one person {UNDIVIDED}\n"));
        }
        let dearest = self.of.last().and_then(|price| without_protection(price.round?));
        text.extend(dearest.map(|words| format!("{words}\n")));
        text
    }
}

impl PriceOfParty {
    fn new(file: &RoundFile, teachers: u32, account: Result<Account, AccountError>) -> Self {
        match account {
            Ok(account) => Self {
                teachers,
                round: Some(account.epsilon),
                delta_of_student_and_server: joint_delta(file, &account),
                claim: account.claim,
            },
            Err(error) => Self { teachers, round: None, delta_of_student_and_server: None, claim: error.to_string() },
        }
    }

    fn to_text(&self, scope: &str, delta: f64) -> String {
        let Self { teachers, round, claim, .. } = self;
        let cost = match round {
            Some(round) => format!("epsilon {} for the round, at delta {delta:e}", epsilon_text(*round)),
            None => format!("none known ({claim})"),
        };
        let mut text = format!("data-independent cost for all {teachers} teachers of one party {scope}: {cost}\n");
        text.extend(self.delta_of_student_and_server.map(together));
        text
    }
}

/// Returns the delta at which the epsilon of an account holds against the student and the server together; `None` without an opener. The file
/// does not state the parameter set of the keys, so the distance is that of the worst set that serves the round.
fn joint_delta(file: &RoundFile, account: &Account) -> Option<f64> {
    let round = file.round();
    round.opener()?;
    let (outcomes, range) = (round.candidates(), round.range());
    let of_set = |parameters| {
        let guarantee = Encoding::joint_guarantee(parameters, Circuit::Tournament, outcomes, range).ok()?;
        Some(guarantee.distance_log2.exp2())
    };
    // No bound is known if no set serves the round.
    let worst = Parameters::ALL.iter().filter_map(of_set).reduce(f64::max).unwrap_or(1.0);
    Some(delta_at_a_distance(worst * round.shape().queries() as f64, account.epsilon, account.delta))
}

/// Returns the delta of an output within this total variation distance of one that is (epsilon, delta)-DP: `delta + (1 + e^epsilon) distance`,
/// rounded up, and at most 1.
fn delta_at_a_distance(distance: f64, epsilon: f64, delta: f64) -> f64 {
    let sum = delta + (1.0 + epsilon.exp()) * distance;
    // Four roundings of at most 2^-52 each.
    (sum * (1.0 + 1e-14)).min(1.0)
}

/// Returns the line about the student and the server together.
fn together(delta: f64) -> String {
    if delta < 1.0 {
        format!(
            "    against the student and the server together this epsilon holds at delta {:.1e}\n",
            round_up_digits(delta)
        )
    } else {
        "    against the student and the server together this epsilon protects nothing (delta 1)\n".to_owned()
    }
}

/// Rounds a number up to two significant digits.
fn round_up_digits(number: f64) -> f64 {
    let unit = 10_f64.powf(number.log10().floor() - 1.0);
    (number / unit).ceil() * unit
}

fn price_of(file: &RoundFile, number: Option<usize>, delta: Delta) -> Result<PriceOf, Refused> {
    let accounts = RoundAccounts::new(file, number.unwrap_or(file.round().shape().teachers()), delta)?;
    let party = accounts.party.map(|(teachers, account)| PriceOfParty::new(file, teachers, account));
    Ok(match accounts.one_teacher {
        Ok(all) => PriceOf {
            teachers: number,
            one_answer: Some(all.per_query_epsilon),
            round: Some(all.epsilon),
            delta_of_student_and_server: joint_delta(file, &all),
            party,
            claim: all.claim,
            without: None,
        },
        Err(error) => PriceOf {
            teachers: number,
            one_answer: None,
            round: None,
            delta_of_student_and_server: None,
            party,
            claim: error.to_string(),
            without: Some(error),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distance_adds_to_delta_by_one_and_the_factor_of_epsilon() {
        // Python: 1e-5 + (1 + math.exp(1)) * 100 * 2 ** -15.8
        let found = delta_at_a_distance(100.0 * (-15.8_f64).exp2(), 1.0, 1e-5);
        assert!((found / 0.006527_4 - 1.0).abs() < 1e-3, "{found}");
        assert!(delta_at_a_distance(0.0, 1.0, 1e-5) >= 1e-5);
        assert_eq!(delta_at_a_distance(1e-3, 64.0, 1e-5), 1.0);
        assert_eq!(delta_at_a_distance(1e-9, f64::INFINITY, 1e-5), 1.0);
        assert_eq!(
            together(0.006_52),
            "    against the student and the server together this epsilon holds at delta 6.6e-3\n"
        );
        assert!(together(1.0).contains("protects nothing"));
    }
}
