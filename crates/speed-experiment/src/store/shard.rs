//! Locks on files, which the system releases when they are dropped or their process ends, and shards at work in a run's
//! directory: each holds a lock on a file of its name.

use std::fmt;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use super::layout;
use crate::error::ExperimentError;

const ENDING: &str = ".lock";

/// Attempts to take a lock, and the time between them. A process that only checks a lock holds it for a moment, on network storage
/// for longer, so one failed attempt does not mean that it is taken.
const ATTEMPTS: usize = 10;
const MOMENT: Duration = Duration::from_millis(50);

/// An exclusive lock on a file that exists only for the lock.
pub struct Lock {
    _file: File,
}

impl Lock {
    pub(crate) fn wait(path: &Path) -> Result<Self, ExperimentError> {
        let file = open_lock(path)?;
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
        let file = open_lock(path)?;
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

pub(crate) fn is_in_use(run: &Path) -> bool {
    Lock::is_held(&run.join(layout::LOCK))
}

fn open_lock(path: &Path) -> Result<File, ExperimentError> {
    let file = File::options().create(true).truncate(false).write(true).open(path);
    file.map_err(ExperimentError::io("open", path))
}

/// A share of one stage's units: the units whose number (0, 1, 2, ...) has the remainder `number - 1` modulo `of`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Shard {
    /// The kind of the stage.
    pub stage: String,
    /// The number of all shards.
    pub of: usize,
    /// Its number, from 1.
    #[serde(rename = "shard")]
    pub number: usize,
}

impl Shard {
    /// Returns the shards at work in the run in the directory `run`, sorted. Processes on other machines are seen if the
    /// file system shares locks.
    pub fn at_work(run: &Path) -> Vec<Self> {
        let mut all: Vec<Self> = Self::begun_in(run).filter(|shard| shard.is_at_work(run)).collect();
        all.sort();
        all
    }

    /// Returns whether the unit with this number, from 0, is the shard's.
    pub(crate) fn has(&self, unit: usize) -> bool {
        unit % self.of == self.number - 1
    }

    /// Takes the shard's lock in the directory `run`, which exists.
    /// Fails if the same shard, a shard of another division of the stage, or a process on all stages works there, or the file
    /// system has no locks.
    pub(super) fn lock(&self, run: &Path) -> Result<Lock, ExperimentError> {
        let folder = layout::shards(run);
        fs::create_dir_all(&folder).map_err(ExperimentError::io("create", &folder))?;
        let lock = Lock::attempt(&self.path(run))?.ok_or_else(|| self.in_use(run))?;
        // Each process takes its own lock before it looks for others, so of two processes at least one sees the other.
        if is_in_use(run) {
            return Err(ExperimentError::in_use(run));
        }
        let is_other_division = |other: &Self| other.stage == self.stage && other.of != self.of;
        // Only the locks of other divisions are tested: a test takes the lock for a moment, and this shard's siblings may
        // be taking theirs.
        match Self::begun_in(run).filter(is_other_division).find(|other| other.is_at_work(run)) {
            Some(other) => Err(other.in_use(run)),
            None => Ok(lock),
        }
    }

    pub(super) fn in_use(&self, run: &Path) -> ExperimentError {
        ExperimentError::results(run, format_args!("{self} works in this folder: wait until it finishes, or stop it"))
    }

    fn begun_in(run: &Path) -> impl Iterator<Item = Self> {
        let files = fs::read_dir(layout::shards(run)).into_iter().flatten().flatten();
        files.filter_map(|file| Self::from_file_name(&file.file_name().to_string_lossy()))
    }

    fn is_at_work(&self, run: &Path) -> bool {
        Lock::is_held(&self.path(run))
    }

    fn path(&self, run: &Path) -> PathBuf {
        layout::shards(run).join(self.file_name())
    }

    fn file_name(&self) -> String {
        format!("{}-{}-of-{}{ENDING}", self.stage, self.number, self.of)
    }

    /// Reads the name of a lock file, which is untrusted; `None` for any name that no shard has.
    fn from_file_name(name: &str) -> Option<Self> {
        let (stage, share) = name.strip_suffix(ENDING)?.split_once('-')?;
        let (number, of) = share.split_once("-of-")?;
        let shard = Self { stage: stage.to_owned(), number: number.parse().ok()?, of: of.parse().ok()? };
        let is_ours = stage.bytes().all(|byte| byte.is_ascii_lowercase()) && shard.file_name() == name;
        is_ours.then_some(shard)
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "shard {}/{} of {}", self.number, self.of, self.stage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shard(stage: &str, number: usize, of: usize) -> Shard {
        Shard { stage: stage.into(), number, of }
    }

    #[test]
    fn a_shard_works_beside_others_of_its_division_only() {
        let run = tempfile::tempdir().expect("a folder");
        let first = shard("teachers", 1, 3);
        let held = first.lock(run.path()).expect("the first");
        assert_eq!(Shard::at_work(run.path()), std::slice::from_ref(&first));
        for other in [first.clone(), shard("teachers", 2, 4)] {
            let error = other.lock(run.path()).map(drop).expect_err("refused").to_string();
            assert!(error.contains("shard 1/3 of teachers"), "{error}");
        }
        let others = [shard("teachers", 2, 3), shard("student", 1, 2)].map(|other| other.lock(run.path()));
        assert!(others.iter().all(Result::is_ok));
        drop((held, others));
        assert!(Shard::at_work(run.path()).is_empty());
        drop(first.lock(run.path()).expect("free again"));
        let _whole = Lock::try_take(run.path().join(layout::LOCK), run.path()).expect("the run's lock");
        assert!(first.lock(run.path()).is_err());
    }

    #[test]
    fn other_names_are_no_locks_of_shards() {
        for name in ["teachers-1-of-3.lock", "student-12-of-40.lock"] {
            assert_eq!(Shard::from_file_name(name).expect(name).file_name(), name);
        }
        for name in
            ["", "teachers.lock", "teachers-1-of-3", "teachers-01-of-3.lock", "\u{1b}-1-of-3.lock", "a-1-of--3.lock"]
        {
            assert_eq!(Shard::from_file_name(name), None, "{name:?}");
        }
    }
}
