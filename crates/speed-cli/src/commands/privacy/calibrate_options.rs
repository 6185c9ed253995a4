//! The options of `speed calibrate`.

use std::path::PathBuf;

use clap::Args;
use speed_accountant::{Adversary, Bound, Delta};

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
