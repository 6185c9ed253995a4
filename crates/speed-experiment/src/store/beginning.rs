//! The initial content of a stage's directory, which appears atomically: the fingerprint of the stage, the hashes of
//! its inputs, its program and its kind of machine.

use std::collections::BTreeMap;
use std::fs;
use std::io::{ErrorKind, Write};
use std::path::Path;

use super::atomic::{COPYING, RETRIES};
use super::fingerprint::{Fingerprint, Identity};
use super::layout::{ARITHMETIC, FINGERPRINT, PARTS};
use super::program::{self, Program};
use super::read::read_small;
use super::remains::StageRemains;
use crate::error::ExperimentError;

/// Creates the directory of a stage, unless it exists. If several processes do so at once, one of them creates it.
pub(super) fn begin(folder: &Path, identity: &Identity) -> Result<(), ExperimentError> {
    let parent = folder.parent().unwrap_or_else(|| Path::new("."));
    let make = || -> std::io::Result<()> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(COPYING);
        // The usual permissions of a directory, restricted by the umask, instead of a temporary directory's 0700.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o777));
        let temporary = builder.tempdir_in(parent)?;
        let parts = serde_json::to_vec_pretty(&identity.parts())?;
        write_synced(&temporary.path().join(FINGERPRINT), identity.fingerprint.to_hex().as_bytes())?;
        write_synced(&temporary.path().join(program::FILE), &Program::current().to_json())?;
        write_synced(&temporary.path().join(PARTS), &parts)?;
        // Written together with the directory, so that a machine of another kind sees at once that the stage is not its
        // own.
        if let Some(kind) = identity.arithmetic() {
            write_synced(&temporary.path().join(ARITHMETIC), format!("{kind}\n").as_bytes())?;
        }
        fs::rename(temporary.path(), folder)
    };
    for _ in 0..RETRIES {
        if folder.join(FINGERPRINT).exists() {
            return Ok(());
        }
        match make() {
            Ok(()) => return Ok(()),
            // Another process was faster, or removed this process's unfinished directory.
            Err(error) if is_there(&error) || error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(ExperimentError::io("create", folder)(error)),
        }
    }
    fs::metadata(folder.join(FINGERPRINT)).map(drop).map_err(ExperimentError::io("create", folder))
}

/// Writes and syncs a file, so that it is complete once its directory is renamed, even if the machine stops right
/// after.
fn write_synced(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = fs::File::create_new(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn is_there(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::DirectoryNotEmpty)
}

/// Fails if the directory holds work on other inputs.
///
/// # Errors
/// If it does. The error lists the inputs that differ, if the directory records them.
pub(super) fn check(folder: &Path, identity: &Identity) -> Result<(), ExperimentError> {
    if StageRemains(folder.to_path_buf()).is_of(identity.fingerprint) {
        return Ok(());
    }
    let there = read_small(&folder.join(PARTS)).ok();
    let there: BTreeMap<String, Fingerprint> =
        there.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
    let here = identity.parts();
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
