//! Commands of the documents, run in a copy of the files that they read.

use std::env;
use std::path::Path;
use std::process::Command;

use regex::{Captures, Regex};
use speed_core::fixture::copy_folder;
use tempfile::TempDir;

use crate::docs::pages;

/// A temporary copy of parts of the repository, in which commands run and write their files.
pub(crate) struct Shell {
    folder: TempDir,
}

/// Placeholders for data directories, and the environment variables with their paths.
const DATA: [(&str, &str); 2] = [("VOTES", "SPEED_VOTES"), ("DATASETS", "SPEED_DATASETS")];

impl Shell {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for name in ["configs", "results/published"] {
            copy_folder(&pages::root().join(name), &folder.path().join(name));
        }
        Self { folder }
    }

    /// Returns the standard output of a command; `None` if it needs an environment variable that is not set.
    pub(crate) fn run(&self, command: &str) -> Result<Option<String>, String> {
        let mut line = command.to_owned();
        for (word, variable) in DATA {
            let pattern = Regex::new(&format!(r"\b{word}\b")).expect("a pattern");
            if pattern.is_match(&line) {
                let Ok(path) = env::var(variable) else { return Ok(None) };
                line = pattern.replace_all(&line, |_: &Captures| path.clone()).into_owned();
            }
        }
        let rows = Regex::new(r"ROWS:([\d,]+):(\d+)").expect("a pattern");
        line = rows.replace_all(&line, |rows: &Captures| self.rows(&rows[1], &rows[2])).into_owned();
        let speed = Path::new(env!("CARGO_BIN_EXE_speed"));
        let binaries = speed.parent().expect("a folder");
        let others = env::var_os("PATH").unwrap_or_default();
        let path = [binaries.to_owned(), binaries.join("examples")].into_iter().chain(env::split_paths(&others));
        let output = Command::new("bash")
            .args(["-euo", "pipefail", "-c", &line])
            .current_dir(self.folder.path())
            .env("PATH", env::join_paths(path).expect("a path"))
            .output()
            .expect("bash starts");
        if output.status.success() {
            return Ok(Some(String::from_utf8_lossy(&output.stdout).into_owned()));
        }
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        let is_missing = said.contains("command not found");
        let hint = if is_missing { " (scripts/check-docs builds the examples first)" } else { "" };
        Err(format!("`{command}` ended with {}: {said}{hint}", output.status))
    }

    /// Writes the file of histograms for a placeholder: `ROWS:165,85,0:100` is this histogram a hundred times.
    fn rows(&self, counts: &str, times: &str) -> String {
        let counts: Vec<i64> = counts.split(',').map(|count| count.parse().expect("a count")).collect();
        let times: usize = times.parse().expect("a number of rows");
        let mut header = format!("{{'descr': '<i8', 'fortran_order': False, 'shape': ({times}, {}), }}", counts.len());
        let length = (header.len() + 11).next_multiple_of(64) - 11;
        header = format!("{header:length$}\n");
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend(u16::try_from(header.len()).expect("a short header").to_le_bytes());
        bytes.extend(header.as_bytes());
        (0..times).for_each(|_| counts.iter().for_each(|count| bytes.extend(count.to_le_bytes())));
        let path = self.folder.path().join("rows.npy");
        std::fs::write(&path, bytes).expect("a file");
        path.to_string_lossy().into_owned()
    }
}
