//! Locks on files, released when they are dropped or their process ends.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::ExperimentError;

/// A process that only checks whether a lock is held has it for a moment, on network storage for longer: so often is a lock tried, at
/// these intervals, before it counts as another process's.
const ATTEMPTS: usize = 10;
const MOMENT: Duration = Duration::from_millis(50);

/// An exclusive lock on a file that exists only for the lock.
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Waits for the lock on `path`.
    pub(crate) fn wait(path: &Path) -> Result<Self, ExperimentError> {
        let file = open(path)?;
        file.lock().map_err(ExperimentError::io("lock", path))?;
        Ok(Self { _file: file })
    }

    /// Takes the lock on `path`, unless another process has it; `folder` is the guarded directory.
    ///
    /// # Errors
    /// If another process has it, or the file cannot be opened or locked.
    pub fn try_take(path: PathBuf, folder: &Path) -> Result<Self, ExperimentError> {
        Self::attempt(&path)?.ok_or_else(|| ExperimentError::in_use(folder))
    }

    /// Takes the lock on `path`; `None` if another process has it.
    pub(super) fn attempt(path: &Path) -> Result<Option<Self>, ExperimentError> {
        let file = open(path)?;
        for attempt in 0..ATTEMPTS {
            if attempt > 0 {
                std::thread::sleep(MOMENT);
            }
            match file.try_lock() {
                Ok(()) => return Ok(Some(Self { _file: file })),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(ExperimentError::io("lock", path)(error)),
            }
        }
        Ok(None)
    }

    /// Returns whether another process has the lock on `path`; writes nothing.
    pub(super) fn is_held(path: &Path) -> bool {
        File::open(path).is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
    }
}

fn open(path: &Path) -> Result<File, ExperimentError> {
    let file = File::options().create(true).truncate(false).write(true).open(path);
    file.map_err(ExperimentError::io("open", path))
}
