//! The options of a run.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use speed_accountant::PriceLimit;

/// The choices of a run beside its config; none of them changes results.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// Folder of all results.
    pub results: PathBuf,
    /// Folder of datasets, looked at first.
    pub datasets: Option<PathBuf>,
    /// Threads to use.
    pub threads: NonZeroUsize,
    /// Stages to do again although they are done; what they left is set aside.
    pub force: Vec<String>,
    /// The limit on the price of the answers, which comes before that of the config.
    pub limit: PriceLimit,
    /// Go on with trainings that another kind of machine began; the report names both.
    pub mix_machines: bool,
    /// How long a shard waits for an earlier stage that it does not find done: a file system may show late what another machine wrote.
    pub latency_wait: Duration,
}
