//! Locks on files, released when they are dropped or their process ends.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use crate::error::{ExperimentError, ResultsFault};

/// An exclusive lock on a file that is made for nothing else.
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Waits for the lock on `path`.
    ///
    /// # Errors
    /// If the file cannot be opened or locked.
    pub(crate) fn wait(path: &Path) -> Result<Self, ExperimentError> {
        let file = open(path)?;
        file.lock().map_err(ExperimentError::io("lock", path))?;
        Ok(Self { _file: file })
    }

    /// Takes the lock on `path`, unless another process has it; `folder` is what it guards.
    ///
    /// # Errors
    /// If another process has it, or the file cannot be opened or locked.
    pub(crate) fn try_take(path: PathBuf, folder: &Path) -> Result<Self, ExperimentError> {
        let file = open(&path)?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => {
                Err(ExperimentError::Results { path: folder.to_path_buf(), fault: ResultsFault::InUse })
            }
            Err(TryLockError::Error(error)) => Err(ExperimentError::io("lock", path)(error)),
        }
    }
}

fn open(path: &Path) -> Result<File, ExperimentError> {
    let file = File::options().create(true).truncate(false).write(true).open(path);
    file.map_err(ExperimentError::io("open", path))
}
