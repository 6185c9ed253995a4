//! Failures of Slurm's programs.

use std::fmt;

use speed_core::{ExitCode, printable};

/// Characters of a program's words in a message at most.
const MAX_SAID: usize = 300;

/// A failure of one of Slurm's programs.
#[derive(Debug)]
pub(crate) enum SlurmError {
    /// It is not there.
    Missing { program: &'static str },
    /// It could not be started, or not be read.
    Io { program: &'static str, source: std::io::Error },
    /// It ended with another code than 0.
    Failed { program: &'static str, code: Option<i32>, said: String },
    /// It said something else than was asked for.
    Unexpected { program: &'static str, expected: &'static str, found: String },
}

impl SlurmError {
    /// Returns the exit code that it means.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::InputOutput
    }
}

impl fmt::Display for SlurmError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { program } => write!(
                f,
                "{program} is not on PATH: submit from a machine of the cluster, or install Slurm's programs (Debian and Ubuntu: \
                 slurm-client). --dry-run prints the scripts, which run by hand or under another scheduler too"
            ),
            Self::Io { program, source } => write!(f, "cannot run {program}: {source}"),
            Self::Failed { program, code, said } => {
                let code = code.map_or_else(|| "by a signal".to_owned(), |code| format!("with code {code}"));
                write!(f, "{program} ended {code}: {}", shortened(said))
            }
            Self::Unexpected { program, expected, found } => {
                write!(f, "{program} said {:?}, expected {expected}", shortened(found))
            }
        }
    }
}

/// Returns the beginning of what a program said, in one line without what would move a terminal's cursor.
fn shortened(said: &str) -> String {
    let said = printable(&said.trim().replace('\n', "; "));
    match said.char_indices().nth(MAX_SAID) {
        Some((end, _)) => format!("{}...", &said[..end]),
        None => said,
    }
}
