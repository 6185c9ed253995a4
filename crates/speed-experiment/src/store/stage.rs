//! One stage of a run: its folder, its units of work, and the record that says it is done.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::atomic::write_secret;
use super::{Fingerprint, write_atomic};
use crate::ExperimentError;

const RECORD: &str = "stage.json";
const FINGERPRINT: &str = "fingerprint";
/// The key of noise that was charged and whose answers are not given yet.
pub(super) const NOISE_KEY: &str = "noise.key";
/// The digest of the noise that a stage's answers were charged with.
const CHARGED: &str = "charged";
const FORMAT: u32 = 1;

/// What a finished stage leaves in `stage.json`; the file is written last, its presence means done.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StageRecord {
    /// Version of this record.
    pub format: u32,
    /// Name of the stage.
    pub stage: String,
    /// What it was made from.
    pub fingerprint: Fingerprint,
    /// Every output that is determined by the fingerprint, with the SHA-256 of its content.
    pub outputs: BTreeMap<String, Fingerprint>,
    /// Wall-clock seconds of the attempt that finished.
    pub seconds: f64,
    /// Units of work that earlier, interrupted attempts had left; `seconds` does not count them.
    pub resumed_units: usize,
    /// Seconds since 1970 when it finished.
    pub finished_at: u64,
}

/// A finished stage and its folder.
#[derive(Clone, Debug)]
pub struct Stage {
    folder: PathBuf,
    /// The record.
    pub record: StageRecord,
}

/// Where a stage stands.
pub enum StageState {
    /// Done with this fingerprint, every output present and unchanged.
    Done(Stage),
    /// To be done, perhaps with units that are there already.
    Outstanding(StageFolder),
}

impl Stage {
    /// The stage in `folder` if it is done with this fingerprint and its outputs are what the record says.
    pub(super) fn find(folder: &Path, fingerprint: &Fingerprint) -> Option<Self> {
        let record: StageRecord = serde_json::from_slice(&fs::read(folder.join(RECORD)).ok()?).ok()?;
        let whole = record.format == FORMAT
            && record.fingerprint == *fingerprint
            && record.outputs.iter().all(|(name, hash)| {
                fs::read(folder.join(name)).is_ok_and(|bytes| Fingerprint::of_bytes(&bytes) == *hash)
            });
        whole.then(|| Self { folder: folder.to_path_buf(), record })
    }

    /// What is wrong with the finished stage in `folder`: the first output that is not what the record says, or the record; none
    /// if no stage was finished there.
    pub(super) fn damage(folder: &Path, fingerprint: &Fingerprint) -> Option<(PathBuf, &'static str)> {
        let path = folder.join(RECORD);
        let record: StageRecord = match fs::read(&path) {
            Ok(bytes) => match serde_json::from_slice(&bytes) {
                Ok(record) => record,
                Err(_) => return Some((path, "is no record of a stage")),
            },
            Err(_) => return None,
        };
        if record.fingerprint != *fingerprint {
            return Some((path, "is of other votes, queries or settings, or of another version"));
        }
        record.outputs.iter().find_map(|(name, hash)| {
            let path = folder.join(name);
            match fs::read(&path) {
                Ok(bytes) if Fingerprint::of_bytes(&bytes) == *hash => None,
                Ok(_) => Some((path, "was changed")),
                Err(_) => Some((path, "is missing")),
            }
        })
    }

    /// Content of an output or side file.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read(&self, name: &str) -> Result<Vec<u8>, ExperimentError> {
        let path = self.folder.join(name);
        fs::read(&path).map_err(ExperimentError::io("read", path))
    }

    /// A JSON output or side file.
    ///
    /// # Errors
    /// If it cannot be read or does not have the expected form.
    pub fn read_json<T: DeserializeOwned>(&self, name: &str) -> Result<T, ExperimentError> {
        parse_json(&self.folder.join(name), &self.read(name)?)
    }

    /// The stage's folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// One hash over all outputs, for the fingerprints of stages that use them.
    #[must_use]
    pub fn outputs_hash(&self) -> Fingerprint {
        Fingerprint::of(&serde_json::json!(self.record.outputs))
    }
}

/// The folder of a stage that is not done yet.
pub struct StageFolder {
    name: String,
    folder: PathBuf,
    fingerprint: Fingerprint,
    started: Instant,
    resumed_units: usize,
}

/// A unit's metadata file: present and matching means that the unit is done.
#[derive(Serialize, Deserialize)]
struct Unit<M> {
    payload_sha256: Fingerprint,
    #[serde(flatten)]
    meta: M,
}

impl StageFolder {
    /// Opens the folder for work; what another fingerprint left there is renamed, never overwritten.
    pub(super) fn open(folder: PathBuf, name: &str, fingerprint: &Fingerprint) -> Result<Self, ExperimentError> {
        let mark = folder.join(FINGERPRINT);
        if folder.exists() {
            let ours = fs::read_to_string(&mark).is_ok_and(|text| text == fingerprint.as_str());
            if !ours || folder.join(RECORD).exists() {
                set_aside(&folder)?;
            }
        }
        fs::create_dir_all(&folder).map_err(ExperimentError::io("create", &folder))?;
        write_atomic(&mark, fingerprint.as_str().as_bytes())?;
        Ok(Self {
            name: name.to_owned(),
            folder,
            fingerprint: fingerprint.clone(),
            started: Instant::now(),
            resumed_units: 0,
        })
    }

    /// Name of the stage.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Writes any file of the stage.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), ExperimentError> {
        write_atomic(&self.folder.join(name), bytes)
    }

    /// Keeps the key of the noise, readable by its owner only, until the stage is finished.
    ///
    /// # Errors
    /// If the disk refuses.
    pub(crate) fn keep_noise_key(&self, key: &[u8]) -> Result<(), ExperimentError> {
        let path = self.folder.join(NOISE_KEY);
        if fs::read(&path).is_ok_and(|there| there == key) { Ok(()) } else { write_secret(&path, key) }
    }

    /// Says that answers with this noise are charged.
    ///
    /// # Errors
    /// If the disk refuses.
    pub(crate) fn mark_charged(&self, noise_digest: &str) -> Result<(), ExperimentError> {
        self.write(CHARGED, noise_digest.as_bytes())
    }

    /// Writes a JSON file of the stage.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn write_json(&self, name: &str, value: &impl Serialize) -> Result<(), ExperimentError> {
        write_json(&self.folder.join(name), value)
    }

    /// Saves a finished unit of work: the payload first, then the metadata that makes it count.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn write_unit<M: Serialize>(&self, name: &str, payload: &[u8], meta: &M) -> Result<(), ExperimentError> {
        self.write(&format!("{name}.bin"), payload)?;
        self.write_json(&format!("{name}.json"), &Unit { payload_sha256: Fingerprint::of_bytes(payload), meta })
    }

    /// A unit that an earlier attempt finished; one that is damaged counts as not done.
    #[must_use]
    pub fn read_unit<M: DeserializeOwned>(&self, name: &str) -> Option<(Vec<u8>, M)> {
        let unit: Unit<M> = serde_json::from_slice(&self.read_partial(&format!("{name}.json"))?).ok()?;
        let payload = self.read_partial(&format!("{name}.bin"))?;
        (Fingerprint::of_bytes(&payload) == unit.payload_sha256).then_some((payload, unit.meta))
    }

    /// Any file that an earlier attempt left.
    #[must_use]
    pub fn read_partial(&self, name: &str) -> Option<Vec<u8>> {
        fs::read(self.folder.join(name)).ok()
    }

    /// Gives a file another name, in place of what had it; one that is not there stays so.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn rename(&self, from: &str, to: &str) -> Result<(), ExperimentError> {
        let (from, to) = (self.folder.join(from), self.folder.join(to));
        match fs::rename(&from, to) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(ExperimentError::io("rename", from)(error))
            }
            _ => Ok(()),
        }
    }

    /// Removes a file that is no longer needed, a checkpoint for example.
    pub fn remove(&self, name: &str) {
        // A checkpoint that stays behind costs space and nothing else.
        let _ = fs::remove_file(self.folder.join(name));
    }

    /// Says that units of earlier attempts are used.
    pub fn resumed(&mut self, units: usize) {
        self.resumed_units = units;
    }

    /// Writes the record. `outputs` name the files that the fingerprint determines; others may hold times.
    ///
    /// # Errors
    /// If an output is missing or the disk refuses.
    pub fn finish(self, outputs: &[String]) -> Result<Stage, ExperimentError> {
        let mut hashes = BTreeMap::new();
        for name in outputs {
            let path = self.folder.join(name);
            let bytes = fs::read(&path).map_err(ExperimentError::io("read", path))?;
            hashes.insert(name.clone(), Fingerprint::of_bytes(&bytes));
        }
        let record = StageRecord {
            format: FORMAT,
            stage: self.name,
            fingerprint: self.fingerprint,
            outputs: hashes,
            seconds: self.started.elapsed().as_secs_f64(),
            resumed_units: self.resumed_units,
            finished_at: std::time::SystemTime::now()
                .duration_since(std::time::UNIX_EPOCH)
                .map_or(0, |since| since.as_secs()),
        };
        write_json(&self.folder.join(RECORD), &record)?;
        Ok(Stage { folder: self.folder, record })
    }
}

/// Renames a folder to `NAME.superseded-K`, the first K that is free.
pub(super) fn set_aside(folder: &Path) -> Result<(), ExperimentError> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let free = (1u32..)
        .map(|k| folder.with_file_name(format!("{name}.superseded-{k}")))
        .find(|path| !path.exists())
        .expect("there are fewer than 2^32 superseded folders");
    // Nobody gives these answers any more.
    remove_if_there(&folder.join(NOISE_KEY))?;
    fs::rename(folder, &free).map_err(ExperimentError::io("rename", folder))
}

fn remove_if_there(path: &Path) -> Result<(), ExperimentError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(ExperimentError::io("remove", path)(error)),
        _ => Ok(()),
    }
}

/// A stage folder as it lies on the disk, finished or not.
pub(crate) struct StageRemains(pub(super) PathBuf);

impl StageRemains {
    pub(crate) fn folder(&self) -> &Path {
        &self.0
    }

    /// A file of text that is there.
    pub(crate) fn read(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.0.join(name)).ok()
    }

    /// The key of noise whose answers are not given yet.
    pub(crate) fn noise_key(&self) -> Option<Zeroizing<Vec<u8>>> {
        fs::read(self.0.join(NOISE_KEY)).ok().map(Zeroizing::new)
    }

    /// Removes the key of noise whose answers are given.
    pub(crate) fn forget_noise(&self) -> Result<(), ExperimentError> {
        remove_if_there(&self.0.join(NOISE_KEY))
    }

    /// The digest of the noise that its answers were charged with.
    pub(crate) fn charged(&self) -> Option<String> {
        self.read(CHARGED)
    }

    /// Whether it is, or was to be, made from `fingerprint`.
    pub(crate) fn is_of(&self, fingerprint: &Fingerprint) -> bool {
        self.read(FINGERPRINT).is_some_and(|text| text == fingerprint.as_str())
    }

    /// [`Stage::damage`].
    pub(crate) fn damage(&self, fingerprint: &Fingerprint) -> Option<(PathBuf, &'static str)> {
        Stage::damage(&self.0, fingerprint)
    }
}

pub(super) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), ExperimentError> {
    let mut text = serde_json::to_string_pretty(value)
        .map_err(|error| ExperimentError::Results { path: path.to_path_buf(), message: error.to_string() })?;
    text.push('\n');
    write_atomic(path, text.as_bytes())
}

pub(super) fn parse_json<T: DeserializeOwned>(path: &Path, bytes: &[u8]) -> Result<T, ExperimentError> {
    serde_json::from_slice(bytes).map_err(|error| ExperimentError::Results {
        path: path.to_path_buf(),
        message: format!("not a file that this version wrote: {error}"),
    })
}
