//! `speed calibrate`

use serde::Serialize;
use speed_accountant::calibrate::{Calibration, Target, calibrate_noise, calibrate_queries};
use speed_accountant::{AccountError, Accountant, PrivacyEvent, round_up};
use speed_mechanism::{BinomialShare, Mechanism, MechanismKind, NoiseCoins};
use speed_votes::Known;

use super::budget;
use super::key_range::KeyRange;
use super::noise::{noise, ratio, tossing, width};
use super::votes::{self, ReadVotes, WithVotes};
use crate::bar::Waiting;
use crate::commands::{Failure, flag, print, print_json, usage};
use crate::options::CalibrateOptions;

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
            let file = votes::read(path, options.form.form, &known)?;
            Some(ReadVotes::new(&file, file.queries()))
        }
        None => None,
    };
    let teachers = read.map(|read| read.teachers).or(options.teachers);
    let target = Target {
        epsilon,
        delta,
        tau: ratio(&options.noise, teachers)?,
        adversary: options.assume,
        bound: options.bound,
        classes: options.classes,
        threshold: options.threshold,
    };
    let kind = options.noise.mechanism;
    let has_scale = options.noise.gamma.or(options.noise.sigma).is_some() || options.noise.coins.is_some();
    let of_votes = read.filter(|_| !has_scale).map(|read| read.queries);
    let found = match options.queries.or(of_votes) {
        Some(queries) if kind == MechanismKind::Binomial => {
            let teachers = tossing(teachers)?;
            Waiting::during("calibrating", || calibrate_coins(teachers, queries, &target))
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
        error => flag("epsilon", &error),
    })?;
    let round = teachers.and_then(|teachers| KeyRange::for_round(kind, &found, teachers));
    if options.json {
        let coins = CoinsOfTeacher::new(&found, teachers);
        return print_json(&WithVotes { value: &Calibrated { found: &found, coins, round }, votes_file: read });
    }
    let note = round.and_then(|round| round.note()).unwrap_or_default();
    let line = read.map_or_else(String::new, |read| {
        format!("{}Only these numbers were used; the claim does not depend on the votes.\n", read.line())
    });
    print(&format!("{}{note}{line}", calibration_text(&found, teachers)))
}

/// Finds the least binomial noise that meets the target and whose coins `teachers` teachers share evenly. With a
/// threshold, each teacher's coins are even.
fn calibrate_coins(teachers: usize, queries: usize, target: &Target) -> Result<Calibration, AccountError> {
    let mut found = calibrate_noise(MechanismKind::Binomial, queries, target)?;
    let step = NoiseCoins::step(target.threshold.is_some());
    let mut each = ((found.scale / teachers.max(1) as f64).ceil() as u64).next_multiple_of(step);
    // More coins than the least number meet the target, except where a ratio of them is rounded down.
    loop {
        let coins = NoiseCoins::new(each.saturating_mul(teachers as u64))?;
        BinomialShare::new(coins, teachers)?;
        let event = PrivacyEvent::new(Mechanism::binomial(coins), target.tau);
        let event = target.threshold.map_or(Ok(event), |threshold| event.with_threshold(threshold))?;
        let accountant = Accountant::new(event, target.delta).with_adversary(target.adversary).with_bound(target.bound);
        let accountant = target.classes.map_or(accountant, |classes| accountant.with_classes(classes));
        found.account = accountant.account_queries(queries)?;
        found.scale = coins.get() as f64;
        if found.account.epsilon <= target.epsilon {
            return Ok(found);
        }
        each += step;
    }
}

fn calibration_text(found: &Calibration, teachers: Option<usize>) -> String {
    let noise = found.account.mechanism;
    format!(
        "{} queries with {} noise of {}: epsilon {:.4}\n{}\n",
        found.queries,
        noise.kind(),
        width(noise, teachers),
        round_up(found.account.epsilon, 4),
        found.account.claim
    )
}
