//! Reads finished results, which are untrusted input: only regular files of limited length.

use std::fs;
use std::io::{ErrorKind, Result as IoResult};
use std::path::{Component, Path};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use speed_core::read_regular;

use super::layout::{stages, table_path};
use crate::error::{ExperimentError, found_instead};
use crate::report::SCHEMA;

/// Maximum length of a report in bytes: a thousand times the length of a long table.
const MAX_REPORT: u64 = 64 << 20;

/// Maximum length in bytes of a file that is included in a page, and of a stage's small files.
const MAX_PART: u64 = 16 << 20;

/// Maximum length of an output in bytes: more than any network here needs.
const MAX_OUTPUT: u64 = 8 << 30;

/// Maximum length of a user's text file in bytes.
const MAX_TEXT: u64 = 64 << 20;

pub(crate) fn read_text(path: &Path) -> Result<Vec<u8>, ExperimentError> {
    read_regular(path, MAX_TEXT).map_err(ExperimentError::unreadable(path))
}

#[derive(Deserialize)]
struct Stated {
    schema: Option<u32>,
}

pub(crate) fn read_report<T: DeserializeOwned>(path: &Path) -> Result<T, ExperimentError> {
    let bytes = read_results(path)?;
    let Stated { schema: found } = parse(path, &bytes)?;
    if found != Some(SCHEMA) {
        return Err(ExperimentError::other_format(path, SCHEMA, found));
    }
    parse(path, &bytes)
}

pub(crate) fn read_table_alone<T: DeserializeOwned>(path: &Path) -> Result<T, ExperimentError> {
    parse(path, &read_results(path)?)
}

fn read_results(path: &Path) -> Result<Vec<u8>, ExperimentError> {
    read_regular(path, MAX_REPORT).map_err(|error| match error.kind() {
        ErrorKind::FileTooLarge => {
            let found = fs::metadata(path).map_or(MAX_REPORT + 1, |file| file.len());
            ExperimentError::unlikely(format_args!("a file of at most {MAX_REPORT} bytes"), found).at(path)
        }
        _ => {
            let fault = format!("no finished run here: expected its report, which cannot be read ({error})");
            ExperimentError::results(path, format_args!("{fault}; `speed list` shows the runs"))
        }
    })
}

fn parse<T: DeserializeOwned>(path: &Path, bytes: &[u8]) -> Result<T, ExperimentError> {
    serde_json::from_slice(bytes).map_err(|error| {
        let found = format!("{}; `speed run` with the same config writes it again", found_instead(bytes, &error));
        ExperimentError::unlikely("a report in JSON", found).at(path)
    })
}

/// Reads a table or picture of a run; `None` if it is missing or too long.
pub(crate) fn read_table(run: &Path, name: &str) -> Option<Vec<u8>> {
    read_part(&table_path(run, name))
}

/// Reads a file of the stage `stage`, a name from an untrusted report; `None` if it is missing or too long.
pub(crate) fn read_stage_file(run: &Path, stage: &str, name: &str) -> Option<Vec<u8>> {
    is_one_name(stage).then(|| read_part(&stages(run).join(stage).join(name))).flatten()
}

/// Returns whether an untrusted name denotes exactly one file or directory, and not a path elsewhere.
pub(crate) fn is_one_name(name: &str) -> bool {
    Path::new(name).components().eq([Component::Normal(name.as_ref())])
}

fn read_part(path: &Path) -> Option<Vec<u8>> {
    // A page may be sent to others, so a link must not bring another file of this machine into it.
    if fs::symlink_metadata(path).ok()?.is_symlink() {
        return None;
    }
    read_small(path).ok()
}

/// Reads a small file, such as a stage's record: a regular file of at most 16 MiB.
///
/// # Errors
/// If it is not such a file, or cannot be read.
pub fn read_small(path: &Path) -> IoResult<Vec<u8>> {
    read_regular(path, MAX_PART)
}

/// Reads an output of a stage or a payload of a unit: a regular file of at most 8 GiB.
pub(super) fn read_output(path: &Path) -> IoResult<Vec<u8>> {
    read_regular(path, MAX_OUTPUT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_is_one_name_of_the_run() {
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
