//! The state of a run, read from its directory alone.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::atomic::write_passing;
use super::layout::{self, name_of};
use super::read::read_small;
use super::run::RunStore;
use super::shard::is_in_use;
use crate::error::ExperimentError;
use crate::progress::{RunView, StageStatus, StageView};
use crate::stages::Graph;

#[derive(Serialize, Deserialize)]
struct ProgressFile {
    /// The time when it was written, in seconds since 1970.
    written_at: f64,
    #[serde(flatten)]
    view: RunView,
}

fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Writes the progress of the process that works in a run's directory.
pub(crate) fn write_progress(path: &Path, view: RunView) -> Result<(), ExperimentError> {
    let progress = ProgressFile { written_at: since_1970().as_secs_f64(), view };
    let bytes = serde_json::to_vec(&progress).map_err(ExperimentError::unwritable(path))?;
    write_passing(path, &bytes)
}

/// The state of a run, read from its directory.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunStatus {
    /// The experiment's name.
    pub experiment: String,
    /// The run's id.
    pub run: String,
    /// The run's directory.
    pub folder: PathBuf,
    /// Whether the run is in progress.
    pub state: RunState,
    /// Seconds since the running process last wrote its progress; `None` without such a process.
    pub seconds_since_word: Option<f64>,
    /// Its stages, and the current work.
    #[serde(flatten)]
    pub view: RunView,
}

/// Whether a run is in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunState {
    /// A process works on the run.
    Running,
    /// The run's report exists.
    Finished,
    /// No process works on the run, and it is not finished.
    Stopped,
}

impl RunStatus {
    /// Reads the state of the run in `folder` without changing anything there.
    ///
    /// # Errors
    /// If its config cannot be read.
    pub fn read(folder: &Path) -> Result<Self, ExperimentError> {
        let config = RunStore::config_in(folder)?;
        let state = match (is_in_use(folder), layout::report_path(folder).exists()) {
            (true, _) => RunState::Running,
            (false, true) => RunState::Finished,
            (false, false) => RunState::Stopped,
        };
        let bytes = (state == RunState::Running).then(|| read_small(&layout::progress_path(folder)).ok()).flatten();
        let progress: Option<ProgressFile> = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let since = |file: &ProgressFile| (since_1970().as_secs_f64() - file.written_at).max(0.0);
        let seconds_since_word = progress.as_ref().map(since);
        let mut view = progress.map(|file| file.view).unwrap_or_default();
        let stage = |(name, is_recorded): (&str, bool)| {
            let is_done = state == RunState::Finished || is_recorded;
            let otherwise = if is_done { StageStatus::Done } else { StageStatus::Waiting };
            let reported = view.stages.iter().find(|stage| stage.name == name);
            StageView { name: name.to_owned(), state: reported.map_or(otherwise, |stage| stage.state) }
        };
        view.stages = Graph::for_config(&config).done_in(folder, &config).map(stage).collect();
        if let (Some(work), Some(seconds)) = (&mut view.work, seconds_since_word) {
            work.seconds += seconds;
        }
        Ok(Self {
            experiment: config.name.clone(),
            run: name_of(folder),
            folder: folder.to_path_buf(),
            state,
            seconds_since_word,
            view,
        })
    }
}
