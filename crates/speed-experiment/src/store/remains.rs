//! Stage directories on the disk, finished or not.

use std::fs;
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use super::fingerprint::{Fingerprint, Identity};
use super::layout::{CHARGED, FINGERPRINT, is_current, name_of};
use super::noise_key::{self, NoiseKey};
use super::read::read_small;
use super::record::FinishedStage;
use crate::error::ExperimentError;

/// A stage directory on the disk, finished or not, which need not exist.
pub(crate) struct StageRemains(pub(super) PathBuf);

impl StageRemains {
    pub(crate) fn folder(&self) -> &Path {
        &self.0
    }

    /// Reads a text file, if it exists.
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

    /// Returns whether the directory was not set aside.
    pub(super) fn is_current(&self) -> bool {
        is_current(&name_of(&self.0))
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
        remove_if_there(&self.0.join(noise_key::FILE))
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

    /// Returns the damage of a stage that was finished here, and the damaged file.
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

fn remove_if_there(path: &Path) -> Result<(), ExperimentError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(ExperimentError::io("remove", path)(error)),
        _ => Ok(()),
    }
}
