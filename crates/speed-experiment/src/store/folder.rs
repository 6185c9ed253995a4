//! The directory of an unfinished stage, and its units of work. It appears atomically with the fingerprint of the stage, the
//! hashes of its inputs, its program and its kind of machine.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::atomic::{RETRIES, json, new_folder, write_atomic, write_json, write_new, write_secret};
use super::fingerprint::{Fingerprint, Identity};
use super::layout::{ARITHMETIC, CHARGED, FINGERPRINT, PARTS};
use super::noise_key::{self, NoiseKey};
use super::program::{self, Program};
use super::read::{read_output, read_small};
use super::record::{FORMAT, FinishedStage, RECORD, StageRecord, StageRemains};
use crate::error::ExperimentError;

pub(crate) struct StageFolder {
    name: String,
    folder: PathBuf,
    fingerprint: Fingerprint,
    started: Instant,
    resumed_units: usize,
    noise_key: Option<NoiseKey>,
    /// The new name of a directory of other inputs that was here and was renamed.
    superseded: Option<String>,
    /// The hashes of the side files, which later steps read although they are not outputs.
    checked: Mutex<BTreeMap<String, Fingerprint>>,
    /// The hashes of payloads that this process read or wrote, so that [`Self::finish`] need not read them again.
    known: Mutex<BTreeMap<String, Fingerprint>>,
}

/// A unit's metadata file. The unit is done if the file exists and matches its stage and payload.
#[derive(Serialize, Deserialize)]
struct Unit<M> {
    /// The fingerprint of the unit's stage. A unit of another stage is ignored, such as one that a process wrote after
    /// the directory was renamed.
    of: Fingerprint,
    payload_sha256: Fingerprint,
    arithmetic: String,
    #[serde(flatten)]
    meta: M,
}

/// A unit in one file: its value and the hash of the value.
#[derive(Serialize, Deserialize)]
struct Sealed<M> {
    of: Fingerprint,
    sha256: Fingerprint,
    value: M,
}

impl StageFolder {
    /// Opens the directory for work. A directory of another fingerprint is renamed, never overwritten.
    /// Fails if another version of the program finished the stage there, or the directory cannot be written.
    pub(super) fn open(folder: PathBuf, identity: &Identity) -> Result<Self, ExperimentError> {
        let mut superseded = None;
        StageRecord::check_format(&folder)?;
        if folder.exists() {
            let remains = StageRemains(folder.clone());
            if !remains.is_of(identity.fingerprint) || folder.join(RECORD).exists() {
                superseded = Some(remains.set_aside()?);
            }
        }
        begin(&folder, identity)?;
        Ok(Self { superseded, ..Self::at(folder, identity) })
    }

    /// Opens the directory to do a part of its work in parallel with other processes. Nothing is renamed.
    /// Fails if the directory holds work on other inputs, a damaged stage or one of another version, or, unless
    /// `any_program`, work of another program.
    pub(super) fn join(folder: PathBuf, identity: &Identity, any_program: bool) -> Result<Self, ExperimentError> {
        StageRecord::check_format(&folder)?;
        begin(&folder, identity)?;
        if let Some((path, damage)) = FinishedStage::damage(&folder, identity.fingerprint) {
            let fault = format_args!("{damage}: `speed run` with the same config repeats the stage");
            return Err(ExperimentError::results(path, fault));
        }
        if !any_program {
            Program::current().check(&folder)?;
        }
        Ok(Self::at(folder, identity))
    }

    fn at(folder: PathBuf, identity: &Identity) -> Self {
        Self {
            name: identity.name.clone(),
            folder,
            fingerprint: identity.fingerprint,
            started: Instant::now(),
            resumed_units: 0,
            noise_key: None,
            superseded: None,
            checked: Mutex::default(),
            known: Mutex::default(),
        }
    }

    pub(crate) fn superseded(&self) -> Option<&str> {
        self.superseded.as_deref()
    }

    pub(crate) fn path(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> Result<(), ExperimentError> {
        self.check()?;
        write_atomic(&self.folder.join(name), bytes)
    }

    pub(crate) fn write_secret(&self, name: &str, bytes: &[u8]) -> Result<(), ExperimentError> {
        self.check()?;
        write_secret(&self.folder.join(name), bytes)
    }

    pub(crate) fn write_secret_json(&self, name: &str, value: &impl Serialize) -> Result<(), ExperimentError> {
        self.write_secret(name, &json(&self.folder.join(name), value)?)
    }

    pub(crate) fn write_json(&self, name: &str, value: &impl Serialize) -> Result<(), ExperimentError> {
        self.check()?;
        write_json(&self.folder.join(name), value)
    }

    /// Writes a side file. The record holds its hash, and no fingerprint depends on it.
    pub(crate) fn write_checked(&self, name: &str, bytes: &[u8]) -> Result<(), ExperimentError> {
        self.write(name, bytes)?;
        lock(&self.checked).insert(name.to_owned(), Fingerprint::of_bytes(bytes));
        Ok(())
    }

    pub(crate) fn write_checked_json(&self, name: &str, value: &impl Serialize) -> Result<(), ExperimentError> {
        self.write_checked(name, &json(&self.folder.join(name), value)?)
    }

    /// Fails if the directory was renamed, so that another stage's directory may have its name now.
    fn check(&self) -> Result<(), ExperimentError> {
        if StageRemains(self.folder.clone()).is_of(self.fingerprint) {
            return Ok(());
        }
        let fault = "was set aside by a run with other inputs while this run worked in it: run again";
        Err(ExperimentError::results(&self.folder, fault))
    }

    /// Saves the noise key until the answers are given, in a file that only its owner may read. Replaces the key
    /// `seen`, if there was one.
    /// Fails if the file cannot be written, or another process saves a key at the same time. Locks may not work across
    /// machines, and then this check prevents answers with two different noises.
    pub(crate) fn keep_noise_key(&mut self, key: NoiseKey, seen: Option<&NoiseKey>) -> Result<(), ExperimentError> {
        self.check()?;
        let path = self.folder.join(noise_key::FILE);
        let is_anothers = |there: &[u8]| {
            NoiseKey::from_bytes(there, self.fingerprint).is_some() && seen.is_none_or(|seen| seen.as_bytes() != there)
        };
        match read_small(&path).map(Zeroizing::new) {
            Ok(there) if *there == key.as_bytes() => {}
            Ok(there) if is_anothers(&there) => return Err(ExperimentError::taken_away(&path)),
            Ok(_) => write_secret(&path, key.as_bytes())?,
            Err(_) if write_new(&path, key.as_bytes(), true)? => {}
            Err(_) => return Err(ExperimentError::taken_away(&path)),
        }
        self.noise_key = Some(key);
        Ok(())
    }

    pub(crate) fn noise_key(&self) -> Option<&NoiseKey> {
        self.noise_key.as_ref()
    }

    pub(crate) fn mark_charged(&self, noise_digest: &str) -> Result<(), ExperimentError> {
        self.write_checked(CHARGED, noise_digest.as_bytes())
    }

    /// Saves a finished unit of work and the kind of machine that computed it. Writes the payload first, in a file that only its owner
    /// may read if it `is_secret`, and then the metadata that marks the unit as done.
    pub(crate) fn write_unit<M: Serialize>(
        &self,
        name: &str,
        payload: &[u8],
        is_secret: bool,
        arithmetic: &str,
        meta: &M,
    ) -> Result<(), ExperimentError> {
        let file = unit_payload(name);
        if is_secret {
            self.write_secret(&file, payload)?
        } else {
            self.write(&file, payload)?
        }
        let payload_sha256 = Fingerprint::of_bytes(payload);
        self.write_json(
            &unit_meta(name),
            &Unit { of: self.fingerprint, payload_sha256, arithmetic: arithmetic.to_owned(), meta },
        )?;
        self.know(name, payload_sha256);
        Ok(())
    }

    /// Reads the metadata of a finished unit, and the kind of machine that computed it. A damaged unit is not done.
    pub(crate) fn read_unit<M: DeserializeOwned>(&self, name: &str) -> Option<(M, String)> {
        let unit: Unit<M> = serde_json::from_slice(&self.read_partial(&unit_meta(name))?).ok()?;
        let payload = self.read_partial(&unit_payload(name))?;
        (unit.of == self.fingerprint && Fingerprint::of_bytes(&payload) == unit.payload_sha256).then(|| {
            self.know(name, unit.payload_sha256);
            (unit.meta, unit.arithmetic)
        })
    }

    fn know(&self, unit: &str, hash: Fingerprint) {
        lock(&self.known).insert(unit_payload(unit), hash);
    }

    pub(crate) fn write_sealed(&self, name: &str, value: &impl Serialize) -> Result<(), ExperimentError> {
        let unwritable = ExperimentError::unwritable(self.folder.join(unit_meta(name)));
        let value = serde_json::to_value(value).map_err(unwritable)?;
        self.write_json(&unit_meta(name), &Sealed { of: self.fingerprint, sha256: Fingerprint::of(&value), value })
    }

    /// Reads a finished unit of one small file. A damaged unit is not done.
    pub(crate) fn read_sealed<M: DeserializeOwned>(&self, name: &str) -> Option<M> {
        let unit: Sealed<serde_json::Value> = serde_json::from_slice(&self.read_partial(&unit_meta(name))?).ok()?;
        let counts = unit.of == self.fingerprint && Fingerprint::of(&unit.value) == unit.sha256;
        counts.then(|| serde_json::from_value(unit.value).ok()).flatten()
    }

    pub(crate) fn read_partial(&self, name: &str) -> Option<Vec<u8>> {
        read_output(&self.folder.join(name)).ok()
    }

    /// Removes a file that has become unnecessary, such as a checkpoint.
    pub(crate) fn remove(&self, name: &str) {
        // A remaining checkpoint only takes space.
        let _ = fs::remove_file(self.folder.join(name));
    }

    /// Records the number of units that earlier attempts computed.
    pub(crate) fn resumed(&mut self, units: usize) {
        self.resumed_units = units;
    }

    /// Writes the record. `outputs` are the files that the fingerprint determines; other files may hold times.
    /// Fails if an output is missing, the record cannot be written, or the directory belongs to another stage by now.
    pub(crate) fn finish(self, outputs: &[String]) -> Result<FinishedStage, ExperimentError> {
        self.check()?;
        let known = self.known.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut checked = self.checked.into_inner().unwrap_or_else(PoisonError::into_inner);
        // Other kinds of machine may add their own files at any time.
        for (name, bytes) in StageRemains(self.folder.clone()).read_all_named(ARITHMETIC) {
            checked.insert(name, Fingerprint::of_bytes(&bytes));
        }
        let mut hashes = BTreeMap::new();
        for name in outputs {
            let hash = match known.get(name) {
                Some(hash) => *hash,
                None => {
                    let path = self.folder.join(name);
                    Fingerprint::of_bytes(&read_output(&path).map_err(ExperimentError::io("read", path))?)
                }
            };
            hashes.insert(name.clone(), hash);
        }
        let record = StageRecord {
            format: FORMAT,
            stage: self.name,
            fingerprint: self.fingerprint,
            outputs: hashes,
            checked,
            seconds: self.started.elapsed().as_secs_f64(),
            resumed_units: self.resumed_units,
            finished_at: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
        };
        write_json(&self.folder.join(RECORD), &record)?;
        Ok(FinishedStage { folder: self.folder, record })
    }
}

/// Creates the directory of a stage, unless it exists. If several processes do so at once, one of them creates it.
/// Fails if the directory holds work on other inputs. The error lists the inputs that differ, if the directory records them.
fn begin(folder: &Path, identity: &Identity) -> Result<(), ExperimentError> {
    let here = identity.parts();
    let mut files = vec![
        (FINGERPRINT, identity.fingerprint.to_hex()),
        (program::FILE, Program::current().to_json()),
        (PARTS, format!("{:#}", serde_json::json!(here))),
    ];
    // Written together with the directory, so that a machine of another kind sees at once that the stage is not its own.
    files.extend(identity.arithmetic().map(|kind| (ARITHMETIC, format!("{kind}\n"))));
    for _ in 0..RETRIES {
        if folder.join(FINGERPRINT).exists() {
            break;
        }
        let files = files.iter().map(|(name, text)| ((*name).to_owned(), text));
        match new_folder(folder, files, [0o777, 0o666]) {
            // Now it exists, or another process removed this process's unfinished directory.
            Ok(_) => {}
            Err((error, _)) if [ErrorKind::AlreadyExists, ErrorKind::NotFound].contains(&error.kind()) => {}
            Err((error, _)) => return Err(ExperimentError::io("create", folder)(error)),
        }
    }
    fs::metadata(folder.join(FINGERPRINT)).map_err(ExperimentError::io("create", folder))?;
    if StageRemains(folder.to_path_buf()).is_of(identity.fingerprint) {
        return Ok(());
    }
    let there = read_small(&folder.join(PARTS)).ok();
    let there: BTreeMap<String, Fingerprint> =
        there.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
    let keys = here.keys().chain(there.keys().filter(|key| !here.contains_key(*key)));
    let differs = keys.filter(|key| here.get(*key) != there.get(*key)).map(|key| key.escape_debug().to_string());
    let differs: Vec<String> = if there.is_empty() { Vec::new() } else { differs.collect() };
    let differs = match differs.as_slice() {
        [] => "or of another version".to_owned(),
        keys => format!("these differ: {}", keys.join(", ")),
    };
    let next = "A shard does not set it aside: first run `speed run` with the same config and --stage";
    Err(ExperimentError::results(folder, format_args!("holds work with other inputs ({differs}). {next}")))
}

fn lock(hashes: &Mutex<BTreeMap<String, Fingerprint>>) -> MutexGuard<'_, BTreeMap<String, Fingerprint>> {
    hashes.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the file name of a unit's payload, which may be an output of its stage.
pub(crate) fn unit_payload(name: &str) -> String {
    format!("{name}.bin")
}

/// Returns the name of a unit's metadata file, which exists if the unit is done.
pub(crate) fn unit_meta(name: &str) -> String {
    format!("{name}.json")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn work_with_other_inputs_is_neither_saved_nor_counted() {
        let stages = tempfile::tempdir().expect("a folder");
        let path = stages.path().join("teachers");
        let of = |images: u32| Identity::new("teachers", "teachers", 1, json!({ "images": images, "arithmetic": "a" }));
        let first = StageFolder::join(path.clone(), &of(1), true).expect("a folder");
        let save = |folder: &StageFolder| {
            folder.write_unit("teacher-0", b"x", false, "a", &json!({ "steps": 1 }))?;
            folder.write_sealed("query-0", &json!({ "label": 2 }))
        };
        let counts = |folder: &StageFolder| {
            (folder.read_unit::<Value>("teacher-0").is_some(), folder.read_sealed::<Value>("query-0").is_some())
        };
        save(&first).expect("written");
        assert_eq!(counts(&first), (true, true));
        assert_eq!(first.read_partial("arithmetic"), Some(b"a\n".to_vec()), "created with the folder");

        let second = StageFolder::open(path.clone(), &of(2)).expect("set aside");
        let error = save(&first).expect_err("another stage's").to_string();
        assert!(error.contains("set aside") && error.contains("run again"), "{error}");
        // Simulates a write that began before the directory was renamed.
        for name in ["teacher-0.bin", "teacher-0.json", "query-0.json"] {
            fs::copy(stages.path().join("teachers.superseded-1").join(name), path.join(name)).expect("a copy");
        }
        assert_eq!(counts(&second), (false, false));
        save(&second).expect("written");
        assert_eq!(counts(&second), (true, true));
    }

    #[test]
    fn a_record_of_another_version_is_named_and_stays() {
        let stages = tempfile::tempdir().expect("a folder");
        let (path, identity) = (stages.path().join("queries"), Identity::new("queries", "queries", 1, json!({})));
        let folder = StageFolder::open(path.clone(), &identity).expect("a folder");
        folder.finish(&[]).expect("finished");
        let record = fs::read_to_string(path.join(RECORD)).expect("a record");
        let other = record.replace("\"format\": 1", "\"format\": 2");
        assert_ne!(other, record);
        fs::write(path.join(RECORD), &other).expect("written");
        for opened in [StageFolder::open(path.clone(), &identity), StageFolder::join(path.clone(), &identity, true)] {
            let error = opened.err().expect("another version").to_string();
            assert!(
                error.contains("stage.json") && error.contains("format 2") && error.contains("format 1"),
                "{error}"
            );
        }
        assert_eq!(fs::read_to_string(path.join(RECORD)).expect("the same"), other);
    }

    #[test]
    fn a_noise_key_is_for_its_owner_only() {
        let stages = tempfile::tempdir().expect("a folder");
        let identity = Identity::new("aggregate", "aggregate", 1, json!({}));
        let mut folder = StageFolder::join(stages.path().join("aggregate"), &identity, true).expect("a folder");
        let key = |byte| NoiseKey::from_bytes(&[byte; 32], identity.fingerprint).expect("32 bytes");
        let mode = |folder: &StageFolder| {
            let file = fs::metadata(folder.path().join(noise_key::FILE)).expect("a key");
            std::os::unix::fs::PermissionsExt::mode(&file.permissions()) & 0o777
        };
        folder.keep_noise_key(key(1), None).expect("the first");
        assert_eq!(mode(&folder), 0o600);
        folder.keep_noise_key(key(1), None).expect("the same");
        assert!(folder.keep_noise_key(key(2), None).is_err() && folder.keep_noise_key(key(2), Some(&key(3))).is_err());
        folder.keep_noise_key(key(2), Some(&key(1))).expect("in place of a key that was never charged");
        assert_eq!(mode(&folder), 0o600);
        fs::write(folder.path().join(noise_key::FILE), "half a key").expect("written");
        folder.keep_noise_key(key(3), None).expect("in place of an invalid key");
    }
}
