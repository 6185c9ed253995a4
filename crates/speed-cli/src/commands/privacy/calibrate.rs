//! `speed calibrate`

use serde::Serialize;
use speed_accountant::calibrate::{
    Calibration, Target, calibrate_coins_of_teacher, calibrate_noise, calibrate_queries,
};
use speed_accountant::{AccountError, round_up};
use speed_core::vote_files::Known;
use speed_mechanism::{Mechanism, MechanismKind};

use super::budget;
use super::calibrate_options::CalibrateOptions;
use super::key_range::KeyRange;
use super::noise::{checks, noise, ratio, tossing, width};
use super::votes::{self, GIVE_TEACHERS, ReadVotes, WithVotes};
use crate::bar::Waiting;
use crate::commands::{Failure, flag, print_report, usage};

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

pub(in crate::commands) fn calibrate(options: &CalibrateOptions) -> Result<(), Failure> {
    if options.ledger.is_some() || options.budget {
        return budget::calibrate(options);
    }
    let (Some(epsilon), Some(delta)) = (options.epsilon, options.delta) else {
        return Err(usage("epsilon", "expected --epsilon and --delta, or --ledger".into()));
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
        return Err(usage("queries", "after checks, expected their number: the noise of the answers is found".into()));
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
            Waiting::during("calibrating", || calibrate_coins_of_teacher(teachers, queries, &target))
        }
        Some(queries) => Waiting::during("calibrating", || calibrate_noise(kind, queries, &target)),
        None => {
            let noise = noise(&options.noise, teachers, options.threshold.is_some())?;
            Waiting::during("calibrating", || calibrate_queries(noise, &target))
        }
    };
    let found = found.map_err(|error| match error {
        AccountError::TooFewClasses { .. } => flag("classes", &"expected at least 2"),
        AccountError::Threshold { .. } => flag("threshold", &error),
        AccountError::Checks { what: "answers", .. } => flag("answers", &error),
        AccountError::Checks { .. } => flag("check-sigma", &error),
        error => flag("epsilon", &error),
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
