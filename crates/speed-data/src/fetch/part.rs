//! A download in progress: a file next to its final place, locked by one process.

use crate::DataError;
use crate::error::io_error;
use speed_core::printable_path;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The unfinished file `TARGET.part`, open for appending and locked.
pub(super) struct PartialFile {
    file: File,
    pub(super) path: PathBuf,
    pub(super) len: u64,
}

impl PartialFile {
    /// Opens the file of an earlier attempt, or a new file.
    pub(super) fn open(target: &Path) -> Result<Self, DataError> {
        let path = target.with_added_extension("part");
        let options = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let mut file = options.map_err(io_error("open", &path))?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => {
                let path = printable_path(&path);
                let text = format!("another process is downloading {path}; wait until it has finished");
                return Err(DataError::Other(text));
            }
            // Some network file systems have no locks. The checks before the rename do not need a lock.
            Ok(()) | Err(TryLockError::Error(_)) => {}
        }
        let len = file.seek(SeekFrom::End(0)).map_err(io_error("read", &path))?;
        Ok(Self { file, path, len })
    }

    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<(), DataError> {
        self.file.write_all(bytes).map_err(io_error("write", &self.path))?;
        self.len += bytes.len() as u64;
        Ok(())
    }

    pub(super) fn clear(&mut self) -> Result<(), DataError> {
        let cleared = self.file.set_len(0).and_then(|()| self.file.seek(SeekFrom::Start(0)));
        cleared.map_err(io_error("write", &self.path))?;
        self.len = 0;
        Ok(())
    }

    /// Renames the file to its final name after it is safely on disk; refuses to replace an existing file.
    pub(super) fn put_in_place(&self, target: &Path) -> Result<(), DataError> {
        self.file.sync_all().map_err(io_error("write", &self.path))?;
        if target.exists() {
            return Err(io_error("create", target)(std::io::ErrorKind::AlreadyExists.into()));
        }
        fs::rename(&self.path, target).map_err(io_error("create", target))
    }
}
