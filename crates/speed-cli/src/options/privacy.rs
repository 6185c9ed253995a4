//! Options of the privacy commands.

use std::ops::Range;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use speed_accountant::forecast::Agreement;
use speed_accountant::{Adversary, Bound, Delta};
use speed_core::vote_files::VotesForm;
use speed_mechanism::{HonestRatio, MechanismKind};

/// The limit on the price of answers, the same for rounds, runs and ledgers.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct MaxEpsilon {
    /// Refuse answers with real noise if their total data-independent epsilon exceeds this value; without it, the limit
    /// is 10 for a single answer
    #[arg(long, value_name = "E")]
    pub(crate) max_epsilon: Option<f64>,
}

/// A file of votes and a selection of its queries.
#[derive(Debug, Args)]
pub(crate) struct QueryOptions {
    /// Votes, .npy or CSV: labels (teachers x queries) or histograms (queries x classes)
    #[arg(long, value_name = "FILE")]
    pub(crate) votes: PathBuf,
    #[command(flatten)]
    pub(crate) form: FormOption,
    /// Number of classes, which a file of labels does not contain
    #[arg(long, value_name = "K")]
    pub(crate) classes: Option<usize>,
    /// Only these queries: an .npy or CSV file of indices
    #[arg(long, value_name = "IDX", conflicts_with = "rows")]
    pub(crate) queries: Option<PathBuf>,
    /// Only queries A to B - 1
    #[arg(long, value_name = "A..B", value_parser = rows)]
    pub(crate) rows: Option<Range<usize>>,
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

#[derive(Debug, Args)]
pub(crate) struct AccountOptions {
    /// Votes, .npy or CSV: labels (teachers x queries) or histograms (queries x classes). Not needed with --any-votes
    #[arg(long, value_name = "FILE", required_unless_present = "any_votes")]
    pub(crate) votes: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) form: FormOption,
    /// Only these queries: an .npy or CSV file of indices. Without --votes: the number of queries
    #[arg(long, value_name = "IDX|N", conflicts_with = "rows")]
    pub(crate) queries: Option<PathBuf>,
    /// Only queries A to B - 1
    #[arg(long, value_name = "A..B", value_parser = rows, requires = "votes")]
    pub(crate) rows: Option<Range<usize>>,
    /// Number of teachers, which must match the votes; --honest-ratio is rounded down to an integer number of teachers
    #[arg(long, value_name = "N")]
    pub(crate) teachers: Option<usize>,
    /// Number of classes, which a file of labels does not contain. Without --votes, two classes cost less than a larger
    /// number [default: any number]
    #[arg(long, value_name = "K")]
    pub(crate) classes: Option<usize>,
    #[command(flatten)]
    pub(crate) noise: NoiseOptions,
    /// Delta of the claim
    #[arg(long, value_name = "D", value_parser = delta)]
    pub(crate) delta: Delta,
    /// Assumption about the noise outside --honest-ratio: dropout (missing), collusion (known to an adversary) or central
    /// (a trusted aggregator adds all noise)
    #[arg(long, value_name = "WHAT", default_value = "dropout")]
    pub(crate) assume: Adversary,
    /// Cover every number of teachers up to the number that --honest-ratio leaves out, instead of exactly that number, and
    /// every mixture of missing and known noise; takes as long as one account for each number
    #[arg(long)]
    pub(crate) up_to: bool,
    /// Formulas: paper, outcome (worst case given a query's epsilon and the probability of another answer) or tight (uses
    /// everything that is known)
    #[arg(long, value_name = "WHICH", default_value = "tight")]
    pub(crate) bound: Bound,
    /// Cover both directions also with the paper's formulas; the other bounds cover both directions unless --one-direction
    /// is given
    #[arg(long, conflicts_with = "one_direction")]
    pub(crate) both_directions: bool,
    /// Cover only the direction from these votes to a neighbour's
    #[arg(long)]
    pub(crate) one_direction: bool,
    /// Largest moment order: integer orders with the paper's formulas [default: 25], real orders otherwise [default:
    /// 4096]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) orders: Option<u32>,
    /// Answer only where the largest noisy count reaches this many votes
    #[arg(long, value_name = "VOTES")]
    pub(crate) threshold: Option<f64>,
    #[command(flatten)]
    pub(crate) check: CheckOptions,
    /// Compute the data-independent epsilon, which may be published
    #[arg(long)]
    pub(crate) any_votes: bool,
    /// Add noise to the data-dependent epsilon, so that the value may be published once (docs/privacy.md, "Publication")
    #[arg(long, conflicts_with_all = ["any_votes", "one_direction", "orders", "bound"])]
    pub(crate) release: bool,
    /// With --release: noise from a seed; the value is then not private
    #[arg(long, value_name = "SEED", requires = "release")]
    pub(crate) simulation: Option<u64>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CalibrateOptions {
    /// Target epsilon for all queries together; with --ledger, an additional limit for all charges in the ledger
    #[arg(long, value_name = "E", required_unless_present = "ledger")]
    pub(crate) epsilon: Option<f64>,
    /// Target delta; with --ledger, the delta of --epsilon [default: the ledger's]
    #[arg(long, value_name = "D", value_parser = delta, requires = "epsilon", required_unless_present = "ledger")]
    pub(crate) delta: Option<Delta>,
    /// Find noise or queries that this ledger accepts, within its remaining budget and by its own rules
    #[arg(long, value_name = "FILE", conflicts_with_all = ["assume", "bound"])]
    pub(crate) ledger: Option<PathBuf>,
    /// Find noise or queries that a new ledger with a budget of --epsilon at --delta accepts
    #[arg(long, conflicts_with_all = ["ledger", "assume", "bound"])]
    pub(crate) budget: bool,
    /// Number of classes; two classes cost less than a larger number [default: any number]
    #[arg(long, value_name = "K")]
    pub(crate) classes: Option<usize>,
    /// Answer only where the largest noisy count reaches this many votes
    #[arg(long, value_name = "VOTES")]
    pub(crate) threshold: Option<f64>,
    #[command(flatten)]
    pub(crate) check: CheckOptions,
    /// Number of teachers; --honest-ratio is then rounded down to an integer number of teachers
    #[arg(long, value_name = "N")]
    pub(crate) teachers: Option<usize>,
    /// Number of queries, to find the noise; to find the number of queries, give --gamma, --sigma or --coins instead
    #[arg(
        long, value_name = "N", conflicts_with_all = ["gamma", "sigma", "coins"],
        required_unless_present_any = ["gamma", "sigma", "coins", "votes"]
    )]
    pub(crate) queries: Option<usize>,
    /// Take the numbers of teachers and queries from a file of votes, .npy or CSV; the claim does not depend on its votes
    #[arg(long, value_name = "FILE", conflicts_with_all = ["queries", "ledger", "budget"])]
    pub(crate) votes: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) form: FormOption,
    #[command(flatten)]
    pub(crate) noise: NoiseOptions,
    /// Assumption about the noise outside --honest-ratio: dropout, collusion or central; part of the claim
    #[arg(long, value_name = "WHAT", default_value = "dropout")]
    pub(crate) assume: Adversary,
    /// Formulas: paper or tight
    #[arg(long, value_name = "WHICH", default_value = "tight")]
    pub(crate) bound: Bound,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Origin of the noise of an audit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ShareKind {
    /// This project's exact integer shares (Gaussian noise has no shares: one exact discrete Gaussian draw)
    Exact,
    /// Shares truncated to integers as in the paper's published code: not as private as claimed
    Truncated,
}

#[derive(Debug, Args)]
pub(crate) struct AuditOptions {
    #[command(flatten)]
    pub(crate) mechanism: NoiseOptions,
    /// Delta of the claim that Gaussian, Skellam or binomial noise is tested against; ignored for Laplace noise
    #[arg(long, value_name = "D", default_value = "1e-2", value_parser = delta)]
    pub(crate) delta: Delta,
    /// Vote counts of one query, one for each class; or with --query, a file of votes, whose class with the most votes
    /// becomes the first. At the neighbour, one vote moves from the first class to the second
    #[arg(long, value_name = "N,N,...|FILE", default_value = "20,20", num_args = 1..)]
    pub(crate) votes: Vec<String>,
    /// With a file of votes: index of the query, from 0
    #[arg(long, value_name = "I")]
    pub(crate) query: Option<usize>,
    #[command(flatten)]
    pub(crate) form: FormOption,
    /// With a file of labels: the number of classes
    #[arg(long, value_name = "K")]
    pub(crate) classes: Option<usize>,
    /// Answer only where the largest noisy count reaches this many votes [default: the first class's votes]
    #[arg(long, value_name = "VOTES", conflicts_with = "no_threshold")]
    pub(crate) threshold: Option<i64>,
    /// Always answer
    #[arg(long)]
    pub(crate) no_threshold: bool,
    /// Number of runs for each of the two neighbouring votes
    #[arg(long, value_name = "N", default_value = "20000", value_parser = clap::value_parser!(u64).range(100..))]
    pub(crate) runs: u64,
    /// Confidence of the lower bound
    #[arg(long, value_name = "P", default_value = "0.999")]
    pub(crate) confidence: f64,
    /// Origin of the noise
    #[arg(long, value_name = "WHICH", default_value = "exact")]
    pub(crate) noise: ShareKind,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LedgerCommand {
    /// Start a ledger with a budget
    Create {
        /// The file to create, which must not exist
        file: PathBuf,
        /// Epsilon of the budget
        #[arg(long, value_name = "E")]
        epsilon: f64,
        /// Delta of the budget
        #[arg(long, value_name = "D", value_parser = delta)]
        delta: Delta,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Charge queries before they are answered; refused if they would exceed the budget
    Charge {
        /// The ledger
        file: PathBuf,
        /// Number of queries
        #[arg(long, value_name = "N")]
        queries: usize,
        /// Number of classes; two classes cost less than a larger number [default: any number]
        #[arg(long, value_name = "K")]
        classes: Option<usize>,
        /// Answer only where the largest noisy count reaches this many votes; with two classes a threshold costs more
        #[arg(long, value_name = "VOTES")]
        threshold: Option<f64>,
        /// Charge checks: only whether the largest count reaches --threshold is asked, with one draw of noise for all
        /// classes
        #[arg(long, requires = "threshold")]
        check: bool,
        #[command(flatten)]
        noise: NoiseOptions,
        /// Number of teachers; --honest-ratio is then rounded down to an integer number of teachers. With --classes, delta
        /// includes the distance of their sampler from exact noise
        #[arg(long, value_name = "N")]
        teachers: Option<usize>,
        /// Number of teachers of the party that the ledger is of. The ledger then also states the cost for all votes of the
        /// party together; the budget limits the cost for one teacher
        #[arg(long, value_name = "M", requires = "teachers", requires = "classes")]
        party_teachers: Option<usize>,
        #[command(flatten)]
        limit: MaxEpsilon,
        /// Purpose of the queries, in your own words
        #[arg(long, value_name = "TEXT", default_value = "")]
        label: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the budget, the charges and the spent epsilon
    Show {
        /// The ledger
        file: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Check every line and checksum
    Check {
        /// The ledger
        file: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum FigureCommand {
    /// Plot epsilon over gamma at one tau, with the limit (the paper's Figure 2)
    Gamma {
        /// Fraction of the teachers whose noise is present and secret (tau)
        #[arg(long, value_name = "TAU", default_value = "0.9", value_parser = ratio)]
        honest_ratio: HonestRatio,
        #[command(flatten)]
        figure: FigureOptions,
    },
    /// Plot epsilon over tau at one gamma (the paper's Figure 3)
    Tau {
        /// Inverse scale of the noise, per vote
        #[arg(long, value_name = "G", default_value = "0.1")]
        gamma: f64,
        #[command(flatten)]
        figure: FigureOptions,
    },
}

#[derive(Debug, Args)]
pub(crate) struct FigureOptions {
    #[command(flatten)]
    pub(crate) queries: QueryOptions,
    /// Noise of the tight curve: laplace or discrete-laplace
    #[arg(long, value_name = "KIND", default_value = "discrete-laplace")]
    pub(crate) mechanism: MechanismKind,
    /// Delta of all values
    #[arg(long, value_name = "D", default_value = "1e-5", value_parser = delta)]
    pub(crate) delta: Delta,
    /// Assumption of the tight curve: dropout or collusion
    #[arg(long, value_name = "WHAT", default_value = "dropout")]
    pub(crate) assume: Adversary,
    /// Formulas of the tight curve: outcome (takes a second) or tight (takes a minute)
    #[arg(long, value_name = "WHICH", default_value = "outcome")]
    pub(crate) bound: Bound,
    /// Write PREFIX.svg and PREFIX.csv [default: figure-gamma, figure-tau]
    #[arg(long, value_name = "PREFIX")]
    pub(crate) out: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

fn ratio(text: &str) -> Result<HonestRatio, String> {
    HonestRatio::new(number(text)?).map_err(|error| error.to_string())
}

pub(super) fn delta(text: &str) -> Result<Delta, String> {
    Delta::new(number(text)?).map_err(|error| error.to_string())
}

/// Reads an expected share of the teachers.
pub(super) fn agreement(text: &str) -> Result<Agreement, String> {
    Agreement::new(number(text)?).map_err(|error| error.to_string())
}

fn number(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| format!("expected a number, found {text:?}"))
}

fn rows(text: &str) -> Result<Range<usize>, String> {
    let expected = || format!("expected A..B with A below B, found {text:?}");
    let (from, to) = text.split_once("..").ok_or_else(expected)?;
    let (from, to) = (from.parse().map_err(|_| expected())?, to.parse().map_err(|_| expected())?);
    if from < to { Ok(from..to) } else { Err(expected()) }
}
