//! Stage directories on the disk, finished or not, and the records and outputs of finished stages.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::fingerprint::{Fingerprint, Identity};
use super::layout::{CHARGED, FINGERPRINT, PARTS, name_of, stages};
use super::noise_key::{self, NoiseKey};
use super::read::{is_one_name, read_output, read_small};
use crate::error::ExperimentError;

/// The file name of a finished stage's record. The record is written last, so the stage is done if it exists.
pub(super) const RECORD: &str = "stage.json";
pub(super) const FORMAT: u32 = 1;

/// Minimum number of outputs per thread.
const FEW: usize = 4;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct StageRecord {
    pub(crate) format: u32,
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

    /// Returns the first listed file that differs from the record.
    fn damaged_file(&self, folder: &Path) -> Option<(PathBuf, &'static str)> {
        let outputs: Vec<(&String, &Fingerprint)> = self.outputs.iter().chain(&self.checked).collect();
        let first = |outputs: &[(&String, &Fingerprint)]| {
            outputs.iter().find_map(|(name, hash)| read_unchanged(folder.join(name), **hash).err())
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
    let hash =
        StageRecord::read(&folder).and_then(|record| record.checked.get(name).or(record.outputs.get(name)).copied());
    hash.map(|hash| read_unchanged(folder.join(name), hash)).transpose()
}

/// Reads a file with this hash; an error is its damage.
fn read_unchanged(path: PathBuf, hash: Fingerprint) -> Result<Vec<u8>, (PathBuf, &'static str)> {
    match read_output(&path) {
        Ok(bytes) if Fingerprint::of_bytes(&bytes) == hash => Ok(bytes),
        Ok(_) => Err((path, CHANGED)),
        Err(_) => Err((path, MISSING)),
    }
}

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

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(crate) fn read(&self, name: &str) -> Result<Vec<u8>, ExperimentError> {
        let path = self.path(name);
        read_output(&path).map_err(ExperimentError::io("read", path))
    }

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

/// A stage directory on the disk, finished or not, which need not exist.
pub(crate) struct StageRemains(pub(super) PathBuf);

impl StageRemains {
    pub(crate) fn folder(&self) -> &Path {
        &self.0
    }

    pub(crate) fn read(&self, name: &str) -> Option<String> {
        String::from_utf8(read_small(&self.0.join(name)).ok()?).ok()
    }

    /// Reads all text files that are called `name`, or `name-...`.
    pub(crate) fn read_all(&self, name: &str) -> Vec<String> {
        let named = self.read_all_named(name).into_iter();
        named.filter_map(|(_, bytes)| String::from_utf8(bytes).ok()).collect()
    }

    /// Reads all files that are called `name`, or `name-...`, each with its name.
    pub(super) fn read_all_named(&self, name: &str) -> Vec<(String, Vec<u8>)> {
        let entries = fs::read_dir(&self.0).into_iter().flatten().flatten().map(|entry| name_of(&entry.path()));
        let mut named: Vec<String> = entries
            .filter(|entry| entry.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('-')))
            .collect();
        named.sort();
        named
            .into_iter()
            .filter_map(|entry| read_small(&self.0.join(&entry)).ok().map(|bytes| (entry, bytes)))
            .collect()
    }

    /// Removes the files whose names begin with `start`. They hold units whose results are in the stage's outputs.
    pub(crate) fn remove_all(&self, start: &str) {
        for entry in fs::read_dir(&self.0).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(start) {
                // A remaining file only takes space.
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    /// Returns whether it holds a noise key whose answers are not given yet.
    pub(crate) fn has_noise_key(&self) -> bool {
        read_small(&self.0.join(noise_key::FILE)).map(Zeroizing::new).is_ok()
    }

    /// Returns the noise key whose answers to `question` are not given yet.
    pub(crate) fn noise_key(&self, question: Fingerprint) -> Option<NoiseKey> {
        let key = read_small(&self.0.join(noise_key::FILE)).map(Zeroizing::new);
        let bytes = key.ok().filter(|_| self.is_of(question))?;
        NoiseKey::from_bytes(&bytes, question)
    }

    /// Removes the noise key of answers that are given.
    pub(crate) fn forget_noise(&self) -> Result<(), ExperimentError> {
        let path = self.0.join(noise_key::FILE);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(ExperimentError::io("remove", path)(error)),
            _ => Ok(()),
        }
    }

    /// Returns the digest of the noise that its answers were charged with; `None` if no answer was charged.
    pub(crate) fn charged(&self) -> Option<Result<String, ExperimentError>> {
        let path = self.0.join(CHARGED);
        if !path.exists() {
            return None;
        }
        let text = self.read(CHARGED).unwrap_or_default();
        let digest = text.trim();
        if digest.len() == 32 && digest.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Some(Ok(digest.to_owned()));
        }
        let found = if digest.is_empty() {
            "an empty file".to_owned()
        } else {
            format!("{} characters", digest.chars().count())
        };
        let expected = "expected the 32 hexadecimal digits that identify the noise of charged answers";
        let fault = format_args!("{expected}, found {found}: restore the file from a copy");
        Some(Err(ExperimentError::results(path, fault)))
    }

    /// Returns whether the stage with this fingerprint was begun here.
    pub(crate) fn is_of(&self, fingerprint: Fingerprint) -> bool {
        self.read(FINGERPRINT).is_some_and(|text| text == fingerprint.to_hex())
    }

    pub(crate) fn damage(&self, identity: &Identity) -> Option<(PathBuf, &'static str)> {
        FinishedStage::damage(&self.0, identity.fingerprint)
    }

    /// Renames the directory to `NAME.superseded-K` with the first free K, and returns the new name.
    pub(super) fn set_aside(&self) -> Result<String, ExperimentError> {
        let name = name_of(&self.0);
        let free = (1u32..)
            .map(|k| self.0.with_file_name(format!("{name}.superseded-{k}")))
            .find(|path| !path.exists())
            .expect("there are fewer than 2^32 superseded folders");
        // The answers with this noise will not be given any more.
        self.forget_noise()?;
        fs::rename(&self.0, &free).map_err(ExperimentError::io("rename", &self.0))?;
        Ok(name_of(&free))
    }
}
