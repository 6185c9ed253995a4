//! Finished stages: the record that says that a stage is done, and its outputs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::fingerprint::Fingerprint;
use super::read::{read_output, read_small};
use crate::error::{Damage, ExperimentError, ResultsFault};

/// The record of a finished stage; the file is written last, its presence means done.
pub(super) const RECORD: &str = "stage.json";
/// Version of the record.
pub(super) const FORMAT: u32 = 1;

/// Outputs that one thread reads as soon as two would.
const FEW: usize = 4;

/// The record that a finished stage leaves.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct StageRecord {
    /// Version of this record.
    pub(crate) format: u32,
    /// Name of the stage.
    pub(crate) stage: String,
    /// The hash of kind, code version and inputs.
    pub(crate) fingerprint: Fingerprint,
    /// Every output that is determined by the fingerprint, with the SHA-256 of its content.
    pub(crate) outputs: BTreeMap<String, Fingerprint>,
    /// Wall-clock seconds of the attempt that finished.
    pub(crate) seconds: f64,
    /// Units of work that earlier, interrupted attempts had left; `seconds` does not count them.
    pub(crate) resumed_units: usize,
    /// Seconds since 1970 when it finished.
    pub(crate) finished_at: u64,
}

impl StageRecord {
    /// Reads the record of the stage in `folder`, if it is finished.
    pub(super) fn read(folder: &Path) -> Option<Self> {
        serde_json::from_slice(&read_small(&folder.join(RECORD)).ok()?).ok()
    }

    /// Returns the first output that is not what the record says.
    fn damaged_output(&self, folder: &Path) -> Option<(PathBuf, Damage)> {
        let outputs: Vec<(&String, &Fingerprint)> = self.outputs.iter().collect();
        let first = |outputs: &[(&String, &Fingerprint)]| {
            outputs.iter().find_map(|(name, hash)| {
                let path = folder.join(name);
                match read_output(&path) {
                    Ok(bytes) if Fingerprint::of_bytes(&bytes) == **hash => None,
                    Ok(_) => Some((path, Damage::Changed)),
                    Err(_) => Some((path, Damage::Missing)),
                }
            })
        };
        // Hundreds of teachers are read side by side.
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

/// A finished stage and its folder.
#[derive(Clone, Debug)]
pub(crate) struct FinishedStage {
    pub(super) folder: PathBuf,
    pub(super) record: StageRecord,
}

impl FinishedStage {
    /// Finds the stage in `folder` if it is done with this fingerprint and its outputs are what the record says.
    pub(super) fn find(folder: &Path, fingerprint: Fingerprint) -> Option<Self> {
        Self::recorded(folder, fingerprint).filter(|stage| stage.record.damaged_output(folder).is_none())
    }

    /// Finds it likewise by the record alone, whatever became of the outputs.
    pub(super) fn recorded(folder: &Path, fingerprint: Fingerprint) -> Option<Self> {
        let record = StageRecord::read(folder)?;
        let is_of = record.format == FORMAT && record.fingerprint == fingerprint;
        is_of.then(|| Self { folder: folder.to_path_buf(), record })
    }

    /// Finds the damage of the finished stage in `folder`: the first output that is not what the record says, or the record; none
    /// if no stage was finished there.
    pub(super) fn damage(folder: &Path, fingerprint: Fingerprint) -> Option<(PathBuf, Damage)> {
        let path = folder.join(RECORD);
        if !path.exists() {
            return None;
        }
        match StageRecord::read(folder) {
            None => Some((path, Damage::NoRecord)),
            Some(record) if record.fingerprint != fingerprint => Some((path, Damage::OtherInputs)),
            Some(record) => record.damaged_output(folder),
        }
    }

    /// Returns the path of an output or side file.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Reads an output or side file.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(crate) fn read(&self, name: &str) -> Result<Vec<u8>, ExperimentError> {
        let path = self.path(name);
        read_output(&path).map_err(ExperimentError::io("read", path))
    }

    /// Reads a JSON output or side file.
    ///
    /// # Errors
    /// If it cannot be read or does not have the expected form.
    pub(crate) fn read_json<T: DeserializeOwned>(&self, name: &str) -> Result<T, ExperimentError> {
        serde_json::from_slice(&self.read(name)?)
            .map_err(|source| ExperimentError::Results { path: self.path(name), fault: ResultsFault::NotOurs(source) })
    }

    /// Returns one hash over all outputs, for the fingerprints of stages that use them.
    pub(crate) fn outputs_hash(&self) -> Fingerprint {
        Fingerprint::of(&serde_json::json!(self.record.outputs))
    }
}
