//! Options that several commands share, and the parsers of their values.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::{Path, PathBuf};

use clap::Args;
use speed_accountant::forecast::Agreement;
use speed_accountant::{Delta, PriceLimit};
use speed_core::Classes;
use speed_core::vote_files::VotesForm;
use speed_experiment::report::csv;
use speed_mechanism::{HonestRatio, MechanismKind};
use speed_round::{LedgerOptions, RoundPrice, default_ledger, default_registry};

use crate::failure::{Failure, usage};

#[derive(Debug, Args)]
pub(crate) struct ExperimentOptions {
    /// A TOML file; configs/default.toml documents every key
    pub(crate) config: PathBuf,
    /// Change one key, for example --set teacher.steps=300; may be given several times
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) overrides: Vec<String>,
    /// Folder of all results
    #[arg(long, value_name = "DIR", default_value = "results")]
    pub(crate) results: PathBuf,
    /// Folder of datasets [default: SPEED_DATASETS, or ./datasets if it is not set]
    #[arg(long, value_name = "DIR")]
    pub(crate) datasets: Option<PathBuf>,
}

/// The limit on the price of answers, the same for rounds, runs and ledgers.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct MaxEpsilon {
    /// Refuse answers with real noise if their total data-independent epsilon exceeds this value; without it, the limit
    /// is 10 for a single answer
    #[arg(long, value_name = "E")]
    pub(crate) max_epsilon: Option<f64>,
}

impl MaxEpsilon {
    /// Returns the limit that a command line sets.
    pub(crate) fn limit(self) -> Result<PriceLimit, Failure> {
        PriceLimit::new(self.max_epsilon).map_err(|error| usage("max-epsilon", &error))
    }

    /// Refuses a round whose price is above the limit. A simulation is never refused.
    pub(crate) fn check(self, price: &RoundPrice, simulation: bool) -> Result<(), Failure> {
        let limit = self.limit()?;
        if simulation { Ok(()) } else { price.check(limit).map_err(|error| usage("max-epsilon", &error)) }
    }
}

/// The form of a file of votes.
#[derive(Debug, Args)]
pub(crate) struct FormOption {
    /// Form of the votes: labels or histograms [default: the only possible form; an ambiguous file is refused]
    #[arg(long, value_name = "FORM", requires = "votes")]
    pub(crate) form: Option<VotesForm>,
}

/// The noise of one class.
#[derive(Debug, Args)]
pub(crate) struct NoiseOptions {
    /// Kind of noise: laplace, discrete-laplace, gaussian, skellam or binomial
    #[arg(long, value_name = "KIND", default_value = "discrete-laplace")]
    pub(crate) mechanism: MechanismKind,
    /// Inverse scale of Laplace noise, per vote
    #[arg(long, value_name = "G", conflicts_with = "sigma")]
    pub(crate) gamma: Option<f64>,
    /// Standard deviation of Gaussian or Skellam noise, in votes; of binomial noise at least, with the fewest coins
    #[arg(long, value_name = "S")]
    pub(crate) sigma: Option<f64>,
    /// Binomial noise: fair coins that one teacher tosses for each class and query
    #[arg(long, value_name = "M", conflicts_with_all = ["gamma", "sigma"])]
    pub(crate) coins: Option<u64>,
    /// Fraction of the teachers whose noise is present and secret (tau)
    #[arg(long, value_name = "TAU", default_value = "1", value_parser = ratio)]
    pub(crate) honest_ratio: HonestRatio,
}

/// Checks before the answers, with noise of their own.
#[derive(Debug, Args)]
pub(crate) struct CheckOptions {
    /// Check every query against --threshold with separate noise of this inverse scale (Laplace noise), one draw of a
    /// teacher for all classes, and answer queries that reach it with the noise of the other options
    #[arg(long, value_name = "G", requires = "threshold")]
    pub(crate) check_gamma: Option<f64>,
    /// The same with Gaussian, Skellam or binomial noise of this standard deviation, in votes
    #[arg(long, value_name = "S", requires = "threshold", conflicts_with = "check_gamma")]
    pub(crate) check_sigma: Option<f64>,
    /// The same with binomial noise of this number of coins of a teacher
    #[arg(long, value_name = "M", requires = "threshold", conflicts_with_all = ["check_gamma", "check_sigma"])]
    pub(crate) check_coins: Option<u64>,
    /// After checks: the largest number of answers, fixed beforehand [default: all checked queries]
    #[arg(long, value_name = "N")]
    pub(crate) answers: Option<usize>,
}

impl CheckOptions {
    /// Returns whether checks have noise of their own.
    pub(crate) fn is_given(&self) -> bool {
        self.check_gamma.or(self.check_sigma).is_some() || self.check_coins.is_some()
    }
}

pub(crate) fn ratio(text: &str) -> Result<HonestRatio, String> {
    HonestRatio::new(number(text)?).map_err(|error| error.to_string())
}

pub(crate) fn delta(text: &str) -> Result<Delta, String> {
    Delta::new(number(text)?).map_err(|error| error.to_string())
}

/// Reads an expected share of the teachers.
pub(crate) fn agreement(text: &str) -> Result<Agreement, String> {
    Agreement::new(number(text)?).map_err(|error| error.to_string())
}

fn number(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| format!("expected a number, found {text:?}"))
}

pub(crate) fn rows(text: &str) -> Result<Range<usize>, String> {
    let expected = || format!("expected A..B with A below B, found {text:?}");
    let (from, to) = text.split_once("..").ok_or_else(expected)?;
    let (from, to) = (from.parse().map_err(|_| expected())?, to.parse().map_err(|_| expected())?);
    if from < to { Ok(from..to) } else { Err(expected()) }
}

/// Limits on the price of a round.
#[derive(Debug, Args)]
pub(crate) struct PriceOptions {
    /// Delta at which the round's epsilon is printed
    #[arg(long, value_name = "D", default_value = "1e-5", value_parser = delta)]
    pub(crate) delta: Delta,
    #[command(flatten)]
    pub(crate) limit: MaxEpsilon,
}

/// A party's records.
#[derive(Debug, Args)]
pub(crate) struct RecordOptions {
    /// Registry of this party's rounds, which prevents answering or evaluating a round twice [default: beside the signing
    /// key]
    #[arg(long, value_name = "FILE")]
    registry: Option<PathBuf>,
    /// Create a missing registry. Only for a key that never answered; keygen creates one beside the key
    #[arg(long)]
    pub(crate) new_registry: bool,
    /// Ledger that is charged before the round is answered; simulations are not charged [default: beside the signing key]
    #[arg(long, value_name = "FILE")]
    ledger: Option<PathBuf>,
    /// Delta of the ledger, if it does not exist yet
    #[arg(long, value_name = "D", default_value = "1e-5", value_parser = delta)]
    ledger_delta: Delta,
}

impl RecordOptions {
    pub(crate) fn registry(&self, signing_key: &Path) -> PathBuf {
        self.registry.clone().unwrap_or_else(|| default_registry(signing_key))
    }

    pub(crate) fn ledger(&self, signing_key: &Path) -> LedgerOptions {
        let path = self.ledger.clone().unwrap_or_else(|| default_ledger(signing_key));
        LedgerOptions { path, delta: self.ledger_delta }
    }
}

/// Returns the requested number of threads, or all processors.
pub(crate) fn threads(asked: Option<impl Into<u16>>) -> NonZeroUsize {
    let all = || std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    asked.and_then(|asked| NonZeroUsize::new(asked.into().into())).unwrap_or_else(all)
}

/// Largest seed, because configs have signed integers.
pub(crate) const MAX_SEED: u64 = i64::MAX as u64;

/// The names of classes.
#[derive(Clone, Debug)]
pub(crate) struct ClassNames(pub(crate) Vec<String>);

/// Reads a list of names as a line of CSV, so a name with a comma is put in quotes; without the spaces that people write after commas.
pub(crate) fn class_names(text: &str) -> Result<ClassNames, String> {
    // CSV has quotes only at the beginning of a cell.
    let text = text.split(',').map(|part| if part.trim_start().starts_with('"') { part.trim_start() } else { part });
    let lines = csv::read(&text.collect::<Vec<_>>().join(","));
    let [names] = &lines[..] else { return Err(format!("expected one line of names, found {}", lines.len())) };
    match names.iter().find(|name| name.contains('"')) {
        Some(name) => Err(format!("expected names without quotes, found {name:?}")),
        None => Ok(ClassNames(names.iter().map(|name| name.trim().to_owned()).collect())),
    }
}

/// Reads the classes of a round: their names, or their number if they are called by their numbers from 0.
pub(crate) fn classes(text: &str) -> Result<Classes, String> {
    let is_count = text.bytes().all(|letter| letter.is_ascii_digit());
    let count = text.parse().ok().filter(|_| is_count);
    let classes = count
        .map_or_else(|| class_names(text).map(|names| Classes::named(names.0)), |count| Ok(Classes::numbered(count)));
    classes?.map_err(|error| error.to_string())
}
