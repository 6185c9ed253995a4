//! The runs below a folder of results.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::layout::{self, folders_in};
use super::run::RunStore;
use crate::config::{Config, RowConfig, Source};

/// A run, as `speed list` shows it.
#[derive(Clone, Debug, Serialize)]
pub struct RunSummary {
    /// Experiment name.
    pub experiment: String,
    /// Run id.
    pub run: String,
    /// The run's folder.
    pub folder: PathBuf,
    /// True once its table is there.
    pub finished: bool,
    /// True where noise and keys came from a seed.
    pub simulation: bool,
    /// The noise of its answers.
    pub noise: RunNoise,
    /// Stages that are done.
    pub stages_done: usize,
}

/// The noise of a run's answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunNoise {
    /// No row has any.
    None,
    /// From a seed: private against nobody.
    Simulation,
    /// From the operating system.
    Real,
}

impl RunNoise {
    fn of(config: &Config) -> Self {
        Self::new(config.rows.iter().any(RowConfig::is_noisy), config.is_simulation())
    }

    /// The noise of a run some of whose rows have any, or none has.
    pub(crate) fn new(is_noisy: bool, is_simulation: bool) -> Self {
        match (is_noisy, is_simulation) {
            (false, _) => Self::None,
            (true, true) => Self::Simulation,
            (true, false) => Self::Real,
        }
    }
}

impl fmt::Display for RunNoise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "no noise",
            Self::Simulation => "simulation",
            Self::Real => "real noise",
        })
    }
}

/// Lists the runs below a results folder, by experiment and id, and then the published ones. A folder without a readable config
/// is no run.
#[must_use]
pub fn list_runs(results: &Path) -> Vec<RunSummary> {
    runs_below(results).into_iter().chain(runs_below(&results.join(layout::PUBLISHED))).collect()
}

fn runs_below(results: &Path) -> Vec<RunSummary> {
    let experiments = folders_in(results).into_iter();
    let runs = experiments.flat_map(|experiment| {
        let runs = folders_in(&results.join(&experiment)).into_iter();
        runs.filter_map(|run| summary(results, &experiment, run)).collect::<Vec<_>>()
    });
    runs.collect()
}

fn summary(results: &Path, experiment: &str, run: String) -> Option<RunSummary> {
    let folder = results.join(experiment).join(&run);
    let config = Config::load(&Source::read(&folder.join(layout::CONFIG)).ok()?).ok()?;
    let names = folders_in(&layout::stages(&folder));
    let is_done = |name: &&String| layout::is_current(name) && RunStore::is_finished(&folder, name);
    Some(RunSummary {
        experiment: experiment.to_owned(),
        run,
        finished: layout::report_path(&folder).exists(),
        simulation: config.is_simulation(),
        noise: RunNoise::of(&config),
        stages_done: names.iter().filter(is_done).count(),
        folder,
    })
}
