//! Files that are either whole or absent.

use std::fs::File;
use std::io::{ErrorKind, Write};
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
    write_atomic(path, &json(path, value)?)
}

/// Returns the bytes of a JSON file.
pub(super) fn json(path: &Path, value: &impl Serialize) -> Result<Vec<u8>, ExperimentError> {
    let mut text = serde_json::to_string_pretty(value).map_err(|source| ExperimentError::Results {
        path: path.to_path_buf(),
        fault: ResultsFault::Unwritable(source),
    })?;
    text.push('\n');
    Ok(text.into_bytes())
}

/// Writes a file likewise that only its owner may read.
pub(crate) fn write_secret(path: &Path, bytes: &[u8]) -> Result<(), ExperimentError> {
    write_with_mode(path, bytes, 0o600)?;
    // What is charged next must not outlive it.
    let folder = path.parent().unwrap_or_else(|| Path::new("."));
    std::fs::File::open(folder).and_then(|folder| folder.sync_all()).map_err(ExperimentError::io("sync", folder))
}

/// Times that a write is tried again whose temporary file was taken away.
pub(super) const RETRIES: u32 = 5;

/// Writes such a file unless the name exists, as [`write_new`] does; returns whether it did.
pub(super) fn write_new_secret(path: &Path, bytes: &[u8]) -> Result<bool, ExperimentError> {
    let is_new = link_new(path, bytes, 0o600)?;
    let folder = path.parent().unwrap_or_else(|| Path::new("."));
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(ExperimentError::io("sync", folder))?;
    Ok(is_new)
}

/// Beginnings of the names of files that are being written and of folders that are being copied.
pub(super) const WRITING: &str = ".writing-";
pub(super) const COPYING: &str = ".copying-";

/// Removes what killed writes left in `folder` and in the folders below it; one may hold the key of noise. Who else is writing there
/// does so again.
pub(crate) fn remove_unfinished(folder: &Path, depth: usize) -> Result<(), ExperimentError> {
    remove_unfinished_unless(folder, depth, &|_| false)
}

/// Removes them likewise, but in no folder below that `is_used`.
pub(super) fn remove_unfinished_unless(
    folder: &Path,
    depth: usize,
    is_used: &dyn Fn(&Path) -> bool,
) -> Result<(), ExperimentError> {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if [WRITING, COPYING].iter().any(|start| name.to_string_lossy().starts_with(start)) {
            let removed = if is_folder { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
            match removed {
                // Renamed in the meantime, by whoever wrote it.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                removed => removed.map_err(ExperimentError::io("remove", path))?,
            }
        } else if is_folder && depth > 0 && !is_used(&path) {
            remove_unfinished_unless(&path, depth - 1, is_used)?;
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

fn write_through(
    path: &Path,
    bytes: &[u8],
    mode: u32,
    sync: impl Fn(&File) -> std::io::Result<()>,
) -> Result<(), ExperimentError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    let write = || -> std::io::Result<()> {
        let file = temporary(folder, bytes, mode, &sync)?;
        file.persist(path).map_err(|error| error.error)?;
        Ok(())
    };
    retried(folder, write).map_err(ExperimentError::io("write", path))
}

/// Writes `bytes` to `path` likewise unless the name exists, as link(2) decides it, on NFS as well; returns whether it did.
///
/// # Errors
/// If the folder cannot be written.
pub(super) fn write_new(path: &Path, bytes: &[u8]) -> Result<bool, ExperimentError> {
    link_new(path, bytes, 0o666)
}

fn link_new(path: &Path, bytes: &[u8], mode: u32) -> Result<bool, ExperimentError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    let write = || match std::fs::hard_link(temporary(folder, bytes, mode, &File::sync_all)?.path(), path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    };
    retried(folder, write).map_err(ExperimentError::io("write", path))
}

/// Tries again where a temporary file vanished: another process may have begun the run anew and tidied up.
fn retried<T>(folder: &Path, write: impl Fn() -> std::io::Result<T>) -> std::io::Result<T> {
    let vanished = |result: &std::io::Result<T>| {
        result.as_ref().is_err_and(|error| error.kind() == ErrorKind::NotFound) && folder.is_dir()
    };
    let mut written = write();
    for _ in 0..RETRIES {
        if !vanished(&written) {
            break;
        }
        written = write();
    }
    written
}

/// Writes a temporary file beside the one that it becomes.
#[cfg_attr(not(unix), expect(unused_variables, reason = "permissions of other systems are not set"))]
fn temporary(
    folder: &Path,
    bytes: &[u8],
    mode: u32,
    sync: &impl Fn(&File) -> std::io::Result<()>,
) -> std::io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(WRITING);
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(mode));
    let mut file = builder.tempfile_in(folder)?;
    file.write_all(bytes)?;
    sync(file.as_file())?;
    Ok(file)
}
