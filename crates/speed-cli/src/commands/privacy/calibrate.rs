//! `speed calibrate`

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use speed_accountant::calibrate::{
    Calibration, Target, calibrate_coins_of_teacher, calibrate_noise, calibrate_queries,
};
use speed_accountant::{AccountError, Adversary, Bound, Delta, round_up};
use speed_aggregation::encoding::VoteRange;
use speed_aggregation::{Parameters, PrivacyNoise, Round};
use speed_core::VoteShape;
use speed_core::vote_files::Known;
use speed_mechanism::{Mechanism, MechanismKind};

use super::noise::{checks, noise, ratio, tossing, width};
use super::votes::{self, GIVE_TEACHERS, ReadVotes, WithVotes};
use crate::bar::Bar;
use crate::commands::{Failure, print_report, usage};
use crate::options::{CheckOptions, FormOption, NoiseOptions, delta};

#[derive(Debug, Args)]
pub(crate) struct CalibrateOptions {
    /// Target epsilon for all queries together; with --ledger, an additional limit for all charges in the ledger
    #[arg(long, value_name = "E", required_unless_present = "ledger")]
    pub(super) epsilon: Option<f64>,
    /// Target delta; with --ledger, the delta of --epsilon [default: the ledger's]
    #[arg(long, value_name = "D", value_parser = delta, requires = "epsilon", required_unless_present = "ledger")]
    pub(super) delta: Option<Delta>,
    /// Find noise or queries that this ledger accepts, within its remaining budget and by its own rules
    #[arg(long, value_name = "FILE", conflicts_with_all = ["assume", "bound"])]
    pub(super) ledger: Option<PathBuf>,
    /// Find noise or queries that a new ledger with a budget of --epsilon at --delta accepts
    #[arg(long, conflicts_with_all = ["ledger", "assume", "bound"])]
    pub(super) budget: bool,
    /// Number of classes; two classes cost less than a larger number [default: any number]
    #[arg(long, value_name = "K")]
    pub(super) classes: Option<usize>,
    /// Answer only where the largest noisy count reaches this many votes
    #[arg(long, value_name = "VOTES")]
    pub(super) threshold: Option<f64>,
    #[command(flatten)]
    pub(super) check: CheckOptions,
    /// Number of teachers; --honest-ratio is then rounded down to an integer number of teachers
    #[arg(long, value_name = "N")]
    pub(super) teachers: Option<usize>,
    /// Number of queries, to find the noise; to find the number of queries, give --gamma, --sigma or --coins instead
    #[arg(
        long, value_name = "N", conflicts_with_all = ["gamma", "sigma", "coins"],
        required_unless_present_any = ["gamma", "sigma", "coins", "votes"]
    )]
    pub(super) queries: Option<usize>,
    /// Take the numbers of teachers and queries from a file of votes, .npy or CSV; the claim does not depend on its votes
    #[arg(long, value_name = "FILE", conflicts_with_all = ["queries", "ledger", "budget"])]
    pub(super) votes: Option<PathBuf>,
    #[command(flatten)]
    pub(super) form: FormOption,
    #[command(flatten)]
    pub(super) noise: NoiseOptions,
    /// Assumption about the noise outside --honest-ratio: dropout, collusion or central; part of the claim
    #[arg(long, value_name = "WHAT", default_value = "dropout")]
    pub(super) assume: Adversary,
    /// Formulas: paper or tight
    #[arg(long, value_name = "WHICH", default_value = "tight")]
    pub(super) bound: Bound,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// The assumed number of classes of a round if it is unknown. More classes need a slightly larger range.
const CLASSES: usize = 10;

/// The keys that an encrypted round needs for its noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
struct KeyRange {
    teachers: usize,
    /// The largest difference of two noisy counts, in votes.
    difference: u64,
    /// Name of the first parameter set that compares such counts; `None` if no set does.
    parameters: Option<&'static str>,
}

impl KeyRange {
    /// Returns the keys for a round of `teachers` teachers, or `None` if a round is impossible for another reason: noise
    /// that is not drawn in shares, or more teachers than a round allows.
    fn for_round(kind: MechanismKind, found: &Calibration, teachers: usize) -> Option<Self> {
        let noise = PrivacyNoise::new(kind.with_scale(found.scale).ok()?).ok()?;
        let shape = VoteShape::new(teachers, found.queries.min(Round::MAX_QUERIES), CLASSES).ok()?;
        let difference = VoteRange::new(teachers, noise.bound(shape).ok()?).difference();
        let parameters = Parameters::ALL.iter().find(|parameters| difference <= parameters.range());
        Some(Self { teachers, difference, parameters: parameters.map(Parameters::name) })
    }

    /// Returns a line for terminals if the fastest keys are insufficient.
    fn note(&self) -> Option<String> {
        let Self { teachers, difference, parameters } = self;
        let [fastest, widest] = Parameters::ALL;
        match parameters {
            Some(name) if *name == fastest.name() => None,
            Some(name) => {
                Some(format!("An encrypted round of {teachers} teachers needs {name} keys for this noise.\n"))
            }
            None => Some(format!(
                "No encrypted round of {teachers} teachers takes this noise: counts can differ by {difference} votes, and {} keys \
                 compare up to {}. It can be used in clear; for a round ask for a larger epsilon or fewer queries.\n",
                widest.name(),
                widest.range()
            )),
        }
    }
}

/// A calibration with the keys that a round of this number of teachers needs.
#[derive(Serialize)]
struct Calibrated<'a> {
    #[serde(flatten)]
    found: &'a Calibration,
    #[serde(flatten)]
    coins: Option<CoinsOfTeacher>,
    #[serde(skip_serializing_if = "Option::is_none")]
    round: Option<KeyRange>,
}

/// The part of one teacher in binomial noise.
#[derive(Serialize)]
struct CoinsOfTeacher {
    /// Coins of one teacher for each class and query.
    coins_of_teacher: u64,
    /// Standard deviation of the noise of all teachers, in votes.
    deviation: f64,
}

impl CoinsOfTeacher {
    fn new(found: &Calibration, teachers: Option<usize>) -> Option<Self> {
        match (found.account.mechanism, teachers) {
            (Mechanism::Binomial { coins }, Some(teachers)) => {
                Some(Self { coins_of_teacher: coins.of_teacher(teachers), deviation: coins.deviation() })
            }
            _ => None,
        }
    }
}

pub(super) fn calibrate(options: &CalibrateOptions) -> Result<(), Failure> {
    let (Some(epsilon), Some(delta)) = (options.epsilon, options.delta) else {
        return Err(usage("epsilon", "expected --epsilon and --delta, or --ledger"));
    };
    let read = match &options.votes {
        Some(path) => {
            let known = Known { teachers: options.teachers, ..Known::default() };
            let file = votes::read(path, options.form.form, &known, GIVE_TEACHERS)?;
            Some(ReadVotes::new(&file, file.queries()))
        }
        None => None,
    };
    let teachers = read.map(|read| read.teachers).or(options.teachers);
    let tau = ratio(&options.noise, teachers)?;
    let kind = options.noise.mechanism;
    let has_scale = options.noise.gamma.or(options.noise.sigma).is_some() || options.noise.coins.is_some();
    let of_votes = read.filter(|_| !has_scale).map(|read| read.queries);
    let queries = options.queries.or(of_votes);
    let checks =
        checks(&options.check, &options.noise, teachers, (options.threshold, tau), queries.unwrap_or_default())?;
    if checks.is_some() && queries.is_none() {
        return Err(usage("queries", "after checks, expected their number: the noise of the answers is found"));
    }
    let target = Target {
        epsilon,
        delta,
        tau,
        adversary: options.assume,
        bound: options.bound,
        classes: options.classes,
        threshold: options.threshold.filter(|_| checks.is_none()),
        checks,
    };
    let found = match queries.map(|queries| options.check.answers.unwrap_or(queries)) {
        Some(queries) if kind == MechanismKind::Binomial => {
            let teachers = tossing(teachers)?;
            Bar::during("calibrating", || calibrate_coins_of_teacher(teachers, queries, &target))
        }
        Some(queries) => Bar::during("calibrating", || calibrate_noise(kind, queries, &target)),
        None => {
            let noise = noise(&options.noise, teachers, options.threshold.is_some())?;
            Bar::during("calibrating", || calibrate_queries(noise, &target))
        }
    };
    let found = found.map_err(|error| match error {
        AccountError::TooFewClasses { .. } => usage("classes", "expected at least 2"),
        AccountError::Threshold { .. } => usage("threshold", &error),
        AccountError::Checks { what: "answers", .. } => usage("answers", &error),
        AccountError::Checks { .. } => usage("check-sigma", &error),
        error => usage("epsilon", &error),
    })?;
    let round = teachers.and_then(|teachers| KeyRange::for_round(kind, &found, teachers));
    let calibrated = Calibrated { found: &found, coins: CoinsOfTeacher::new(&found, teachers), round };
    print_report(options.json, &WithVotes { value: &calibrated, votes_file: read }, || {
        let note = calibrated.round.as_ref().and_then(KeyRange::note).unwrap_or_default();
        let line = read.map_or_else(String::new, |read| {
            format!("{}Only these numbers were used; the claim does not depend on the votes.\n", read.line())
        });
        format!("{}{note}{line}", calibration_text(&found, teachers))
    })
}

fn calibration_text(found: &Calibration, teachers: Option<usize>) -> String {
    let noise = found.account.mechanism;
    let what = found
        .account
        .checks
        .map_or_else(|| "queries".to_owned(), |checks| format!("answers after {} checks", checks.queries));
    format!(
        "{} {what} with {} noise of {}: epsilon {:.4}\n{}\n",
        found.queries,
        noise.kind(),
        width(noise, teachers),
        round_up(found.account.epsilon, 4),
        found.account.claim
    )
}
