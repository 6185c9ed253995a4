//! `speed account`, `speed calibrate`, `speed audit`, `speed ledger` and `speed figure`

mod budget;
mod figure;
mod key_range;
mod ledger;

use std::ops::Range;
use std::path::Path;

use serde::Serialize;
use serde_json::json;
use speed_accountant::audit::{NoisyArgmax, ShareNoise, TruncatedShare, audit_at};
use speed_accountant::calibrate::{Calibration, Target, calibrate_noise, calibrate_queries};
use speed_accountant::theory::tight_per_query_epsilon;
use speed_accountant::{
    Account, AccountError, Accountant, Bound, Delta, Extent, NeighbouringRelation, PrivacyEvent, ReleaseOptions,
    round_up,
};
use speed_core::Randomness;
use speed_experiment::ExperimentError;
use speed_experiment::npy::{read_histograms, read_row_indices};
use speed_mechanism::{
    DiscreteGaussian, HonestRatio, Mechanism, MechanismError, MechanismKind, NoiseDeviation, NoiseGenerator,
    NoiseShare, SkellamShare,
};

pub(super) use figure::figure;
pub(super) use ledger::ledger;

use self::key_range::KeyRange;
use super::{Failure, mark, print, print_json, usage};
use crate::bar::{Counting, Waiting};
use crate::options::{AccountOptions, AuditOptions, CalibrateOptions, NoiseOptions, ShareKind};

/// More values are not drawn for an audit: it would take days.
const MAX_DRAWS: f64 = 1e12;

/// A calibration with the keys that a round of so many teachers needs.
#[derive(Serialize)]
struct Calibrated<'a> {
    #[serde(flatten)]
    found: &'a Calibration,
    #[serde(skip_serializing_if = "Option::is_none")]
    round: Option<KeyRange>,
}

pub(super) fn account(options: &AccountOptions) -> Result<(), Failure> {
    let counts = match &options.votes {
        Some(votes) => counts(votes, options.queries.as_deref(), options.rows.as_ref())?,
        None => Vec::new(),
    };
    let of_votes = counts.first().map(|row| row.iter().map(|&count| count as usize).sum());
    let tau = ratio(&options.noise, of_votes.or(options.teachers))?;
    let queries = if options.votes.is_some() { counts.len() } else { number_of_queries(options)? };
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
        let mut generator = NoiseGenerator::new(&source).map_err(|error| mechanism_failure(error.into()))?;
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
    if options.json { print_json(&spent) } else { print(&account_text(&spent)) }
}

/// Reads `--queries` as a number, where there are no votes.
fn number_of_queries(options: &AccountOptions) -> Result<usize, Failure> {
    let found = options.queries.as_ref().map_or_else(String::new, |queries| queries.to_string_lossy().into_owned());
    found
        .parse()
        .map_err(|_| usage("queries", format!("found {found:?}, expected how many there are: no --votes are given")))
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
        text.push_str("Warning: the best order is at the edge of those tried; another may give a smaller epsilon.\n");
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
    let target = Target {
        epsilon,
        delta,
        tau: ratio(&options.noise, options.teachers)?,
        adversary: options.assume,
        bound: options.bound,
        classes: options.classes,
        threshold: options.threshold,
    };
    let kind = options.noise.mechanism;
    let found = match options.queries {
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
    let round = options.teachers.and_then(|teachers| KeyRange::of(kind, &found, teachers));
    if options.json {
        return print_json(&Calibrated { found: &found, round });
    }
    let note = round.and_then(|round| round.note()).unwrap_or_default();
    print(&(calibration_text(kind, &found) + &note))
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

/// Returns the ratio that this number of teachers really has.
fn ratio(noise: &NoiseOptions, teachers: Option<usize>) -> Result<HonestRatio, Failure> {
    let ratio = noise.honest_ratio;
    teachers.map_or(Ok(ratio), |teachers| ratio.effective(teachers)).map_err(|error| flag("honest-ratio", &error))
}

/// Derives a generator's key from a seed.
fn simulated(seed: u64) -> Randomness {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    Randomness::simulation(key)
}

pub(super) fn audit(options: &AuditOptions) -> Result<(), Failure> {
    let noise = noise(&options.mechanism)?;
    let teachers: usize = options.votes.iter().map(|&count| count as usize).sum();
    let tau = options.mechanism.honest_ratio.effective(teachers).map_err(|error| flag("honest-ratio", &error))?;
    let here: Vec<i64> = options.votes.iter().map(|&count| i64::from(count)).collect();
    if here.len() < 2 || here[0] == 0 {
        return Err(usage("votes", "expected at least two classes and a vote for the first".into()));
    }
    if !(options.confidence > 0.0 && options.confidence < 1.0) {
        return Err(usage(
            "confidence",
            format!("found {:?}, expected more than 0 and less than 1", options.confidence),
        ));
    }
    let mut there = here.clone();
    there[0] -= 1;
    there[1] += 1;
    let threshold = (!options.no_threshold).then(|| options.threshold.unwrap_or(here[0]));
    let share = share(options.noise, noise, teachers, tau)?;
    let mechanism = NoisyArgmax::new(share, teachers, tau, threshold).map_err(|error| flag("honest-ratio", &error))?;
    let mut event = PrivacyEvent::new(noise, tau);
    if let Some(threshold) = threshold {
        event = event.with_threshold(threshold as f64).map_err(|error| flag("threshold", &error))?;
    }
    let (claim, delta) = claimed(event, here.len(), options.delta)?;
    let mut generator =
        NoiseGenerator::new(&Randomness::OperatingSystem).map_err(|error| mechanism_failure(error.into()))?;
    let draws = options.runs as f64 * 2.0 * (here.len() * mechanism.draws_of_a_class()) as f64;
    if draws > MAX_DRAWS {
        let most = (MAX_DRAWS / draws * options.runs as f64).floor();
        return Err(usage(
            "runs",
            format!("{} runs draw {draws:.1e} values, which takes days: at most {most} here", options.runs),
        ));
    }
    let answers = Counting::new("running the mechanism", options.runs.saturating_mul(2));
    let run = |neighbour: bool| {
        answers.step();
        mechanism.answer(if neighbour { &there } else { &here }, &mut generator)
    };
    let found = audit_at(delta, here.len() + 1, options.runs, options.confidence, run);
    drop(answers);
    let refuted = found.lower_bound > claim;
    if options.json {
        print_json(&json!({
            "lower_bound": found.lower_bound, "claim": claim, "refuted": refuted, "confidence": found.confidence,
            "runs": found.runs, "answer": found.answer, "counts": found.counts,
            "mechanism": options.mechanism.mechanism.to_string(), "gamma": options.mechanism.gamma,
            "sigma": options.mechanism.sigma, "delta": delta, "tau": tau.get(), "votes": here, "neighbour": there, "threshold": threshold,
        }))?;
    } else {
        print(&format!(
            "One query costs at least epsilon {:.4} (confidence {}, answer {} came {} and {} times in {} runs each); \
             claimed: {claim:.4}.\n",
            found.lower_bound, found.confidence, found.answer, found.counts[0], found.counts[1], found.runs
        ))?;
    }
    if refuted {
        return Err(ExperimentError::Audit { lower_bound: found.lower_bound, claim }.into());
    }
    Ok(())
}

/// Computes the epsilon that is claimed of one query, and the delta of that claim.
fn claimed(event: PrivacyEvent, classes: usize, delta: Delta) -> Result<(f64, f64), Failure> {
    let noise = event.mechanism();
    Ok(match noise {
        Mechanism::Laplace { .. } | Mechanism::DiscreteLaplace { .. } => {
            (tight_per_query_epsilon(&event, classes), 0.0)
        }
        // The discrete Gaussian has the moments of the Gaussian, not its whole curve.
        Mechanism::Gaussian { .. } | Mechanism::Skellam { .. } => {
            let bound = if noise.is_integer() { Bound::Tight } else { Bound::Paper };
            let accountant = Accountant::new(event, delta).with_bound(bound);
            (accountant.account_queries(1).map_err(|error| flag("delta", &error))?.epsilon, delta.get())
        }
    })
}

/// Creates the origin of the teachers' noise in an audit.
fn share(kind: ShareKind, noise: Mechanism, teachers: usize, tau: HonestRatio) -> Result<ShareNoise, Failure> {
    let share = match (kind, noise) {
        (ShareKind::Exact, Mechanism::DiscreteLaplace { gamma }) => {
            NoiseShare::new(gamma, teachers).map(|share| ShareNoise::Exact(Box::new(share)))
        }
        (ShareKind::Exact, Mechanism::Skellam { sigma }) => SkellamShare::new(sigma, teachers).map(ShareNoise::Skellam),
        (ShareKind::Exact, Mechanism::Gaussian { sigma }) => NoiseDeviation::new(sigma.get() * tau.get().sqrt())
            .map(|sigma| ShareNoise::Gaussian(DiscreteGaussian::new(sigma))),
        (ShareKind::Truncated, Mechanism::DiscreteLaplace { gamma }) => {
            TruncatedShare::new(gamma, teachers).map(ShareNoise::Truncated)
        }
        (ShareKind::Exact, Mechanism::Laplace { .. }) => {
            return Err(usage(
                "mechanism",
                "continuous Laplace noise has no exact sampler; use discrete-laplace".into(),
            ));
        }
        (ShareKind::Truncated, _) => {
            return Err(usage("noise", "truncated shares are those of --mechanism discrete-laplace".into()));
        }
    };
    share.map_err(|error| flag(if noise.gamma().is_some() { "gamma" } else { "sigma" }, &error))
}

/// Reads the rows of votes that the options name.
fn counts(votes: &Path, queries: Option<&Path>, rows: Option<&Range<usize>>) -> Result<Vec<Vec<u32>>, Failure> {
    let all = read_histograms(votes)?;
    if let Some(path) = queries {
        let indices = read_row_indices(path, all.len())?;
        return Ok(indices.into_iter().map(|index| all[index].clone()).collect());
    }
    match rows {
        None => Ok(all),
        Some(rows) => all.get(rows.clone()).map(<[Vec<u32>]>::to_vec).ok_or_else(|| {
            usage("rows", format!("{}..{} is not within the file's {} rows", rows.start, rows.end, all.len()))
        }),
    }
}

fn noise(options: &NoiseOptions) -> Result<Mechanism, Failure> {
    let kind = options.mechanism;
    let (name, scale) = if kind.is_inverse() { ("gamma", options.gamma) } else { ("sigma", options.sigma) };
    let scale = scale.ok_or_else(|| usage(name, format!("{kind} noise needs --{name}")))?;
    kind.with_scale(scale).map_err(|error| flag(name, &error))
}

/// Reports a flag whose value is refused.
fn flag(name: &str, error: &impl std::fmt::Display) -> Failure {
    usage(name, error.to_string())
}

fn mechanism_failure(error: MechanismError) -> Failure {
    ExperimentError::from(error).into()
}
