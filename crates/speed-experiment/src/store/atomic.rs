//! Atomic writes: a file is either complete or absent.

use std::fs::{File, Permissions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde::Serialize;
use tempfile::{Builder, NamedTempFile};

use crate::error::ExperimentError;

/// Writes `bytes` to `path` through a temporary file in the same directory, which is synced before the rename. After a
/// kill or on a full disk, `path` keeps its old content or stays absent; it is never incomplete.
///
/// # Errors
/// If the directory cannot be written.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<(), ExperimentError> {
    // Results are meant to be shared, so the file gets the usual permissions, restricted by the umask, instead of 0600.
    write_through(path, bytes, 0o666, File::sync_all)
}

/// Returns the directory of a file, which is the current one for a name alone.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."))
}

pub(super) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), ExperimentError> {
    write_atomic(path, &json(path, value)?)
}

pub(crate) fn json(path: &Path, value: &impl Serialize) -> Result<Vec<u8>, ExperimentError> {
    let mut text = serde_json::to_string_pretty(value).map_err(ExperimentError::unwritable(path))?;
    text.push('\n');
    Ok(text.into_bytes())
}

/// Atomically writes a file that only its owner may read, and syncs its directory.
pub(crate) fn write_secret(path: &Path, bytes: &[u8]) -> Result<(), ExperimentError> {
    write_through(path, bytes, 0o600, File::sync_all)?;
    sync_folder_of(path)
}

/// Syncs the directory of a secret, because the next charge must not reach the disk before it.
fn sync_folder_of(path: &Path) -> Result<(), ExperimentError> {
    let folder = folder_of(path);
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(ExperimentError::io("sync", folder))
}

/// Writes a file like [`write_secret`] or else like [`write_atomic`], and creates its directory.
pub(crate) fn write_below(path: &Path, bytes: &[u8], is_secret: bool) -> Result<(), ExperimentError> {
    let parent = folder_of(path);
    std::fs::create_dir_all(parent).map_err(ExperimentError::io("create", parent))?;
    if is_secret { write_secret(path, bytes) } else { write_atomic(path, bytes) }
}

/// Number of retries of a write whose temporary file another process removed.
pub(super) const RETRIES: u32 = 5;

/// Prefixes of the names of files that are being written, and of directories that are being copied.
pub(super) const WRITING: &str = ".writing-";
pub(super) const COPYING: &str = ".copying-";

/// Removes the remains of killed writes in `folder` and, to the given depth, in its subdirectories, because a remaining
/// file may hold a noise key. A process that is still writing there retries.
pub(crate) fn remove_unfinished(folder: &Path, depth: usize) -> Result<(), ExperimentError> {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if [WRITING, COPYING].iter().any(|start| name.to_string_lossy().starts_with(start)) {
            let removed = if is_folder { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
            match removed {
                // Its writer has renamed it in the meantime.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                removed => removed.map_err(ExperimentError::io("remove", path))?,
            }
        } else if is_folder && depth > 0 {
            remove_unfinished(&path, depth - 1)?;
        }
    }
    Ok(())
}

/// Atomically writes a file without a sync. After a power failure the file may be empty, which does no harm.
pub(super) fn write_passing(path: &Path, bytes: &[u8]) -> Result<(), ExperimentError> {
    write_through(path, bytes, 0o666, |_| Ok(()))
}

fn write_through(
    path: &Path,
    bytes: &[u8],
    mode: u32,
    sync: impl Fn(&File) -> std::io::Result<()>,
) -> Result<(), ExperimentError> {
    retried(path, || temporary(path, bytes, mode, &sync)?.persist(path).map(drop).map_err(|error| error.error))
}

/// Atomically writes `bytes` to `path` unless the name exists, which link(2) decides, also on NFS. Only its owner may read a secret
/// file. Returns whether the file was written.
pub(crate) fn write_new(path: &Path, bytes: &[u8], is_secret: bool) -> Result<bool, ExperimentError> {
    let mode = if is_secret { 0o600 } else { 0o666 };
    let link = || match std::fs::hard_link(temporary(path, bytes, mode, &File::sync_all)?.path(), path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    };
    let is_new = retried(path, link)?;
    if is_secret {
        sync_folder_of(path)?;
    }
    Ok(is_new)
}

/// Atomically writes a new directory with these files, whose names may contain directories. Only its owner may read a secret
/// one. Returns whether it was written; it is not if the name exists, unless it is an empty directory.
pub(crate) fn write_folder<B: AsRef<[u8]>>(
    path: &Path,
    files: impl IntoIterator<Item = (String, B)>,
    is_secret: bool,
) -> Result<bool, ExperimentError> {
    let modes = if is_secret { [0o700, 0o600] } else { [0o777, 0o666] };
    new_folder(path, files, modes).map_err(|(error, place)| ExperimentError::io("write", place)(error))
}

/// Writes a new directory. The modes, before the umask, are those of the directory and of its files. An error names the file or
/// directory that failed.
pub(super) fn new_folder<B: AsRef<[u8]>>(
    path: &Path,
    files: impl IntoIterator<Item = (String, B)>,
    [of_folder, of_files]: [u32; 2],
) -> Result<bool, (std::io::Error, PathBuf)> {
    let at = |place: PathBuf| move |error: std::io::Error| (error, place);
    let mut builder = Builder::new();
    let folder = builder.prefix(WRITING).permissions(Permissions::from_mode(of_folder)).tempdir_in(folder_of(path));
    let folder = folder.map_err(at(path.to_path_buf()))?;
    for (name, bytes) in files {
        let write = || -> std::io::Result<()> {
            let file = folder.path().join(&name);
            // If another process removed the unfinished directory, it must not be completed without the files before.
            if let Some(parent) = file.parent().filter(|parent| *parent != folder.path()) {
                std::fs::create_dir_all(parent)?;
            }
            let mut file = File::options().write(true).create_new(true).mode(of_files).open(file)?;
            file.write_all(bytes.as_ref())?;
            file.sync_all()
        };
        write().map_err(at(path.join(&name)))?;
    }
    match std::fs::rename(folder.path(), path) {
        Ok(()) => {
            // The directory has its name, so nothing is left to remove.
            let _ = folder.keep();
            Ok(true)
        }
        Err(error) if matches!(error.kind(), ErrorKind::DirectoryNotEmpty | ErrorKind::NotADirectory) => Ok(false),
        Err(error) => Err((error, path.to_path_buf())),
    }
}

/// Calls `write`, which writes the file `path`, and retries if its temporary file vanished, because another process may have opened
/// the run and removed unfinished files.
fn retried<T>(path: &Path, write: impl Fn() -> std::io::Result<T>) -> Result<T, ExperimentError> {
    let mut written = write();
    for _ in 0..RETRIES {
        match &written {
            Err(error) if error.kind() == ErrorKind::NotFound && folder_of(path).is_dir() => written = write(),
            _ => break,
        }
    }
    written.map_err(ExperimentError::io("write", path))
}

fn temporary(
    path: &Path,
    bytes: &[u8],
    mode: u32,
    sync: &impl Fn(&File) -> std::io::Result<()>,
) -> std::io::Result<NamedTempFile> {
    let mut builder = Builder::new();
    builder.prefix(WRITING).permissions(Permissions::from_mode(mode));
    let mut file = builder.tempfile_in(folder_of(path))?;
    file.write_all(bytes)?;
    sync(file.as_file())?;
    Ok(file)
}
