//! The limit on the price of answers, the same for rounds, runs and ledgers.

use clap::Args;

#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct MaxEpsilon {
    /// Refuse answers with real noise that may cost more than this epsilon together, whatever the votes are; without it, one answer may cost at
    /// most 10
    #[arg(long, value_name = "E", allow_negative_numbers = true)]
    pub(crate) max_epsilon: Option<f64>,
}
