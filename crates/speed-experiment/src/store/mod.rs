//! The run store: one folder a run, stages with fingerprints, atomic files, a lock.

mod atomic;
mod fingerprint;
mod run;
mod stage;

pub use atomic::write_atomic;
pub(crate) use atomic::{sweep, write_secret};
pub use fingerprint::Fingerprint;
pub(crate) use run::is_called;
pub use run::{RunStore, RunSummary, list_runs};
pub(crate) use stage::StageRemains;
pub use stage::{Stage, StageFolder, StageRecord, StageState};
