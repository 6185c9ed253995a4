//! `speed account`, `speed calibrate`, `speed audit`, `speed ledger` and `speed figure`

mod audit;
mod budget;
mod figure;
mod key_range;
mod ledger;
mod noise;
mod votes;

use serde::Serialize;
use speed_accountant::calibrate::{Calibration, Target, calibrate_noise, calibrate_queries};
use speed_accountant::{
    Account, AccountError, Accountant, Bound, Extent, NeighbouringRelation, PrivacyEvent, ReleaseOptions, round_up,
};
use speed_core::Randomness;
use speed_experiment::ExperimentError;
use speed_mechanism::{MechanismError, MechanismKind, NoiseGenerator};
use speed_votes::Known;

pub(super) use audit::audit;
pub(super) use figure::figure;
pub(super) use ledger::ledger;

use self::key_range::KeyRange;
use self::noise::{noise, ratio};
use super::{Failure, flag, mark, print, print_json, usage};
use crate::bar::Waiting;
use crate::options::{AccountOptions, CalibrateOptions};
use votes::{ReadVotes, WithVotes};

/// A calibration with the keys that a round of this number of teachers needs.
#[derive(Serialize)]
struct Calibrated<'a> {
    #[serde(flatten)]
    found: &'a Calibration,
    #[serde(skip_serializing_if = "Option::is_none")]
    round: Option<KeyRange>,
}

pub(super) fn account(options: &AccountOptions) -> Result<(), Failure> {
    let (counts, read) = match &options.votes {
        Some(path) => {
            let known = Known { teachers: options.teachers, queries: None, classes: options.classes };
            let file = votes::read(path, options.form.form, &known)?;
            let (counts, read) = votes::counts(path, &file, options.queries.as_deref(), options.rows.as_ref())?;
            (counts, Some(read))
        }
        None => (Vec::new(), None),
    };
    let tau = ratio(&options.noise, read.map(|read| read.teachers).or(options.teachers))?;
    let queries = if options.votes.is_some() {
        counts.len()
    } else {
        let found = options.queries.as_ref().map_or_else(String::new, |queries| queries.to_string_lossy().into_owned());
        found.parse().map_err(|_| {
            usage("queries", format!("expected a number of queries, because there is no --votes, found {found:?}"))
        })?
    };
    let mut event = PrivacyEvent::new(noise(&options.noise)?, tau);
    if let Some(threshold) = options.threshold {
        event = event.with_threshold(threshold).map_err(|error| flag("threshold", &error))?;
    }
    let both = options.both_directions || (options.bound != Bound::Paper && !options.one_direction);
    let mut accountant = Accountant::new(event, options.delta)
        .with_bound(options.bound)
        .with_adversary(options.assume)
        .with_extent(if options.up_to { Extent::UpTo } else { Extent::Exactly })
        .with_relation(if both { NeighbouringRelation::BothWays } else { NeighbouringRelation::OneSided });
    if let Some(classes) = options.classes {
        accountant = accountant.with_classes(classes);
    }
    if let Some(orders) = options.orders {
        accountant = accountant.with_max_order(f64::from(orders));
    }
    let waiting = Waiting::new("accounting");
    let spent = if options.any_votes {
        accountant.account_queries(queries)
    } else if options.release {
        let flags = &options.release_options;
        let how =
            ReleaseOptions { smoothness: flags.smoothness, noise: flags.release_noise, order: flags.release_order };
        let source = flags.simulation.map_or(Randomness::OperatingSystem, simulated);
        let mut generator =
            NoiseGenerator::new(&source).map_err(|error| ExperimentError::from(MechanismError::from(error)))?;
        accountant.release(&counts, &how, &mut generator)
    } else {
        accountant.account(&counts)
    };
    drop(waiting);
    let spent = spent.map_err(|error| match error {
        AccountError::CentralRatio { .. } => flag("honest-ratio", &error),
        AccountError::TooFewClasses { .. } if options.votes.is_none() => flag("classes", &"expected at least 2"),
        AccountError::ReleaseOption { .. } => flag("release", &error),
        error => match &options.votes {
            Some(votes) => ExperimentError::Input { path: votes.clone(), fault: error.into() }.into(),
            None => flag("queries", &error),
        },
    })?;
    if options.json {
        return print_json(&WithVotes { value: &spent, votes_file: read });
    }
    print(&format!("{}{}", account_text(&spent), read.map_or_else(String::new, |read| read.line())))
}

fn account_text(account: &Account) -> String {
    let simulation = account.release.as_ref().is_some_and(|release| release.simulation);
    let mut text = mark(simulation).to_owned();
    text += &format!("epsilon {:.4} at delta {:e}\n{}\n", round_up(account.epsilon, 4), account.delta, account.claim);
    if let Some(order) = account.order {
        text.push_str(&format!(
            "Moment order {order:.2}; {} of {} queries are cheaper for their votes; epsilon of one query {:.6}.\n",
            account.data_dependent_queries, account.queries, account.per_query_epsilon
        ));
    }
    if account.order_at_edge {
        text.push_str("Warning: the best order is at the edge of the range that was searched; another order may give a smaller epsilon.\n");
    }
    text
}

pub(super) fn calibrate(options: &CalibrateOptions) -> Result<(), Failure> {
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
    let has_scale = options.noise.gamma.or(options.noise.sigma).is_some();
    let of_votes = read.filter(|_| !has_scale).map(|read| read.queries);
    let found = match options.queries.or(of_votes) {
        Some(queries) => Waiting::during("calibrating", || calibrate_noise(kind, queries, &target)),
        None => {
            let noise = noise(&options.noise)?;
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
        return print_json(&WithVotes { value: &Calibrated { found: &found, round }, votes_file: read });
    }
    let note = round.and_then(|round| round.note()).unwrap_or_default();
    let line = read.map_or_else(String::new, |read| {
        format!("{}Only these numbers were used; the claim does not depend on the votes.\n", read.line())
    });
    print(&format!("{}{note}{line}", calibration_text(kind, &found)))
}

fn calibration_text(kind: MechanismKind, found: &Calibration) -> String {
    let scale = if kind.is_inverse() { "gamma" } else { "sigma" };
    format!(
        "{} queries with {kind} noise of {scale} {}: epsilon {:.4}\n{}\n",
        found.queries,
        found.scale,
        round_up(found.account.epsilon, 4),
        found.account.claim
    )
}

/// Derives a generator's key from a seed.
fn simulated(seed: u64) -> Randomness {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    Randomness::simulation(key)
}
