//! What a server keeps between a kill and the next start: the closed sum, and the answers that are done.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use speed_aggregation::{EncryptedAnswer, RoundId};

use crate::RolesError;
use crate::files::{Access, lock, read_input, write_new};

/// A folder that one server works in at a time. Everything in it is encrypted under the student's key.
pub(super) struct Store {
    folder: PathBuf,
    _lock: File,
}

impl Store {
    /// Opens or makes the folder and takes its lock.
    pub(super) fn open(folder: &Path) -> Result<Self, RolesError> {
        match fs::create_dir(folder) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                return Err(RolesError::io("create", folder)(error));
            }
            _ => {}
        }
        let lock = lock(&folder.join("lock"))?;
        Ok(Self { folder: folder.to_path_buf(), _lock: lock })
    }

    pub(super) fn sum_path(&self) -> PathBuf {
        self.folder.join("sum")
    }

    /// The closed sum, if there is one.
    pub(super) fn sum(&self, size: usize) -> Result<Option<Vec<u8>>, RolesError> {
        let path = self.sum_path();
        if path.exists() { read_input(&path, size as u64).map(Some) } else { Ok(None) }
    }

    /// Keeps the closed sum. From here on its noise is not drawn again, and late messages are late.
    pub(super) fn keep_sum(&self, state: &[u8]) -> Result<(), RolesError> {
        write_new(&self.sum_path(), state, Access::Owner)
    }

    /// The journal of answers, and those that are in it.
    pub(super) fn journal(
        &self,
        round: RoundId,
        queries: usize,
        size: usize,
    ) -> Result<(Journal, Vec<Option<EncryptedAnswer>>), RolesError> {
        let path = self.folder.join("answers");
        let fail = |action| RolesError::io(action, &path);
        let mut file =
            File::options().create(true).read(true).write(true).truncate(false).open(&path).map_err(fail("open"))?;
        let mut answers = vec![None; queries];
        let mut record = vec![0; size];
        let mut good = 0;
        // Whatever follows the first record that is not whole, of another round or double is not of our making, or was cut
        // by a kill: those queries are computed again.
        while file.read_exact(&mut record).is_ok()
            && let Ok(answer) = EncryptedAnswer::from_bytes(&record)
            && answer.round() == round
            && let Some(slot @ None) = answers.get_mut(answer.query())
        {
            *slot = Some(answer);
            good += size as u64;
        }
        file.set_len(good).map_err(fail("write"))?;
        file.seek(SeekFrom::Start(good)).map_err(fail("read"))?;
        Ok((Journal { path, file: Mutex::new(file) }, answers))
    }

    /// Removes the folder. What could not be removed is useless, and harmless.
    pub(super) fn remove(self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Answers as they come, each in a record of the same length.
pub(super) struct Journal {
    path: PathBuf,
    file: Mutex<File>,
}

impl Journal {
    /// Appends answers and waits until they are on the disk.
    pub(super) fn append(&self, answers: &[EncryptedAnswer]) -> Result<(), RolesError> {
        let bytes: Vec<u8> = answers.iter().flat_map(EncryptedAnswer::to_bytes).collect();
        // A thread that panicked while it wrote left a record that the next start cuts off.
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(&bytes).and_then(|()| file.sync_data()).map_err(RolesError::io("write", &self.path))
    }
}
