//! Files that are either whole or absent.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use serde::Serialize;

use crate::error::{ExperimentError, ResultsFault};

/// Writes `bytes` to `path` through a temporary file in the same folder, synced before it is renamed: after a kill or
/// a full disk the old file, or none, is there, never half a file.
///
/// # Errors
/// If the folder cannot be written.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<(), ExperimentError> {
    // Results are for sharing: the usual permissions, less the user's umask, instead of a temporary file's 0600.
    write_with_mode(path, bytes, 0o666)
}

/// Writes a JSON file likewise.
pub(super) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), ExperimentError> {
    let mut text = serde_json::to_string_pretty(value).map_err(|source| ExperimentError::Results {
        path: path.to_path_buf(),
        fault: ResultsFault::NotOurs(source),
    })?;
    text.push('\n');
    write_atomic(path, text.as_bytes())
}

/// Writes a file likewise that only its owner may read.
pub(crate) fn write_secret(path: &Path, bytes: &[u8]) -> Result<(), ExperimentError> {
    write_with_mode(path, bytes, 0o600)?;
    // What is charged next must not outlive it.
    let folder = path.parent().unwrap_or_else(|| Path::new("."));
    std::fs::File::open(folder).and_then(|folder| folder.sync_all()).map_err(ExperimentError::io("sync", folder))
}

/// Beginnings of the names of files that are being written and of folders that are being copied.
const WRITING: &str = ".writing-";
pub(super) const COPYING: &str = ".copying-";

/// Removes what killed writes left in `folder` and in the folders below it; one may hold the key of noise. Nobody else may be
/// writing there.
pub(crate) fn remove_unfinished(folder: &Path, depth: usize) -> Result<(), ExperimentError> {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if [WRITING, COPYING].iter().any(|start| name.to_string_lossy().starts_with(start)) {
            let removed = if is_folder { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
            removed.map_err(ExperimentError::io("remove", path))?;
        } else if is_folder && depth > 0 {
            remove_unfinished(&path, depth - 1)?;
        }
    }
    Ok(())
}

/// Writes a file likewise, without waiting for the disk: after a power failure it may be empty, and nobody needs it then.
pub(super) fn write_passing(path: &Path, bytes: &[u8]) -> Result<(), ExperimentError> {
    write_through(path, bytes, 0o666, |_| Ok(()))
}

fn write_with_mode(path: &Path, bytes: &[u8], mode: u32) -> Result<(), ExperimentError> {
    write_through(path, bytes, mode, File::sync_all)
}

#[cfg_attr(not(unix), expect(unused_variables, reason = "permissions of other systems are not set"))]
fn write_through(
    path: &Path,
    bytes: &[u8],
    mode: u32,
    sync: impl Fn(&File) -> std::io::Result<()>,
) -> Result<(), ExperimentError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    let write = || -> std::io::Result<()> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(WRITING);
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(mode));
        let mut file = builder.tempfile_in(folder)?;
        file.write_all(bytes)?;
        sync(file.as_file())?;
        file.persist(path).map_err(|error| error.error)?;
        Ok(())
    };
    write().map_err(ExperimentError::io("write", path))
}
