//! The options of a run.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use speed_accountant::PriceLimit;

/// The options of a run that its config does not contain; none of them changes results.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// Directory of all results.
    pub results: PathBuf,
    /// Directory of datasets, searched first.
    pub datasets: Option<PathBuf>,
    /// Threads to use.
    pub threads: NonZeroUsize,
    /// Finished stages to repeat; their previous outputs are set aside.
    pub force: Vec<String>,
    /// The limit on the price of the answers.
    pub limit: PriceLimit,
    /// Resume trainings that another kind of machine started; the report names both kinds.
    pub mix_machines: bool,
    /// How long a shard waits for an unfinished earlier stage, because a network file system may show other machines'
    /// writes late.
    pub latency_wait: Duration,
}
