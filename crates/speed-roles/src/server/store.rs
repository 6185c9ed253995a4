//! The store of a server between a kill and the next start: the closed sum, and the answers that are done.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use speed_aggregation::{EncryptedAnswer, RoundId, ServerError};
use speed_core::Digest;

use crate::error::RolesError;
use crate::fault::InputFault;
use crate::files::{Access, lock, read_input, write_new};

/// The store of a server. Everything in it is encrypted under the student's key; with central noise the sum is the server's
/// alone all the same, since the server knows the noise.
pub(super) trait Store: Sync {
    /// Returns the closed sum, if there is one, of at most `max` bytes.
    ///
    /// # Errors
    /// If it cannot be read.
    fn sum(&self, max: usize) -> Result<Option<Vec<u8>>, RolesError>;

    /// Keeps the closed sum. From here on its noise is not drawn again, and late messages are late.
    ///
    /// # Errors
    /// If it cannot be written.
    fn keep_sum(&self, state: &[u8]) -> Result<(), RolesError>;

    /// Returns the error of a sum that was kept and is not this round's.
    fn damaged_sum(&self, error: ServerError) -> RolesError;

    /// Returns, for each query, the answer of the sum with this digest that is kept.
    ///
    /// # Errors
    /// If they cannot be read, or are of another sum.
    fn answers(&self, sum: Digest, queries: usize) -> Result<Vec<Option<EncryptedAnswer>>, RolesError>;

    /// Appends answers and waits until they are kept.
    ///
    /// # Errors
    /// If they cannot be written.
    fn keep_answers(&self, answers: &[EncryptedAnswer]) -> Result<(), RolesError>;
}

/// A folder that one server works in at a time.
pub(super) struct FolderStore {
    folder: PathBuf,
    journal: Journal,
    _lock: File,
}

impl FolderStore {
    /// Opens or makes the folder for a round whose answers have `size` bytes, and takes its lock.
    pub(super) fn open(folder: &Path, round: RoundId, size: usize) -> Result<Self, RolesError> {
        match fs::create_dir(folder) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                return Err(RolesError::io("create", folder)(error));
            }
            _ => {}
        }
        let lock = lock(&folder.join("lock"))?;
        let journal = Journal { path: folder.join("answers"), round, size, file: Mutex::new(None) };
        Ok(Self { folder: folder.to_path_buf(), journal, _lock: lock })
    }

    /// Removes the folder. A part that could not be removed is useless, and harmless.
    pub(super) fn remove(self) {
        let _ = fs::remove_dir_all(&self.folder);
    }

    fn sum_path(&self) -> PathBuf {
        self.folder.join("sum")
    }
}

impl Store for FolderStore {
    fn sum(&self, max: usize) -> Result<Option<Vec<u8>>, RolesError> {
        let path = self.sum_path();
        if path.exists() { read_input(&path, max as u64).map(Some) } else { Ok(None) }
    }

    fn keep_sum(&self, state: &[u8]) -> Result<(), RolesError> {
        write_new(&self.sum_path(), state, Access::Owner)
    }

    fn damaged_sum(&self, error: ServerError) -> RolesError {
        RolesError::input(self.sum_path())(InputFault::Sum(error.into()))
    }

    fn answers(&self, sum: Digest, queries: usize) -> Result<Vec<Option<EncryptedAnswer>>, RolesError> {
        self.journal.read(sum, queries)
    }

    fn keep_answers(&self, answers: &[EncryptedAnswer]) -> Result<(), RolesError> {
        self.journal.append(answers)
    }
}

/// A file of answers as they come: the digest of their sum, then each in a record of the same length.
struct Journal {
    path: PathBuf,
    round: RoundId,
    size: usize,
    /// Open at the end of the whole records once they were read.
    file: Mutex<Option<File>>,
}

impl Journal {
    /// Reads the answers of a sum, and cuts off the file after the last whole one.
    fn read(&self, sum: Digest, queries: usize) -> Result<Vec<Option<EncryptedAnswer>>, RolesError> {
        let mut file = self.open()?;
        self.begin(&mut file, sum)?;
        let mut answers = vec![None; queries];
        let mut record = vec![0; self.size];
        let mut good = sum.as_bytes().len() as u64;
        // Whatever follows the first record that is not whole, of another round or double is not of our making, or was cut
        // by a kill: those queries are computed again.
        while file.read_exact(&mut record).is_ok()
            && let Ok(answer) = EncryptedAnswer::from_bytes(&record)
            && answer.round() == self.round
            && let Some(slot @ None) = answers.get_mut(answer.query())
        {
            *slot = Some(answer);
            good += self.size as u64;
        }
        file.set_len(good).map_err(RolesError::io("write", &self.path))?;
        file.seek(SeekFrom::Start(good)).map_err(RolesError::io("read", &self.path))?;
        *self.file.lock().unwrap_or_else(PoisonError::into_inner) = Some(file);
        Ok(answers)
    }

    /// Reads the digest of the sum that the answers are of, and writes it where a kill left none.
    fn begin(&self, file: &mut File, sum: Digest) -> Result<(), RolesError> {
        let mut found = [0; 32];
        let length = file.metadata().map_err(RolesError::io("read", &self.path))?.len();
        if length >= found.len() as u64 {
            file.read_exact(&mut found).map_err(RolesError::io("read", &self.path))?;
            let is_its = found == *sum.as_bytes();
            return if is_its { Ok(()) } else { Err(RolesError::input(&self.path)(InputFault::OtherSum)) };
        }
        file.set_len(0).and_then(|()| file.write_all(sum.as_bytes())).map_err(RolesError::io("write", &self.path))
    }

    /// Appends answers and waits until they are on the disk.
    fn append(&self, answers: &[EncryptedAnswer]) -> Result<(), RolesError> {
        let bytes: Vec<u8> = answers.iter().flat_map(EncryptedAnswer::to_bytes).collect();
        // A thread that panicked while it wrote left a record that the next start cuts off.
        let mut open = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        // Behind a torn record all others would be out of place.
        let file = open.as_mut().expect("answers that are there are read before others are kept");
        file.write_all(&bytes).and_then(|()| file.sync_data()).map_err(RolesError::io("write", &self.path))
    }

    fn open(&self) -> Result<File, RolesError> {
        let mut options = File::options();
        options.create(true).read(true).write(true).truncate(false);
        options.open(&self.path).map_err(RolesError::io("open", &self.path))
    }
}
