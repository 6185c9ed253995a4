//! `speed plan`: a forecast of the labels of a round, with its epsilon and its cost.

mod cost;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use speed_accountant::calibrate::{Target, calibrate_coins_of_teacher, calibrate_noise};
use speed_accountant::forecast::{Agreement, AgreementForecast, Forecast, VotesModel, least_teachers};
use speed_accountant::{
    Account, AccountError, Accountant, Adversary, Bound, Delta, HonestRatio, PrivacyEvent, round_up, without_protection,
};
use speed_core::vote_files::Known;
use speed_core::vote_files::csv_cell;
use speed_core::{VoteShape, printable};
use speed_experiment::config::EnsembleConfig;
use speed_mechanism::{Mechanism, MechanismKind};
use speed_round::{Refused, Roster};

use super::privacy::{GIVE_LABELS, ReadVotes, WithVotes, noise, ratio, read_counts, read_votes, width};
use super::{Failure, print_report, usage};
use crate::bar::Bar;
use crate::options::{FormOption, NoiseOptions, agreement, delta};
use cost::{PlannedCost, PlannedRound};

#[derive(Debug, Args)]
pub(crate) struct PlanOptions {
    /// Number of teachers; --honest-ratio is rounded down to an integer number of teachers
    #[arg(long, value_name = "N")]
    teachers: usize,
    /// Number of parties that the teachers belong to, as equal as possible: also print the epsilon of all votes of one party
    #[arg(long, value_name = "N")]
    parties: Option<usize>,
    /// The cards of the round's parties, as of student round: also print how many parties can vote for each class, if cards state classes
    #[arg(long, value_name = "FOLDER")]
    roster: Option<PathBuf>,
    /// Expected share of the teachers that vote for the right class, for example 0.9
    #[arg(
        long, value_name = "SHARE", value_parser = agreement, conflicts_with = "votes",
        required_unless_present = "votes", requires = "classes"
    )]
    agreement: Option<Agreement>,
    /// Votes of a public pilot, .npy or CSV: labels (teachers x queries) or histograms (queries x classes). They are scaled to
    /// --teachers, and the class with the most votes counts as right
    #[arg(long, value_name = "FILE")]
    votes: Option<PathBuf>,
    #[command(flatten)]
    form: FormOption,
    /// Number of classes, which a file of labels does not contain
    #[arg(long, value_name = "K")]
    classes: Option<usize>,
    /// Number of queries [default: the number of queries of --votes]
    #[arg(long, value_name = "N", required_unless_present = "votes")]
    queries: Option<usize>,
    #[command(flatten)]
    noise: NoiseOptions,
    /// Find the least noise whose data-independent epsilon is at most this value, instead of --gamma, --sigma or --coins
    #[arg(long, value_name = "E", conflicts_with_all = ["gamma", "sigma", "coins"])]
    epsilon: Option<f64>,
    /// Delta of the claim
    #[arg(long, value_name = "D", default_value = "1e-5", value_parser = delta)]
    delta: Delta,
    /// Do not measure the time of keys, encryption, sum and argmax on this machine, which takes a few seconds
    #[arg(long)]
    without_times: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The share of right labels for which the least number of teachers is found.
const RIGHT_SHARE: f64 = 0.95;

/// A plan of a round before its teachers vote.
#[derive(Serialize)]
struct RoundPlan {
    teachers: usize,
    /// Number of parties that the teachers belong to, if given.
    #[serde(skip_serializing_if = "Option::is_none")]
    parties: Option<usize>,
    queries: usize,
    classes: usize,
    /// The number of parties that can vote for each class that a card states, if any does.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    voters: BTreeMap<String, usize>,
    /// Expected share of the teachers that vote for the right class; `None` with a pilot.
    agreement: Option<f64>,
    /// Coins of one teacher for each class and query, for binomial noise.
    #[serde(skip_serializing_if = "Option::is_none")]
    coins_of_teacher: Option<u64>,
    forecasts: Vec<PlannedLabels>,
    account: Account,
    /// The claim for all votes of the largest party, or the reason for its absence.
    #[serde(skip_serializing_if = "Option::is_none")]
    party_account: Option<Account>,
    #[serde(skip_serializing_if = "Option::is_none")]
    without_party_account: Option<String>,
    cost: Option<PlannedCost>,
    /// The reason for a missing cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    without_cost: Option<String>,
}

/// The labels that one model of the votes leads to.
#[derive(Serialize)]
struct PlannedLabels {
    /// The model: "even", "one-rival" or "pilot".
    votes: &'static str,
    #[serde(flatten)]
    forecast: Forecast,
    /// The least number of teachers with which 95 % of the labels are right at the same epsilon; `None` if no number is enough.
    least_teachers: Option<usize>,
}

/// The origin of the expected votes.
enum Expected {
    Agreement(Agreement),
    Pilot(Vec<Vec<u32>>, ReadVotes),
}

pub(super) fn plan(options: &PlanOptions) -> Result<(), Failure> {
    let (expected, classes, queries) = expected_votes(options)?;
    VoteShape::new(options.teachers, 1, classes).map_err(|error| usage("teachers", error))?;
    let voters = match &options.roster {
        Some(path) => voters(options, path, classes)?,
        None => BTreeMap::new(),
    };
    let account = Bar::during("accounting", || account(options, classes, queries))?;
    let forecasts = Bar::during("forecasting", || forecasts(options, &expected, classes, queries, &account))?;
    let parties = parties(options)?;
    let (party_account, without_party_account) = match parties.iter().max() {
        Some(&teachers) => match Bar::during("accounting", || party_account(options, &account, teachers)) {
            Ok(account) => (Some(account), None),
            Err(error) => (None, Some(error.to_string())),
        },
        None => (None, None),
    };
    let round = PlannedRound { teachers: options.teachers, parties, queries, classes, noise: account.mechanism };
    let (cost, without_cost) = match round.cost(!options.without_times)? {
        Ok(cost) => (Some(cost), None),
        Err(reason) => (None, Some(reason)),
    };
    let coins_of_teacher = match account.mechanism {
        Mechanism::Binomial { coins } => Some(coins.of_teacher(options.teachers)),
        _ => None,
    };
    let (agreement, read) = match expected {
        Expected::Agreement(agreement) => (Some(agreement.get()), None),
        Expected::Pilot(_, read) => (None, Some(read)),
    };
    let teachers = options.teachers;
    let plan = RoundPlan {
        teachers,
        parties: options.parties,
        queries,
        classes,
        voters,
        agreement,
        coins_of_teacher,
        forecasts,
        account,
        party_account,
        without_party_account,
        cost,
        without_cost,
    };
    print_report(options.json, &WithVotes { value: &plan, votes_file: read }, || {
        format!("{}{}", plan.to_text(), read.map_or_else(String::new, |read| read.line()))
    })
}

/// Returns the expected votes, and the numbers of classes and queries.
fn expected_votes(options: &PlanOptions) -> Result<(Expected, usize, usize), Failure> {
    let (expected, classes, queries) = match (&options.votes, options.agreement, options.classes) {
        (Some(path), ..) => {
            let known = Known { classes: options.classes, ..Known::default() };
            let file = read_votes(path, options.form.form, &known, GIVE_LABELS)?;
            let (counts, read) = read_counts(path, &file, None, None)?;
            let classes = counts.first().map_or(0, Vec::len);
            let queries = options.queries.unwrap_or(counts.len());
            (Expected::Pilot(counts, read), classes, queries)
        }
        (None, Some(agreement), Some(classes)) => {
            let queries = options.queries.ok_or_else(|| usage("queries", "missing: no --votes has their number"))?;
            (Expected::Agreement(agreement), classes, queries)
        }
        _ => return Err(usage("agreement", "expected --agreement with --classes, or --votes")),
    };
    if !(2..=VoteShape::MAX_CLASSES).contains(&classes) {
        return Err(usage("classes", format!("found {classes}, expected 2 to {}", VoteShape::MAX_CLASSES)));
    }
    Ok((expected, classes, queries))
}

/// Returns the data-independent cost of the queries, with the noise of the options or the least noise for their epsilon.
fn account(options: &PlanOptions, classes: usize, queries: usize) -> Result<Account, Failure> {
    let tau = ratio(&options.noise, Some(options.teachers))?;
    if let Some(epsilon) = options.epsilon {
        let (delta, adversary, bound) = (options.delta, Adversary::ExternalWithDropout, Bound::Tight);
        let target =
            Target { epsilon, delta, tau, adversary, bound, classes: Some(classes), threshold: None, checks: None };
        let found = match options.noise.mechanism {
            MechanismKind::Binomial => calibrate_coins_of_teacher(options.teachers, queries, &target),
            kind => calibrate_noise(kind, queries, &target),
        };
        return Ok(found.map_err(|error| of_queries("epsilon", &error))?.account);
    }
    let noise = noise(&options.noise, Some(options.teachers), false)?;
    let accountant = Accountant::new(PrivacyEvent::new(noise, tau), options.delta).with_classes(classes);
    accountant.account_queries(queries).map_err(|error| of_queries(noise.kind().parameter(), &error))
}

/// Returns the number of teachers of each party; empty without `--parties`.
fn parties(options: &PlanOptions) -> Result<Vec<u32>, Failure> {
    let Some(parties) = options.parties else { return Ok(Vec::new()) };
    if !(1..=options.teachers).contains(&parties) {
        let message = format!("found {parties}, expected 1 to the number of teachers, {}", options.teachers);
        return Err(usage("parties", message));
    }
    Ok(EnsembleConfig { teachers: options.teachers, parties, skew: 0.0 }.teachers_of_parties())
}

/// Returns the number of parties that can vote for each class that a card states: those that state it, and those that state none.
/// Empty if no card states classes.
fn voters(options: &PlanOptions, path: &Path, classes: usize) -> Result<BTreeMap<String, usize>, Failure> {
    let roster = Roster::read(path)?;
    let parties = options.parties.unwrap_or(roster.teachers().len());
    roster.expect(parties, options.teachers).map_err(Refused::input(path))?;
    let stated = || roster.teachers().iter().filter_map(|party| party.classes());
    let silent = roster.teachers().len() - stated().count();
    let mut voters = BTreeMap::new();
    stated().flatten().for_each(|name| *voters.entry(name.clone()).or_insert(silent) += 1);
    match voters.len() {
        found if found > classes => {
            Err(usage("classes", format!("found {classes}, but the cards state {found} classes")))
        }
        found if 0 < found && found < classes && silent == 0 => Err(usage(
            "classes",
            format!("found {classes}, but the cards state {found} classes, and no party can vote for others"),
        )),
        _ => Ok(voters),
    }
}

/// Returns the cost of the same queries if all votes of a party of this many teachers may differ.
fn party_account(options: &PlanOptions, account: &Account, teachers: u32) -> Result<Account, AccountError> {
    let event = PrivacyEvent::new(account.mechanism, account.tau).of_party(teachers as usize)?;
    let accountant = Accountant::new(event, options.delta);
    account.classes.map_or(accountant, |classes| accountant.with_classes(classes)).account_queries(account.queries)
}

/// Returns a failure of `--queries` if their number is refused, and otherwise of another option.
fn of_queries(other: &str, error: &AccountError) -> Failure {
    let is_number = matches!(error, AccountError::NoQueries | AccountError::Queries { .. });
    usage(if is_number { "queries" } else { other }, error)
}

fn forecasts(
    options: &PlanOptions,
    expected: &Expected,
    classes: usize,
    queries: usize,
    account: &Account,
) -> Result<Vec<PlannedLabels>, Failure> {
    let models = match expected {
        Expected::Agreement(agreement) => {
            vec![
                ("even", VotesModel::even(*agreement, classes)),
                ("one-rival", VotesModel::one_rival(*agreement, classes)),
            ]
        }
        Expected::Pilot(counts, read) => vec![("pilot", VotesModel::pilot(counts.clone(), read.teachers))],
    };
    // The labels have the noise of all teachers; the honest ratio only counts a part of it.
    let (noise, teachers) = (account.mechanism, options.teachers);
    let event = PrivacyEvent::new(noise, HonestRatio::ALL);
    let forecast = |(votes, model): (&'static str, Result<VotesModel, AccountError>)| {
        let model = model?;
        let forecast = Forecast::new(&event, &model, teachers, queries)?;
        let least_teachers = least_teachers(noise, options.noise.honest_ratio, teachers, &model, RIGHT_SHARE)?;
        Ok(PlannedLabels { votes, forecast, least_teachers })
    };
    let name = if options.votes.is_some() { "votes" } else { "agreement" };
    let forecasts = models.into_iter().map(forecast).collect::<Result<_, _>>();
    forecasts.map_err(|error| of_queries(name, &error))
}

impl RoundPlan {
    fn to_text(&self) -> String {
        let Self { teachers, queries, account, .. } = self;
        let each = |value: &dyn Fn(&PlannedLabels) -> String| {
            self.forecasts.iter().map(value).collect::<Vec<_>>().join(" and ")
        };
        let least = |labels: &PlannedLabels| {
            labels.least_teachers.map_or_else(|| "no number is enough".to_owned(), |number| number.to_string())
        };
        let mut text = format!(
            "{}\nall labels right: probability {}\nleast number of teachers with 95 % right labels at this epsilon: {}\n\
             {queries} queries with {} noise of {}: data-independent epsilon {:.4} at delta {:e}\n{}\n",
            self.forecast_line(),
            each(&|labels| format!("{:.4}", (labels.forecast.all_right * 1e4).floor() / 1e4)),
            each(&least),
            account.mechanism.kind(),
            width(account.mechanism, Some(*teachers)),
            round_up(account.epsilon, 4),
            account.delta,
            account.claim,
        );
        if !self.voters.is_empty() {
            let each = self.voters.iter().map(|(name, parties)| format!("{} {parties}", csv_cell(&printable(name))));
            let each = each.collect::<Vec<_>>().join(", ");
            text.push_str(&format!("parties that can vote for each class that a card states: {each}\n"));
        }
        text.extend(without_protection(account.epsilon).map(|words| format!("{words}\n")));
        match (&self.party_account, &self.without_party_account) {
            (Some(party), _) => text.push_str(&format!(
                "all {} votes of one party: data-independent epsilon {:.4} at delta {:e}\n{}\n",
                party.party_teachers,
                round_up(party.epsilon, 4),
                party.delta,
                party.claim
            )),
            (None, Some(reason)) => text.push_str(&format!("all votes of one party: no epsilon is known ({reason})\n")),
            (None, None) => {}
        }
        match (&self.cost, &self.without_cost) {
            (Some(cost), _) => text.push_str(&cost.to_text()),
            (None, Some(reason)) => text.push_str(&format!("no encrypted round: {reason}\n")),
            (None, None) => {}
        }
        text
    }

    fn forecast_line(&self) -> String {
        match &self.forecasts[..] {
            [even, one_rival] => AgreementForecast { even: even.forecast, one_rival: one_rival.forecast }.to_string(),
            forecasts => {
                forecasts.iter().map(|labels| format!("forecast: {} as in the pilot", labels.forecast)).collect()
            }
        }
    }
}
