//! The beginning of a stage's folder, which appears whole: what it is of, and which program began it.

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
use crate::error::{ExperimentError, ResultsFault};

/// Makes the folder of a stage, unless it is there: of several processes that do, one does.
///
/// # Errors
/// If the disk refuses.
pub(super) fn begin(folder: &Path, identity: &Identity) -> Result<(), ExperimentError> {
    let parent = folder.parent().unwrap_or_else(|| Path::new("."));
    let make = || -> std::io::Result<()> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(COPYING);
        // Those of any folder, less the user's umask, instead of a temporary one's 0700.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o777));
        let temporary = builder.tempdir_in(parent)?;
        let parts = serde_json::to_vec_pretty(&identity.parts())?;
        write_synced(&temporary.path().join(FINGERPRINT), identity.fingerprint.to_hex().as_bytes())?;
        write_synced(&temporary.path().join(program::FILE), &Program::current().to_json())?;
        write_synced(&temporary.path().join(PARTS), &parts)?;
        // With the folder, so that another kind of machine knows at once whose it is.
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
            // Another process was first, or tidied up what this one had not finished.
            Err(error) if is_there(&error) || error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(ExperimentError::io("create", folder)(error)),
        }
    }
    fs::metadata(folder.join(FINGERPRINT)).map(drop).map_err(ExperimentError::io("create", folder))
}

/// Writes a file that is whole once its folder gets its name, also where the machine stops right after.
fn write_synced(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = fs::File::create_new(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn is_there(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::DirectoryNotEmpty)
}

/// Refuses a folder that holds work of other inputs.
///
/// # Errors
/// If it does: what differs is named, as far as the folder tells.
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
    let differs = if there.is_empty() { Vec::new() } else { differs.collect() };
    Err(ExperimentError::Results { path: folder.to_path_buf(), fault: ResultsFault::OtherInputs { differs } })
}
