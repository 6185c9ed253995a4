//! The folder of a stage that is not done yet, and its units of work.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::atomic::{write_atomic, write_json, write_secret};
use super::fingerprint::Fingerprint;
use super::layout::{CHARGED, FINGERPRINT};
use super::noise_key::{self, NoiseKey};
use super::record::{FORMAT, FinishedStage, RECORD, StageRecord};
use super::remains::StageRemains;
use crate::error::ExperimentError;

/// The folder of a stage that is not done yet.
pub(crate) struct StageFolder {
    name: String,
    folder: PathBuf,
    fingerprint: Fingerprint,
    started: Instant,
    resumed_units: usize,
    noise_key: Option<NoiseKey>,
    /// The name under which what other inputs left here is kept.
    superseded: Option<String>,
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
    pub(super) fn open(folder: PathBuf, name: &str, fingerprint: Fingerprint) -> Result<Self, ExperimentError> {
        let mut superseded = None;
        if folder.exists() {
            let remains = StageRemains(folder.clone());
            if !remains.is_of(fingerprint) || folder.join(RECORD).exists() {
                superseded = Some(remains.set_aside()?);
            }
        }
        fs::create_dir_all(&folder).map_err(ExperimentError::io("create", &folder))?;
        write_atomic(&folder.join(FINGERPRINT), fingerprint.to_hex().as_bytes())?;
        let name = name.to_owned();
        Ok(Self { name, folder, fingerprint, started: Instant::now(), resumed_units: 0, noise_key: None, superseded })
    }

    /// Returns the name under which what other inputs left here is kept.
    pub(crate) fn superseded(&self) -> Option<&str> {
        self.superseded.as_deref()
    }

    /// Returns the path of the folder.
    pub(crate) fn path(&self) -> &Path {
        &self.folder
    }

    /// Writes any file of the stage.
    ///
    /// # Errors
    /// If the disk refuses.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> Result<(), ExperimentError> {
        write_atomic(&self.folder.join(name), bytes)
    }

    /// Writes a JSON file of the stage.
    ///
    /// # Errors
    /// If the disk refuses.
    pub(crate) fn write_json(&self, name: &str, value: &impl Serialize) -> Result<(), ExperimentError> {
        write_json(&self.folder.join(name), value)
    }

    /// Keeps the key of the noise, readable by its owner only, until the answers are given.
    ///
    /// # Errors
    /// If the disk refuses.
    pub(crate) fn keep_noise_key(&mut self, key: NoiseKey) -> Result<(), ExperimentError> {
        let path = self.folder.join(noise_key::FILE);
        if !fs::read(&path).is_ok_and(|there| there == key.as_bytes()) {
            write_secret(&path, key.as_bytes())?;
        }
        self.noise_key = Some(key);
        Ok(())
    }

    /// Returns the key of the noise that this process charged the answers with.
    pub(crate) fn noise_key(&self) -> Option<&NoiseKey> {
        self.noise_key.as_ref()
    }

    /// Writes down that answers with this noise are charged.
    ///
    /// # Errors
    /// If the disk refuses.
    pub(crate) fn mark_charged(&self, noise_digest: &str) -> Result<(), ExperimentError> {
        self.write(CHARGED, noise_digest.as_bytes())
    }

    /// Saves a finished unit of work: the payload first, then the metadata that makes it count.
    ///
    /// # Errors
    /// If the disk refuses.
    pub(crate) fn write_unit<M: Serialize>(&self, name: &str, payload: &[u8], meta: &M) -> Result<(), ExperimentError> {
        self.write(&unit_payload(name), payload)?;
        self.write_json(&unit_meta(name), &Unit { payload_sha256: Fingerprint::of_bytes(payload), meta })
    }

    /// Reads a unit that an earlier attempt finished; one that is damaged counts as not done.
    pub(crate) fn read_unit<M: DeserializeOwned>(&self, name: &str) -> Option<(Vec<u8>, M)> {
        let unit: Unit<M> = serde_json::from_slice(&self.read_partial(&unit_meta(name))?).ok()?;
        let payload = self.read_partial(&unit_payload(name))?;
        (Fingerprint::of_bytes(&payload) == unit.payload_sha256).then_some((payload, unit.meta))
    }

    /// Reads any file that an earlier attempt left.
    pub(crate) fn read_partial(&self, name: &str) -> Option<Vec<u8>> {
        fs::read(self.folder.join(name)).ok()
    }

    /// Removes a file that is no longer needed, a checkpoint for example.
    pub(crate) fn remove(&self, name: &str) {
        // A checkpoint that stays behind costs space and nothing else.
        let _ = fs::remove_file(self.folder.join(name));
    }

    /// Notes that units of earlier attempts are used.
    pub(crate) fn resumed(&mut self, units: usize) {
        self.resumed_units = units;
    }

    /// Writes the record. `outputs` name the files that the fingerprint determines; others may hold times.
    ///
    /// # Errors
    /// If an output is missing or the disk refuses.
    pub(crate) fn finish(self, outputs: &[String]) -> Result<FinishedStage, ExperimentError> {
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
            finished_at: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
        };
        write_json(&self.folder.join(RECORD), &record)?;
        Ok(FinishedStage { folder: self.folder, record })
    }
}

/// Returns the file of a unit's payload, which may be an output of its stage.
pub(crate) fn unit_payload(name: &str) -> String {
    format!("{name}.bin")
}

fn unit_meta(name: &str) -> String {
    format!("{name}.json")
}
