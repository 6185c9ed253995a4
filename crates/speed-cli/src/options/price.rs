//! The limit on the price of answers, the same for rounds, runs and ledgers.

use clap::Args;

#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct MaxEpsilon {
    /// Refuse answers with real noise if their total data-independent epsilon exceeds this value; without it, the limit
    /// is 10 for a single answer
    #[arg(long, value_name = "E", allow_negative_numbers = true)]
    pub(crate) max_epsilon: Option<f64>,
}
