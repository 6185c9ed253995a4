//! `speed account`, `speed calibrate`, `speed audit`, `speed ledger` and `speed figure`

mod audit;
mod budget;
mod calibrate;
mod figure;
mod ledger;
mod noise;
mod votes;

use std::ops::Range;
use std::path::PathBuf;

use clap::Args;
use speed_accountant::{
    Account, AccountError, Accountant, Adversary, Bound, Delta, Extent, NeighbouringRelation, PrivacyEvent,
    ReleaseOptions, round_up,
};
use speed_core::Randomness;
use speed_core::vote_files::Known;
use speed_experiment::ExperimentError;
use speed_mechanism::{MechanismError, NoiseGenerator};

pub(super) use self::noise::{checks, noise, ratio, width};
pub(super) use self::votes::{GIVE_LABELS, ReadVotes, WithVotes, counts as read_counts, read as read_votes};
use super::{Failure, mark, print_report, usage};
use crate::bar::Bar;
use crate::options::{CheckOptions, FormOption, NoiseOptions, delta, rows};
pub(super) use audit::{AuditOptions, audit};
pub(super) use calibrate::CalibrateOptions;
pub(super) use figure::{FigureCommand, figure};
pub(super) use ledger::{LedgerCommand, ledger};

#[derive(Debug, Args)]
pub(crate) struct AccountOptions {
    /// Votes, .npy or CSV: labels (teachers x queries) or histograms (queries x classes). Not needed with --any-votes
    #[arg(long, value_name = "FILE", required_unless_present = "any_votes")]
    votes: Option<PathBuf>,
    #[command(flatten)]
    form: FormOption,
    /// Only these queries: an .npy or CSV file of indices. Without --votes: the number of queries
    #[arg(long, value_name = "IDX|N", conflicts_with = "rows")]
    queries: Option<PathBuf>,
    /// Only queries A to B - 1
    #[arg(long, value_name = "A..B", value_parser = rows, requires = "votes")]
    rows: Option<Range<usize>>,
    /// Number of teachers, which must match the votes; --honest-ratio is rounded down to an integer number of teachers
    #[arg(long, value_name = "N")]
    teachers: Option<usize>,
    /// Number of classes, which a file of labels does not contain. Without --votes, two classes cost less than a larger
    /// number [default: any number]
    #[arg(long, value_name = "K")]
    classes: Option<usize>,
    #[command(flatten)]
    noise: NoiseOptions,
    /// Delta of the claim
    #[arg(long, value_name = "D", value_parser = delta)]
    delta: Delta,
    /// Assumption about the noise outside --honest-ratio: dropout (missing), collusion (known to an adversary) or central
    /// (a trusted aggregator adds all noise)
    #[arg(long, value_name = "WHAT", default_value = "dropout")]
    assume: Adversary,
    /// Cover every number of teachers up to the number that --honest-ratio leaves out, instead of exactly that number, and
    /// every mixture of missing and known noise; takes as long as one account for each number
    #[arg(long)]
    up_to: bool,
    /// Formulas: paper, outcome (worst case given a query's epsilon and the probability of another answer) or tight (uses
    /// everything that is known)
    #[arg(long, value_name = "WHICH", default_value = "tight")]
    bound: Bound,
    /// Cover both directions also with the paper's formulas; the other bounds cover both directions unless --one-direction
    /// is given
    #[arg(long, conflicts_with = "one_direction")]
    both_directions: bool,
    /// Cover only the direction from these votes to a neighbour's
    #[arg(long)]
    one_direction: bool,
    /// Largest moment order: integer orders with the paper's formulas [default: 25], real orders otherwise [default:
    /// 4096]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    orders: Option<u32>,
    /// Answer only where the largest noisy count reaches this many votes
    #[arg(long, value_name = "VOTES")]
    threshold: Option<f64>,
    #[command(flatten)]
    check: CheckOptions,
    /// Compute the data-independent epsilon, which may be published
    #[arg(long)]
    any_votes: bool,
    /// Add noise to the data-dependent epsilon, so that the value may be published once (docs/privacy.md, "Publication")
    #[arg(long, conflicts_with_all = ["any_votes", "one_direction", "orders", "bound"])]
    release: bool,
    /// With --release: noise from a seed; the value is then not private
    #[arg(long, value_name = "SEED", requires = "release")]
    simulation: Option<u64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn account(options: &AccountOptions) -> Result<(), Failure> {
    let (counts, read) = match &options.votes {
        Some(path) => {
            let known = Known { teachers: options.teachers, queries: None, classes: options.classes };
            let file = votes::read(path, options.form.form, &known, votes::GIVE_TEACHERS)?;
            let (counts, read) = votes::counts(path, &file, options.queries.as_deref(), options.rows.as_ref())?;
            (counts, Some(read))
        }
        None => (Vec::new(), None),
    };
    let teachers = read.map(|read| read.teachers).or(options.teachers);
    let tau = ratio(&options.noise, teachers)?;
    let queries = if options.votes.is_some() {
        counts.len()
    } else {
        let found = options.queries.as_ref().map_or_else(String::new, |queries| queries.to_string_lossy().into_owned());
        found.parse().map_err(|_| {
            usage("queries", format!("expected a number of queries, because there is no --votes, found {found:?}"))
        })?
    };
    let checks = checks(&options.check, &options.noise, teachers, (options.threshold, tau), queries)?;
    let of_argmax = options.threshold.filter(|_| checks.is_none());
    let mut event = PrivacyEvent::new(noise(&options.noise, teachers, of_argmax.is_some())?, tau);
    if let Some(threshold) = of_argmax {
        event = event.with_threshold(threshold).map_err(|error| usage("threshold", &error))?;
    }
    let both = options.both_directions || (options.bound != Bound::Paper && !options.one_direction);
    let mut accountant = Accountant::new(event, options.delta)
        .with_bound(options.bound)
        .with_adversary(options.assume)
        .with_extent(if options.up_to { Extent::UpTo } else { Extent::Exactly })
        .with_relation(if both { NeighbouringRelation::BothWays } else { NeighbouringRelation::OneSided });
    if let Some(checks) = checks {
        accountant = accountant.after(checks);
    }
    if let Some(classes) = options.classes {
        accountant = accountant.with_classes(classes);
    }
    if let Some(orders) = options.orders {
        accountant = accountant.with_max_order(f64::from(orders));
    }
    let waiting = Bar::waiting("accounting");
    let spent = if options.any_votes {
        accountant.account_queries(options.check.answers.unwrap_or(queries))
    } else if options.release {
        let source = options.simulation.map_or(Randomness::OperatingSystem, simulated);
        let mut generator =
            NoiseGenerator::new(&source).map_err(|error| ExperimentError::from(MechanismError::from(error)))?;
        accountant.release(&counts, teachers.unwrap_or_default(), &ReleaseOptions::default(), &mut generator)
    } else {
        accountant.account(&counts, teachers.unwrap_or_default())
    };
    drop(waiting);
    let spent = spent.map_err(|error| match error {
        AccountError::CentralRatio { .. } => usage("honest-ratio", &error),
        AccountError::TooFewClasses { .. } if options.votes.is_none() => usage("classes", "expected at least 2"),
        AccountError::ReleaseOption { .. } => usage("release", &error),
        AccountError::Checks { what: "answers", .. } => usage("answers", &error),
        AccountError::Checks { .. } => usage("check-sigma", &error),
        error => match &options.votes {
            Some(votes) => ExperimentError::input(votes, error).into(),
            None => usage("queries", &error),
        },
    })?;
    print_report(options.json, &WithVotes { value: &spent, votes_file: read }, || {
        format!("{}{}", account_text(&spent), read.map_or_else(String::new, |read| read.line()))
    })
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

/// Finds noise or a number of queries, for a target or for a ledger.
pub(super) fn calibrate(options: &CalibrateOptions) -> Result<(), Failure> {
    if options.ledger.is_some() || options.budget { budget::calibrate(options) } else { calibrate::calibrate(options) }
}

/// Derives a generator's key from a seed.
fn simulated(seed: u64) -> Randomness {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    Randomness::simulation(key)
}
