//! Finished stages: their records and outputs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::fingerprint::Fingerprint;
use super::layout::{PARTS, stages};
use super::read::{is_one_name, read_output, read_small};
use crate::error::ExperimentError;

/// The file name of a finished stage's record. The record is written last, so the stage is done if it exists.
pub(super) const RECORD: &str = "stage.json";
/// The version of the record's format.
pub(super) const FORMAT: u32 = 1;

/// Minimum number of outputs per thread.
const FEW: usize = 4;

/// The record of a finished stage.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct StageRecord {
    /// The version of the record's format.
    pub(crate) format: u32,
    /// The stage's name.
    pub(crate) stage: String,
    /// The hash of the kind, the code version and the inputs.
    pub(crate) fingerprint: Fingerprint,
    /// The outputs, which the fingerprint determines, each with the SHA-256 of its content.
    pub(crate) outputs: BTreeMap<String, Fingerprint>,
    /// Other files that later steps read, each with the SHA-256 of its content. No fingerprint depends on them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) checked: BTreeMap<String, Fingerprint>,
    /// The wall-clock seconds of the attempt that finished.
    pub(crate) seconds: f64,
    /// The number of units that interrupted attempts had computed; `seconds` does not include them.
    pub(crate) resumed_units: usize,
    /// The time when it finished, in seconds since 1970.
    pub(crate) finished_at: u64,
}

impl StageRecord {
    /// Reads the record of the stage in `folder`, if it is finished.
    pub(crate) fn read(folder: &Path) -> Option<Self> {
        let record: Self = serde_json::from_slice(&read_small(&folder.join(RECORD)).ok()?).ok()?;
        (record.format == FORMAT).then_some(record)
    }

    /// Refuses a record of another format, which another version of the program wrote.
    pub(super) fn check_format(folder: &Path) -> Result<(), ExperimentError> {
        #[derive(Deserialize)]
        struct Format {
            format: u32,
        }
        let path = folder.join(RECORD);
        let record = read_small(&path).ok().and_then(|bytes| serde_json::from_slice::<Format>(&bytes).ok());
        match record.map(|record| record.format).filter(|found| *found != FORMAT) {
            None => Ok(()),
            found => Err(ExperimentError::other_format(path, FORMAT, found)),
        }
    }

    /// Returns the SHA-256 of a file, if the record lists it.
    pub(super) fn hash_of(&self, name: &str) -> Option<Fingerprint> {
        self.checked.get(name).or_else(|| self.outputs.get(name)).copied()
    }

    /// Returns the first listed file that differs from the record.
    fn damaged_file(&self, folder: &Path) -> Option<(PathBuf, &'static str)> {
        let outputs: Vec<(&String, &Fingerprint)> = self.outputs.iter().chain(&self.checked).collect();
        let first = |outputs: &[(&String, &Fingerprint)]| {
            outputs.iter().find_map(|(name, hash)| {
                let path = folder.join(name);
                match read_output(&path) {
                    Ok(bytes) if Fingerprint::of_bytes(&bytes) == **hash => None,
                    Ok(_) => Some((path, CHANGED)),
                    Err(_) => Some((path, MISSING)),
                }
            })
        };
        // The files of hundreds of teachers are read in parallel.
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(outputs.len() / FEW);
        if threads < 2 {
            return first(&outputs);
        }
        std::thread::scope(|scope| {
            let parts = outputs.chunks(outputs.len().div_ceil(threads));
            let parts: Vec<_> = parts.map(|part| scope.spawn(|| first(part))).collect();
            parts.into_iter().find_map(|part| part.join().unwrap_or_default())
        })
    }
}

/// Returns the hash of one of the inputs of the stage `stage` in the directory `run`; `None` if it has no such input, or no
/// list of inputs.
pub(crate) fn part_of_stage(run: &Path, stage: &str, part: &str) -> Option<Fingerprint> {
    let parts: BTreeMap<String, Fingerprint> =
        serde_json::from_slice(&read_small(&stages(run).join(stage).join(PARTS)).ok()?).ok()?;
    parts.get(part).copied()
}

/// The damage of an output that differs from its record, or does not exist.
pub(crate) const CHANGED: &str = "was changed";
const MISSING: &str = "is missing";

/// Reads a file of a finished stage of the run in the directory `run`, if the stage's record lists the file. The name of the
/// stage may be untrusted.
pub(crate) fn read_listed(run: &Path, stage: &str, name: &str) -> Result<Option<Vec<u8>>, (PathBuf, &'static str)> {
    if !is_one_name(stage) {
        return Ok(None);
    }
    let folder = stages(run).join(stage);
    let Some(hash) = StageRecord::read(&folder).and_then(|record| record.hash_of(name)) else { return Ok(None) };
    let path = folder.join(name);
    match read_output(&path) {
        Ok(bytes) if Fingerprint::of_bytes(&bytes) == hash => Ok(Some(bytes)),
        Ok(_) => Err((path, CHANGED)),
        Err(_) => Err((path, MISSING)),
    }
}

/// A finished stage and its directory.
#[derive(Clone, Debug)]
pub(crate) struct FinishedStage {
    pub(super) folder: PathBuf,
    pub(super) record: StageRecord,
}

impl FinishedStage {
    /// Finds the stage in `folder` if it is done with this fingerprint and its files match the record.
    pub(super) fn find(folder: &Path, fingerprint: Fingerprint) -> Option<Self> {
        Self::recorded(folder, fingerprint).filter(|stage| stage.record.damaged_file(folder).is_none())
    }

    /// Finds the stage like [`Self::find`], but by its record alone: the outputs may be damaged.
    pub(super) fn recorded(folder: &Path, fingerprint: Fingerprint) -> Option<Self> {
        let record = StageRecord::read(folder)?;
        (record.fingerprint == fingerprint).then(|| Self { folder: folder.to_path_buf(), record })
    }

    /// Returns the damage of the finished stage in `folder`: its record, or the first file that differs from the
    /// record. Returns `None` if the stage is not finished.
    pub(super) fn damage(folder: &Path, fingerprint: Fingerprint) -> Option<(PathBuf, &'static str)> {
        let path = folder.join(RECORD);
        if !path.exists() {
            return None;
        }
        match StageRecord::read(folder) {
            None => Some((path, "is not a record of a stage that this version reads")),
            Some(record) if record.fingerprint != fingerprint => {
                Some((path, "belongs to other votes, queries or settings, or to another version"))
            }
            Some(record) => record.damaged_file(folder),
        }
    }

    /// Returns the path of an output or side file.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Reads an output or side file.
    pub(crate) fn read(&self, name: &str) -> Result<Vec<u8>, ExperimentError> {
        let path = self.path(name);
        read_output(&path).map_err(ExperimentError::io("read", path))
    }

    /// Reads a JSON output or side file.
    pub(crate) fn read_json<T: DeserializeOwned>(&self, name: &str) -> Result<T, ExperimentError> {
        let bytes = self.read(name)?;
        serde_json::from_slice(&bytes)
            .map_err(|error| ExperimentError::not_ours(self.path(name), &bytes, &error, &self.record.stage))
    }

    /// Returns one hash over all outputs, for the fingerprints of the stages that read them.
    pub(crate) fn outputs_hash(&self) -> Fingerprint {
        Fingerprint::of(&serde_json::json!(self.record.outputs))
    }
}
