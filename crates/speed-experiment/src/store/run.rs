//! A run's directory. Either one process works there on all stages, or several shards do, each with a lock.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::report::Environment;

use super::atomic::{WRITING, remove_unfinished, write_atomic, write_json};
use super::fingerprint::{Fingerprint, Identity};
use super::folder::StageFolder;
use super::layout::{self, folders_in, is_called, name_of};
use super::noise_key;
use super::read::{is_one_name, read_small};
use super::record::{FinishedStage, RECORD, StageRecord, StageRemains};
use super::shard::{Lock, Shard};
use crate::config::{Config, Source};
use crate::error::ExperimentError;

/// The directory of one run, locked until dropped: against every other process, or, by a shard, against the same shard and
/// processes that work on all stages.
pub(crate) struct RunStore {
    folder: PathBuf,
    is_new: bool,
    forced: Vec<String>,
    access: Access,
}

/// How a process works in a run's directory.
enum Access {
    /// The process works on all stages and holds the run's lock. Processes on other machines may not see this lock.
    Whole { _lock: Lock },
    /// The process works on units of one stage. It sets nothing aside and begins no other stage.
    Shard {
        shard: Shard,
        /// The shard's lock. It is taken, and the directory is created, when the first unit is begun.
        lock: Mutex<Option<Lock>>,
        config: String,
        /// Whether it may resume the work of another program.
        any_program: bool,
    },
}

pub(crate) enum StageState {
    /// The stage is done with this fingerprint, and every output exists unchanged.
    Done(FinishedStage),
    /// The stage is not done; some of its units may be.
    Outstanding(StageFolder),
}

/// Makes the directory of the stages below that of a run. Only its owner may enter it, because the stages hold teachers, votes and figures that
/// depend on them. That of a simulation may have them from a run with real noise.
fn make_stages(run: &Path) -> Result<(), ExperimentError> {
    let stages = layout::stages(run);
    fs::create_dir_all(&stages).map_err(ExperimentError::io("create", &stages))?;
    fs::set_permissions(&stages, fs::Permissions::from_mode(0o700)).map_err(ExperimentError::io("protect", &stages))
}

impl RunStore {
    /// Opens or creates the directory of `config` below `results` and takes its lock. Saves the resolved config and
    /// `environment`, the description of the machine, before any work starts.
    /// Fails if another process works there, the directory belongs to another config, or it cannot be written.
    pub(crate) fn open(results: &Path, config: &Config, environment: &Environment) -> Result<Self, ExperimentError> {
        let folder = Self::folder_of(results, config);
        let is_new = !folder.exists();
        make_stages(&folder)?;
        let lock = Lock::try_take(folder.join(layout::LOCK), &folder)?;
        refuse_shards(&folder)?;
        remove_unfinished(&folder, 2)?;
        keep_config(&folder, &config.to_toml())?;
        write_json(&folder.join(layout::ENVIRONMENT), environment)?;
        Ok(Self { folder, is_new, forced: Vec::new(), access: Access::Whole { _lock: lock } })
    }

    /// Fails early, before inputs are read, if [`Self::open`] would fail because of the directory. Creates nothing.
    /// Fails if the results are not a directory, or the run's directory belongs to another config or is in use.
    pub(crate) fn expect_free(results: &Path, config: &Config) -> Result<(), ExperimentError> {
        layout::expect_folder(results)?;
        let (folder, text) = (Self::folder_of(results, config), config.to_toml());
        let path = folder.join(layout::CONFIG);
        if let Ok(found) = read_small(&path)
            && !text.as_bytes().starts_with(&found)
        {
            return Err(other_text(path, &text, &found));
        }
        if Lock::is_held(&folder.join(layout::LOCK)) {
            return Err(ExperimentError::in_use(folder));
        }
        refuse_shards(&folder)
    }

    /// Removes the directory of a run that failed before it began a stage, if this process created the directory.
    pub(crate) fn remove_if_unused(self) {
        if !self.is_new || !folders_in(&layout::stages(&self.folder)).is_empty() {
            return;
        }
        // If there are other files, they stay, and so does the directory.
        for name in [layout::CONFIG, layout::ENVIRONMENT, layout::LOCK] {
            let _ = fs::remove_file(self.folder.join(name));
        }
        for folder in [layout::stages(&self.folder), self.folder.clone(), self.experiment().to_path_buf()] {
            let _ = fs::remove_dir(folder);
        }
    }

    /// Opens the directory for a shard, which works there in parallel with others. Nothing is written yet.
    /// `any_program` allows resuming the work of another program.
    pub(crate) fn join(results: &Path, config: &Config, shard: Shard, any_program: bool) -> Self {
        let access = Access::Shard { shard, lock: Mutex::default(), config: config.to_toml(), any_program };
        Self { folder: Self::folder_of(results, config), is_new: false, forced: Vec::new(), access }
    }

    /// Creates the directory of `config`, writes the resolved config into it, and returns its path. Takes no lock and
    /// begins no stage.
    pub(crate) fn begin(results: &Path, config: &Config) -> Result<PathBuf, ExperimentError> {
        let folder = Self::folder_of(results, config);
        fs::create_dir_all(&folder).map_err(ExperimentError::io("create", &folder))?;
        keep_config(&folder, &config.to_toml())?;
        Ok(folder)
    }

    /// Returns the directory of the stage `name` of the run in `folder`, finished or not.
    pub(crate) fn remains_in(folder: &Path, name: &str) -> StageRemains {
        StageRemains(layout::stages(folder).join(name))
    }

    /// Returns whether this process is a shard, which reads the stages before its own, and does not run them.
    pub(crate) fn is_shard(&self) -> bool {
        matches!(self.access, Access::Shard { .. })
    }

    /// Returns the directory of the run of `config`. The run's id is the beginning of the config's fingerprint.
    pub(crate) fn folder_of(results: &Path, config: &Config) -> PathBuf {
        results.join(&config.name).join(Self::id_of(config))
    }

    /// Reads the config of the run in `folder`. The run's id is derived from the bytes of this file.
    pub(crate) fn config_in(folder: &Path) -> Result<Config, ExperimentError> {
        let path = folder.join(layout::CONFIG);
        let (source, id) = (Source::read(&path)?, name_of(folder));
        let found = Fingerprint::of_bytes(source.text().as_bytes()).short();
        // A directory whose name is not an id was named by a person.
        if layout::is_id(&id) && found != id {
            return Err(other_config(path, &id, &found));
        }
        Config::load(&source)
    }

    pub(crate) fn has_stages(results: &Path, config: &Config) -> bool {
        !folders_in(&layout::stages(&Self::folder_of(results, config))).is_empty()
    }

    pub(crate) fn id_of(config: &Config) -> String {
        Fingerprint::of_bytes(config.to_toml().as_bytes()).short()
    }

    /// Returns the keys in which `config` differs from the config of the run `id` of the same experiment; `None` if
    /// that run does not exist.
    pub(crate) fn differences(results: &Path, config: &Config, id: &str) -> Option<Vec<String>> {
        let folder = results.join(&config.name).join(is_one_name(id).then_some(id)?);
        let there = read_small(&folder.join(layout::CONFIG)).ok()?;
        let there = std::str::from_utf8(&there).ok()?.parse().ok()?;
        let here = config.to_toml().parse().ok()?;
        let mut differs = Vec::new();
        differing_keys("", &toml::Value::Table(here), &toml::Value::Table(there), &mut differs);
        Some(differs)
    }

    /// Returns whether the stage `name` of the run in `folder` is finished, according to its record alone.
    pub(crate) fn is_finished(folder: &Path, name: &str) -> bool {
        layout::stages(folder).join(name).join(RECORD).exists()
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn experiment(&self) -> &Path {
        self.folder.parent().unwrap_or(&self.folder)
    }

    pub(crate) fn id(&self) -> String {
        name_of(&self.folder)
    }

    /// Finds the finished stage in this run, in another run of the experiment, or under another name of the same kind. A
    /// stage from elsewhere is copied into this run, and an existing directory of this name is set aside; a shard uses
    /// the stage where it is, without a copy. If the stage is not finished anywhere, opens its directory for work.
    pub(crate) fn stage(&self, identity: &Identity) -> Result<StageState, ExperimentError> {
        let folder = self.stage_folder(&identity.name);
        if let Some(stage) = self.done(identity) {
            if stage.folder == folder || self.is_shard() {
                return Ok(StageState::Done(stage));
            }
            if folder.exists() {
                self.set_aside(&identity.name)?;
            }
            copy_folder(&stage.folder, &folder)?;
            if let Some(stage) = FinishedStage::find(&folder, stage.record.fingerprint) {
                return Ok(StageState::Done(stage));
            }
        }
        self.unfinished(identity).map(StageState::Outstanding)
    }

    /// Opens the directory of an unfinished stage for work.
    /// Fails if the directory cannot be written, or, in a shard, another process works on the same units.
    pub(crate) fn unfinished(&self, identity: &Identity) -> Result<StageFolder, ExperimentError> {
        let folder = self.stage_folder(&identity.name);
        match &self.access {
            Access::Whole { .. } => StageFolder::open(folder, identity),
            Access::Shard { shard, lock, config, any_program } => {
                let mut lock = lock.lock().unwrap_or_else(PoisonError::into_inner);
                if lock.is_none() {
                    make_stages(&self.folder)?;
                    keep_config(&self.folder, config)?;
                    *lock = Some(shard.lock(&self.folder)?);
                }
                drop(lock);
                StageFolder::join(folder, identity, *any_program)
            }
        }
    }

    /// Renames the stage's directory in this run, so that its content is kept but not used.
    pub(crate) fn set_aside(&self, name: &str) -> Result<(), ExperimentError> {
        self.remains_of(name).set_aside().map(drop)
    }

    /// Finds the finished stage by its record alone, in any run of the experiment. Its outputs are not checked.
    pub(crate) fn recorded(&self, identity: &Identity) -> Option<FinishedStage> {
        let recorded = |folder: &Path| FinishedStage::recorded(folder, identity.fingerprint);
        let own = recorded(&self.stage_folder(&identity.name));
        own.or_else(|| self.remains(&identity.kind).iter().find_map(|remains| recorded(remains.folder())))
    }

    /// Sets aside the directories of the stages called `name`, or `name-...`, and no longer accepts these stages from
    /// other runs.
    pub(crate) fn force(&mut self, name: &str) -> Result<(), ExperimentError> {
        self.forced.push(name.to_owned());
        for stage in self.stage_names() {
            // A stage with a noise key has charged answers that are not given yet. They must be given first.
            if self.is_forced(&stage) && !self.remains_of(&stage).has_noise_key() {
                self.set_aside(&stage)?;
            }
        }
        Ok(())
    }

    pub(crate) fn is_forced(&self, stage: &str) -> bool {
        self.forced.iter().any(|name| is_called(stage, name))
    }

    pub(crate) fn stage_names(&self) -> Vec<String> {
        folders_in(&layout::stages(&self.folder)).into_iter().filter(|name| layout::is_current(name)).collect()
    }

    /// Returns the records of all finished stages, in the order of their completion.
    pub(crate) fn records(&self) -> Vec<StageRecord> {
        let names = self.stage_names();
        let mut records: Vec<StageRecord> =
            names.iter().filter_map(|name| StageRecord::read(&self.stage_folder(name))).collect();
        records.sort_by_key(|record| record.finished_at);
        records
    }

    fn stage_folder(&self, name: &str) -> PathBuf {
        layout::stages(&self.folder).join(name)
    }

    /// Finds the finished stage in this run. Otherwise, unless the stage is forced, finds a finished stage of the same kind
    /// and fingerprint in any run of the experiment.
    pub(crate) fn done(&self, identity: &Identity) -> Option<FinishedStage> {
        let find = |folder: &Path| FinishedStage::find(folder, identity.fingerprint);
        find(&self.stage_folder(&identity.name)).or_else(|| {
            let remains = if self.is_forced(&identity.name) { Vec::new() } else { self.remains(&identity.kind) };
            remains.iter().find_map(|remains| find(remains.folder()))
        })
    }

    /// Returns the directories of the stages of this kind in all runs of the experiment, with this run first.
    pub(crate) fn remains(&self, kind: &str) -> Vec<StageRemains> {
        let is_current = |stage: &StageRemains| layout::is_current(&name_of(stage.folder()));
        self.all_remains(kind).into_iter().filter(is_current).collect()
    }

    /// Returns the directories of [`Self::remains`] and the directories of this kind that were set aside.
    pub(crate) fn all_remains(&self, kind: &str) -> Vec<StageRemains> {
        let mut runs = layout::paths_in(self.experiment());
        runs.sort_by_key(|run| *run != self.folder);
        let stages = runs.into_iter().flat_map(|run| layout::paths_in(&layout::stages(&run)));
        stages.filter(|stage| is_called(&name_of(stage), kind)).map(StageRemains).collect()
    }

    pub(crate) fn remains_of(&self, name: &str) -> StageRemains {
        StageRemains(self.stage_folder(name))
    }
}

/// Collects the dotted keys at which two values differ.
fn differing_keys(place: &str, here: &toml::Value, there: &toml::Value, differs: &mut Vec<String>) {
    let below = |key: &str| if place.is_empty() { key.to_owned() } else { format!("{place}.{key}") };
    match (here, there) {
        (toml::Value::Table(here), toml::Value::Table(there)) => {
            let keys = here.keys().chain(there.keys().filter(|key| !here.contains_key(*key)));
            for key in keys {
                match (here.get(key), there.get(key)) {
                    (Some(here), Some(there)) => differing_keys(&below(key), here, there, differs),
                    _ => differs.push(below(key)),
                }
            }
        }
        (toml::Value::Array(here), toml::Value::Array(there)) if here.len() == there.len() => {
            for (index, (here, there)) in here.iter().zip(there).enumerate() {
                differing_keys(&below(&index.to_string()), here, there, differs);
            }
        }
        _ if here == there => {}
        // A key in a directory's config is untrusted text.
        _ => differs.push(place.escape_debug().to_string()),
    }
}

fn refuse_shards(run: &Path) -> Result<(), ExperimentError> {
    Shard::at_work(run).first().map_or(Ok(()), |shard| Err(shard.in_use(run)))
}

/// Writes the config of a run into its directory if the config is missing, or truncated by a crash. The name of the
/// directory identifies the run, so a truncated config is safe to replace.
fn keep_config(folder: &Path, text: &str) -> Result<(), ExperimentError> {
    let path = folder.join(layout::CONFIG);
    match read_small(&path) {
        Ok(found) if found == text.as_bytes() => Ok(()),
        Ok(found) if text.as_bytes().starts_with(&found) => write_atomic(&path, text.as_bytes()),
        Ok(found) => Err(other_text(path, text, &found)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => write_atomic(&path, text.as_bytes()),
        Err(error) => Err(ExperimentError::io("read", path)(error)),
    }
}

fn other_text(path: PathBuf, expected: &str, found: &[u8]) -> ExperimentError {
    let id = |bytes: &[u8]| Fingerprint::of_bytes(bytes).short();
    other_config(path, &id(expected.as_bytes()), &id(found))
}

fn other_config(path: PathBuf, expected: &str, found: &str) -> ExperimentError {
    ExperimentError::results(
        path,
        format_args!(
            "this results folder belongs to another config, or this file was changed: expected a config with a SHA-256 that begins with \
             {expected}, found {found}: move the folder away, or use another --results"
        ),
    )
}

/// Copies files next to the destination and renames the directory into place, so that it appears atomically.
fn copy_folder(from: &Path, to: &Path) -> Result<(), ExperimentError> {
    let parent = to.parent().unwrap_or_else(|| Path::new("."));
    let copy = || -> std::io::Result<()> {
        let temporary = tempfile::Builder::new().prefix(super::atomic::COPYING).tempdir_in(parent)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            if entry.file_name() == noise_key::FILE || entry.file_name().to_string_lossy().starts_with(WRITING) {
                continue;
            }
            // Files are replaced and never modified, so two stages can share one by a hard link; some file systems have
            // no links.
            let (from, to) = (entry.path(), temporary.path().join(entry.file_name()));
            fs::hard_link(&from, &to).or_else(|_| fs::copy(&from, &to).map(drop))?;
        }
        fs::rename(temporary.keep(), to)
    };
    copy().map_err(ExperimentError::io("copy", from))
}
