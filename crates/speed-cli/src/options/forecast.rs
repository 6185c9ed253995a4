//! Options of `speed plan`.

use std::path::PathBuf;

use clap::Args;
use speed_accountant::Delta;
use speed_accountant::forecast::Agreement;

use super::privacy::{FormOption, NoiseOptions, agreement, delta};

#[derive(Debug, Args)]
pub(crate) struct PlanOptions {
    /// Number of teachers; --honest-ratio is rounded down to an integer number of teachers
    #[arg(long, value_name = "N")]
    pub(crate) teachers: usize,
    /// Number of parties that the teachers belong to, as equal as possible: also print the epsilon of all votes of one party
    #[arg(long, value_name = "N")]
    pub(crate) parties: Option<usize>,
    /// Expected share of the teachers that vote for the right class, for example 0.9
    #[arg(
        long, value_name = "SHARE", value_parser = agreement, conflicts_with = "votes",
        required_unless_present = "votes", requires = "classes"
    )]
    pub(crate) agreement: Option<Agreement>,
    /// Votes of a public pilot, .npy or CSV: labels (teachers x queries) or histograms (queries x classes). They are scaled to
    /// --teachers, and the class with the most votes counts as right
    #[arg(long, value_name = "FILE")]
    pub(crate) votes: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) form: FormOption,
    /// Number of classes, which a file of labels does not contain
    #[arg(long, value_name = "K")]
    pub(crate) classes: Option<usize>,
    /// Number of queries [default: the number of queries of --votes]
    #[arg(long, value_name = "N", required_unless_present = "votes")]
    pub(crate) queries: Option<usize>,
    #[command(flatten)]
    pub(crate) noise: NoiseOptions,
    /// Find the least noise whose data-independent epsilon is at most this value, instead of --gamma, --sigma or --coins
    #[arg(long, value_name = "E", conflicts_with_all = ["gamma", "sigma", "coins"])]
    pub(crate) epsilon: Option<f64>,
    /// Delta of the claim
    #[arg(long, value_name = "D", default_value = "1e-5", value_parser = delta)]
    pub(crate) delta: Delta,
    /// Do not measure the time of keys, encryption, sum and argmax on this machine, which takes a few seconds
    #[arg(long)]
    pub(crate) without_times: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
