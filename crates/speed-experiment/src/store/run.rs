//! A run's folder: `RESULTS/EXPERIMENT/RUN-ID/{config.toml, env.json, stages/, tables/, run.lock}`.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::atomic::sweep;
use super::stage::{NOISE_KEY, Stage, StageFolder, StageRemains, StageState, set_aside, write_json};
use super::{Fingerprint, write_atomic};
use crate::ExperimentError;
use crate::config::Config;
use crate::config::Source;
use crate::environment::Environment;

/// The folder of one run, locked against a second process until dropped.
pub struct RunStore {
    folder: PathBuf,
    forced: Vec<String>,
    _lock: File,
}

impl RunStore {
    /// Opens or creates the folder of `config` below `results`, takes its lock, and saves the resolved config and
    /// `environment`, the machine's description, before any work starts.
    ///
    /// # Errors
    /// If another process works there, the folder belongs to another config, or it cannot be written.
    pub fn open(results: &Path, config: &Config, environment: &Environment) -> Result<Self, ExperimentError> {
        let folder = Self::folder_of(results, config);
        fs::create_dir_all(folder.join("stages")).map_err(ExperimentError::io("create", &folder))?;
        let lock = lock(&folder)?;
        sweep(&folder, 2)?;
        let path = folder.join("config.toml");
        let text = config.to_toml();
        match fs::read_to_string(&path) {
            Ok(found) if found != text => {
                return Err(ExperimentError::Results {
                    path,
                    message: "this results folder belongs to another config: move it away, or use another --results"
                        .into(),
                });
            }
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => write_atomic(&path, text.as_bytes())?,
            Err(error) => return Err(ExperimentError::io("read", path)(error)),
        }
        write_json(&folder.join("env.json"), environment)?;
        Ok(Self { folder, forced: Vec::new(), _lock: lock })
    }

    /// Where the run of `config` lives: its id is the beginning of the config's fingerprint.
    #[must_use]
    pub fn folder_of(results: &Path, config: &Config) -> PathBuf {
        let id = Fingerprint::of_bytes(config.to_toml().as_bytes());
        results.join(&config.name).join(id.short())
    }

    /// The run's folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The stage `name` made from `fingerprint`: done here, done by another run of the experiment or under another name
    /// of the same `kind` (then it is copied), or to be done. The `earlier` version of the fingerprint of a name serves as well.
    ///
    /// # Errors
    /// If the folder cannot be written.
    pub(crate) fn stage(
        &self,
        kind: &str,
        name: &str,
        fingerprint: &Fingerprint,
        earlier: &dyn Fn(&str) -> Option<Fingerprint>,
    ) -> Result<StageState, ExperimentError> {
        let folder = self.stage_folder(name);
        if let Some(stage) = self.done(kind, name, fingerprint, earlier) {
            if stage.folder() == folder {
                return Ok(StageState::Done(stage));
            }
            if folder.exists() {
                set_aside(&folder)?;
            }
            copy_folder(stage.folder(), &folder)?;
            if let Some(stage) = Stage::find(&folder, &stage.record.fingerprint) {
                return Ok(StageState::Done(stage));
            }
        }
        self.unfinished(name, fingerprint).map(StageState::Outstanding)
    }

    /// The folder of a stage to work in.
    pub(crate) fn unfinished(&self, name: &str, fingerprint: &Fingerprint) -> Result<StageFolder, ExperimentError> {
        StageFolder::open(self.stage_folder(name), name, fingerprint)
    }

    /// Sets aside what the stage left in this run.
    pub(crate) fn set_aside(&self, name: &str) -> Result<(), ExperimentError> {
        set_aside(&self.stage_folder(name))
    }

    /// Sets aside what the stages called `name`, or `name-...`, left here, and lets no other run answer for them.
    ///
    /// # Errors
    /// If a folder cannot be renamed.
    pub fn force(&mut self, name: &str) -> Result<(), ExperimentError> {
        self.forced.push(name.to_owned());
        for stage in self.stage_names() {
            // Answers that are paid and not given yet are given first.
            if self.is_forced(&stage) && self.remains_of(&stage).noise_key().is_none() {
                set_aside(&self.stage_folder(&stage))?;
            }
        }
        Ok(())
    }

    /// Whether the stage is to be done again.
    #[must_use]
    pub fn is_forced(&self, stage: &str) -> bool {
        self.forced.iter().any(|name| is_called(stage, name))
    }

    /// Names of the stage folders that are there.
    #[must_use]
    pub fn stage_names(&self) -> Vec<String> {
        names_in(&self.folder.join("stages")).into_iter().filter(|name| !name.contains('.')).collect()
    }

    /// Writes a table or figure of the run, replacing that of an earlier report of the same run.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), ExperimentError> {
        let path = self.folder.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(ExperimentError::io("create", parent))?;
        }
        write_atomic(&path, bytes)
    }

    fn stage_folder(&self, name: &str) -> PathBuf {
        self.folder.join("stages").join(name)
    }

    /// The finished stage `name` of this run, or another of its kind with the same fingerprint in any run of the experiment,
    /// unless it is forced.
    pub(crate) fn done(
        &self,
        kind: &str,
        name: &str,
        fingerprint: &Fingerprint,
        earlier: &dyn Fn(&str) -> Option<Fingerprint>,
    ) -> Option<Stage> {
        let find = |folder: &Path| {
            let name = folder.file_name().unwrap_or_default().to_string_lossy();
            Stage::find(folder, fingerprint).or_else(|| Stage::find(folder, &earlier(&name)?))
        };
        find(&self.stage_folder(name)).or_else(|| {
            let remains = if self.is_forced(name) { Vec::new() } else { self.remains(kind) };
            remains.iter().find_map(|remains| find(remains.folder()))
        })
    }

    /// What stages of this kind left, in every run of the experiment, this one's first.
    pub(crate) fn remains(&self, kind: &str) -> Vec<StageRemains> {
        let is_current =
            |remains: &StageRemains| !remains.folder().file_name().unwrap_or_default().to_string_lossy().contains('.');
        self.all_remains(kind).into_iter().filter(is_current).collect()
    }

    /// The same with what was set aside.
    pub(crate) fn all_remains(&self, kind: &str) -> Vec<StageRemains> {
        let experiment = self.folder.parent().unwrap_or(&self.folder);
        let mut runs: Vec<PathBuf> = names_in(experiment).into_iter().map(|run| experiment.join(run)).collect();
        runs.sort_by_key(|run| *run != self.folder);
        let stages = runs.into_iter().flat_map(|run| {
            let stages = run.join("stages");
            let names = names_in(&stages).into_iter().filter(|name| is_called(name, kind));
            names.map(|name| StageRemains(stages.join(name))).collect::<Vec<_>>()
        });
        stages.collect()
    }

    /// What the stage `name` left in this run.
    pub(crate) fn remains_of(&self, name: &str) -> StageRemains {
        StageRemains(self.stage_folder(name))
    }
}

/// Whether `name` means `stage`: its whole name, or its kind, the part before the first `-`, as in `student` for every
/// student. `aggregate-a` does not mean `aggregate-a-b`.
pub(crate) fn is_called(stage: &str, name: &str) -> bool {
    stage == name || !name.contains('-') && stage.strip_prefix(name).is_some_and(|rest| rest.starts_with('-'))
}

fn lock(folder: &Path) -> Result<File, ExperimentError> {
    let path = folder.join("run.lock");
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .map_err(ExperimentError::io("open", &path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(ExperimentError::Results {
            path: folder.to_path_buf(),
            message: "another `speed run` works in this folder: wait for it, or use another --results".into(),
        }),
        Err(TryLockError::Error(error)) => Err(ExperimentError::io("lock", path)(error)),
    }
}

fn names_in(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// Copies files next to the destination and renames the folder into place, so that it appears whole.
fn copy_folder(from: &Path, to: &Path) -> Result<(), ExperimentError> {
    let parent = to.parent().unwrap_or_else(|| Path::new("."));
    let copy = || -> std::io::Result<()> {
        let temporary = tempfile::Builder::new().prefix(".copying-").tempdir_in(parent)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            if entry.file_name() == NOISE_KEY {
                continue;
            }
            fs::copy(entry.path(), temporary.path().join(entry.file_name()))?;
        }
        fs::rename(temporary.keep(), to)
    };
    copy().map_err(ExperimentError::io("copy", from))
}

/// One line of `speed list`.
#[derive(Clone, Debug, Serialize)]
pub struct RunSummary {
    /// Experiment name.
    pub experiment: String,
    /// Run id.
    pub run: String,
    /// The run's folder.
    pub folder: PathBuf,
    /// Whether its table is there.
    pub finished: bool,
    /// Whether noise and keys came from a seed.
    pub simulation: bool,
    /// Stages that are done.
    pub stages_done: usize,
}

/// The runs below a results folder, by experiment and id. A folder without a readable config is no run.
///
pub fn list_runs(results: &Path) -> Vec<RunSummary> {
    let mut runs = Vec::new();
    for experiment in names_in(results) {
        for run in names_in(&results.join(&experiment)) {
            let folder = results.join(&experiment).join(&run);
            let Ok(source) = Source::read(&folder.join("config.toml")) else { continue };
            let Ok(config) = Config::load(&source) else { continue };
            let stages = folder.join("stages");
            let stages_done = names_in(&stages)
                .iter()
                .filter(|name| !name.contains('.') && stages.join(name).join("stage.json").exists())
                .count();
            runs.push(RunSummary {
                experiment: experiment.clone(),
                run,
                finished: folder.join("tables/report.json").exists(),
                simulation: config.is_simulation(),
                stages_done,
                folder,
            });
        }
    }
    runs
}
