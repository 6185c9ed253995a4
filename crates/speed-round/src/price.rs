//! The data-independent accounts and the price of a round, and its charge to a party's ledger. No party holds all votes, so none can compute
//! data-dependent accounts.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

use serde::Serialize;
use speed_accountant::ledger::{ChargeRequest, Ledger, PartySize};
use speed_accountant::{
    Account, AccountError, Accountant, Budget, Delta, Price as Epsilons, PriceError, PriceLimit, PrivacyEvent,
    QueryBatch, UNDIVIDED, epsilon_text, without_protection,
};
use speed_aggregation::{Encoding, Parameters};
use speed_core::{Circuit, Digest, NoisePlacement};
use speed_mechanism::HonestRatio;

use crate::error::Refused;
use crate::files::beside;
use crate::party_key::PartyKey;
use crate::round_file::RoundFile;

/// A party's ledger.
#[derive(Clone, Debug)]
pub struct LedgerOptions {
    /// The file. If it does not exist, a ledger without a budget is created; `speed ledger create` creates one with a
    /// budget.
    pub path: PathBuf,
    /// Delta of a ledger that is created.
    pub delta: Delta,
}

/// Returns the default ledger of the party with this signing key: the key's path with the extension `ledger` in place of `key`.
pub fn default_ledger(signing_key: &Path) -> PathBuf {
    beside(signing_key, "ledger")
}

/// Returns the privacy event of a query of a round in which the noise of `present` teachers is present and secret. If
/// the server adds the noise, all noise is present, and secret from everyone else.
fn privacy_event(file: &RoundFile, present: usize) -> Result<PrivacyEvent, Refused> {
    let (round, noise) = (file.round(), file.noise());
    // The server draws all noise at once; each teacher draws a share.
    let (sharers, drawing) = match round.placement() {
        NoisePlacement::Central => (1, 1),
        NoisePlacement::Distributed => (round.shape().teachers(), present),
    };
    let tau = HonestRatio::new(drawing as f64 / sharers as f64)?;
    let mut event = PrivacyEvent::new(noise.mechanism(), tau).with_sampler(sharers, drawing, round.values())?;
    if let Some(threshold) = round.threshold() {
        event = event.with_threshold(threshold as f64)?;
    }
    Ok(event)
}

/// Returns the privacy event of the same query for neighbours that differ in all votes of one party: that of the largest
/// party of a round. `None` if every party has one teacher, whose event is [`privacy_event`].
fn party_event(file: &RoundFile, present: usize) -> Result<Option<PrivacyEvent>, Refused> {
    let teachers = file.round().largest_party();
    if teachers == 1 {
        return Ok(None);
    }
    Ok(Some(privacy_event(file, present)?.of_party(teachers)?))
}

/// Returns the queries of a round with this much noise.
fn batch(file: &RoundFile, present: usize) -> Result<QueryBatch, Refused> {
    let shape = file.round().shape();
    Ok(QueryBatch::new(privacy_event(file, present)?, shape.classes(), shape.queries()))
}

/// Refuses a round that may cost one teacher more than the limit, if only the teachers that it needs at least answer.
pub(crate) fn expect_price(file: &RoundFile, limit: PriceLimit, delta: Delta) -> Result<(), Refused> {
    if file.round().is_simulation() || limit == PriceLimit::UNLIMITED {
        return Ok(());
    }
    let batch = batch(file, file.round().min_teachers())?;
    // A round has queries.
    let price =
        Epsilons::for_batches(&[batch], delta).map(|price| price.unwrap_or(Epsilons { one_answer: 0.0, all: 0.0 }));
    limit.check("the round", price, delta).map_err(|refusal| Refused::usage(format_args!("--max-epsilon: {refusal}")))
}

/// The ledger of a party of a round. Simulations cost nothing: they need no ledger.
pub(crate) struct RoundLedger<'a> {
    pub(crate) options: &'a LedgerOptions,
    pub(crate) file: &'a RoundFile,
    /// The party, because parties may share a ledger.
    pub(crate) party: PartyKey,
}

impl RoundLedger<'_> {
    /// Returns the question of a charge: the round and the party that answers it.
    fn question(&self) -> String {
        format!("{}/{}", self.file.id().to_hex(), self.party.to_hex())
    }

    /// Opens the ledger. `None` if there is none yet, or for a simulation.
    fn open(&self) -> Result<Option<Ledger>, Refused> {
        let is_there = !self.file.round().is_simulation() && self.options.path.exists();
        Ok(is_there.then(|| Ledger::open(&self.options.path)).transpose()?)
    }

    fn open_or_create(&self) -> Result<Ledger, Refused> {
        let budget = Budget { epsilon: None, delta: self.options.delta };
        Ok(Ledger::open_or_create(&self.options.path, budget)?)
    }

    /// Returns whether the party's answer to the round is in its ledger.
    fn is_charged(&self, ledger: &Ledger) -> Result<bool, Refused> {
        let asked = self.question();
        Ok(ledger.statement()?.charges.iter().any(|charge| charge.question == asked))
    }

    /// Refuses a round that is in the ledger but not in the registry at this path, because its message or result may
    /// already be published.
    pub(crate) fn expect_uncharged(&self, registry: &Path) -> Result<(), Refused> {
        match self.open()? {
            Some(ledger) if self.is_charged(&ledger)? => Err(Refused::results(
                registry,
                "does not contain this round, but the ledger was charged for it: the round was answered with another registry, or this one was lost or restored. Give the \
                 right --registry, because a second answer would have other noise",
            )),
            _ => Ok(()),
        }
    }

    /// Checks that the ledger has the budget for the round with this much noise, or that the round is already charged.
    pub(crate) fn expect_budget(&self, present: usize) -> Result<(), Refused> {
        match self.open()? {
            Some(ledger) if !self.is_charged(&ledger)? => Ok(ledger.would_allow(&[batch(self.file, present)?], None)?),
            _ => Ok(()),
        }
    }

    /// Checks that the ledger can be written, or created if it does not exist.
    pub(crate) fn expect_writable(&self) -> Result<(), Refused> {
        if self.file.round().is_simulation() {
            return Ok(());
        }
        self.open_or_create()?;
        let writable = OpenOptions::new().append(true).open(&self.options.path).map(drop);
        writable.map_err(Refused::io("write", &self.options.path))
    }

    /// Charges the round before `released`, the digest of the party's message or sum, leaves it, unless it is already charged. A second
    /// digest for a round is refused, also if another process with another registry made it. The ledger is of a party with
    /// `party_teachers` teachers.
    pub(crate) fn charge(&self, present: usize, party_teachers: usize, released: Digest) -> Result<(), Refused> {
        if self.file.round().is_simulation() {
            return Ok(());
        }
        let QueryBatch { event, classes, queries } = batch(self.file, present)?;
        let teachers = self.file.round().shape().teachers();
        self.open_or_create()?.charge_once(&ChargeRequest {
            label: self.file.name(),
            event: &event,
            classes,
            queries,
            party: Some(PartySize { party_teachers, teachers }),
            question: &self.question(),
            noise_digest: &released.to_hex(),
            is_only: true,
            limit: None,
        })?;
        Ok(())
    }
}

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
    price: Result<Epsilons, AccountError>,
}

/// The price of a round for neighbours that differ in all votes of one party.
#[derive(Debug, Serialize)]
struct PriceOfParty {
    teachers: u32,
    /// Epsilon of all answers of the round.
    round: Option<f64>,
    /// Delta at which this epsilon holds against the student and the server together, if an opener takes part.
    #[serde(skip_serializing_if = "Option::is_none")]
    delta_of_student_and_server: Option<f64>,
    /// The meaning of the price, or the reason for its absence.
    claim: String,
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
        let dearest = self.of.last().map(|dearest| limit.check("the round", dearest.price.clone(), self.delta));
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

/// Returns epsilon of all answers, delta against the student and the server together, and the meaning, or the reason for their absence.
fn outcome(file: &RoundFile, account: &Result<Account, AccountError>) -> (Option<f64>, Option<f64>, String) {
    match account {
        Ok(account) => (Some(account.epsilon), joint_delta(file, account), account.claim.clone()),
        Err(error) => (None, None, error.to_string()),
    }
}

fn price_of(file: &RoundFile, number: Option<usize>, delta: Delta) -> Result<PriceOf, Refused> {
    let accounts = RoundAccounts::new(file, number.unwrap_or(file.round().shape().teachers()), delta)?;
    let party = accounts.party.map(|(teachers, account)| {
        let (round, delta_of_student_and_server, claim) = outcome(file, &account);
        PriceOfParty { teachers, round, delta_of_student_and_server, claim }
    });
    let (round, delta_of_student_and_server, claim) = outcome(file, &accounts.one_teacher);
    let price = accounts.one_teacher.map(|all| Epsilons { one_answer: all.per_query_epsilon, all: all.epsilon });
    let one_answer = price.as_ref().ok().map(|price| price.one_answer);
    Ok(PriceOf { teachers: number, one_answer, round, delta_of_student_and_server, party, claim, price })
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
