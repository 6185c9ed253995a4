//! Reading of finished results, which may be from anywhere: regular files of a limited length.

use std::fs::{self, File};
use std::io::{Error, ErrorKind, Read, Result as IoResult};
use std::path::{Component, Path};

use serde::de::DeserializeOwned;

use super::layout::{stages, table_path};
use crate::error::{ExperimentError, ResultsFault, found_instead};

/// Bytes of a report at most: a thousand times those of a long table.
const MAX_REPORT: u64 = 64 << 20;

/// Bytes at most of a file that a page is made of, and of the small files of a stage.
const MAX_PART: u64 = 16 << 20;

/// Bytes of an output at most: more than those of any network here.
const MAX_OUTPUT: u64 = 8 << 30;

/// Reads a report.
///
/// # Errors
/// If there is none, or it is damaged.
pub(crate) fn read_report<T: DeserializeOwned>(path: &Path) -> Result<T, ExperimentError> {
    let failure = |fault| ExperimentError::Results { path: path.to_path_buf(), fault };
    let bytes = read_up_to(path, MAX_REPORT + 1).map_err(|error| failure(ResultsFault::Unfinished(error)))?;
    if bytes.len() as u64 > MAX_REPORT {
        let found = fs::metadata(path).map_or(MAX_REPORT + 1, |file| file.len());
        return Err(failure(ResultsFault::ReportSize { max: MAX_REPORT, found }));
    }
    serde_json::from_slice(&bytes)
        .map_err(|error| failure(ResultsFault::NoReport { found: found_instead(&bytes, &error) }))
}

/// Reads one of a run's tables or pictures; none where it is missing, or longer than it could be.
pub(crate) fn read_table(run: &Path, name: &str) -> Option<Vec<u8>> {
    read_part(&table_path(run, name))
}

/// Reads a file of the stage `stage`, whose name is from a report; none where it is missing, or longer than it could be.
pub(crate) fn read_stage_file(run: &Path, stage: &str, name: &str) -> Option<Vec<u8>> {
    is_one_folder(stage).then(|| read_part(&stages(run).join(stage).join(name))).flatten()
}

/// Returns whether a name from a report is that of one folder, and leads nowhere else.
pub(super) fn is_one_folder(stage: &str) -> bool {
    Path::new(stage).components().eq([Component::Normal(stage.as_ref())])
}

fn read_part(path: &Path) -> Option<Vec<u8>> {
    // A page is for sending: no link brings another file of this machine into it.
    if fs::symlink_metadata(path).ok()?.is_symlink() {
        return None;
    }
    read_small(path).ok()
}

/// Reads a record of a stage, a lease or the like: a regular file of at most 16 MiB.
///
/// # Errors
/// If it is none, or cannot be read.
pub fn read_small(path: &Path) -> IoResult<Vec<u8>> {
    read_whole(path, MAX_PART)
}

/// Reads an output of a stage, or the payload of a unit: a regular file of at most 8 GiB.
///
/// # Errors
/// If it is none, or cannot be read.
pub(super) fn read_output(path: &Path) -> IoResult<Vec<u8>> {
    read_whole(path, MAX_OUTPUT)
}

fn read_whole(path: &Path, limit: u64) -> IoResult<Vec<u8>> {
    let bytes = read_up_to(path, limit + 1)?;
    if bytes.len() as u64 > limit {
        return Err(Error::new(ErrorKind::FileTooLarge, format!("expected at most {limit} bytes")));
    }
    Ok(bytes)
}

/// Reads a regular file, or its beginning.
fn read_up_to(path: &Path, limit: u64) -> IoResult<Vec<u8>> {
    // Of a pipe or a device the opening alone may wait for ever.
    let there = fs::metadata(path)?;
    if !there.is_file() {
        return Err(Error::new(ErrorKind::InvalidInput, "not a regular file"));
    }
    // At once, so that no piece of a key stays behind where the bytes grow.
    let mut bytes = Vec::new();
    let length = usize::try_from(there.len().min(limit)).unwrap_or(usize::MAX);
    bytes.try_reserve_exact(length).map_err(|_| Error::from(ErrorKind::OutOfMemory))?;
    File::open(path)?.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_is_one_folder_of_the_run() {
        let run = tempfile::tempdir().expect("a folder");
        std::fs::create_dir_all(run.path().join("stages/student-0")).expect("a stage");
        std::fs::write(run.path().join("stages/student-0/a"), "a").expect("a file");
        std::fs::write(run.path().join("a"), "secret").expect("a file");
        let read = |stage: &str| read_stage_file(run.path(), stage, "a");
        assert_eq!(read("student-0"), Some(b"a".to_vec()));
        for stage in ["..", ".", "", "student-0/..", "student-0/../..", "/", "student-0/"] {
            assert_eq!(read(stage), None, "{stage}");
        }
        assert_eq!(read_table(run.path(), "missing"), None);
    }
}
