//! The processes that work on a stage's units, for display only: nothing is leased or taken over.

use std::path::Path;
use std::time::SystemTime;

use serde::Serialize;

use super::holder::{ENDING, Holder, leases_in};

/// A unit that a process has leased.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Worker {
    /// The unit.
    pub unit: String,
    /// The process, and its machine.
    pub by: String,
    /// Seconds since the process last gave a sign of life, by the clocks of both machines; `None` without any sign.
    pub seconds_since_sign: Option<f64>,
    /// True if it was a process of this machine and has ended; then any process can take the unit over.
    pub is_gone: bool,
}

/// Lists the leases in the directory of a stage.
pub(crate) fn workers(folder: &Path) -> Vec<Worker> {
    let me = Holder::this_process().unwrap_or_default();
    let mut all: Vec<Worker> = leases_in(folder)
        .into_iter()
        .map(|(path, holder)| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            Worker {
                unit: name.strip_suffix(ENDING).unwrap_or(&name).to_owned(),
                by: holder.to_string(),
                seconds_since_sign: holder
                    .last_beat(&path)
                    .map(|at| SystemTime::now().duration_since(at).unwrap_or_default().as_secs_f64()),
                is_gone: holder.is_dead(&me),
            }
        })
        .collect();
    all.sort_by(|a, b| a.unit.cmp(&b.unit));
    all
}
