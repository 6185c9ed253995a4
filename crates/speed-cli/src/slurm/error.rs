//! Failures of Slurm's programs.

use std::fmt;

use speed_core::printable;

/// The largest number of characters of a program's output in a message.
const MAX_SHOWN: usize = 300;

/// A failure of one of Slurm's programs.
#[derive(Debug)]
pub(crate) enum SlurmError {
    /// The program does not exist.
    Missing { program: &'static str },
    /// The program could not be started or read.
    Io { program: &'static str, source: std::io::Error },
    /// The program ended with a code other than 0.
    Failed { program: &'static str, code: Option<i32>, output: String },
    /// The program's output was not as expected.
    Unexpected { program: &'static str, expected: &'static str, found: String },
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
            Self::Failed { program, code, output } => {
                let code = code.map_or_else(|| "by a signal".to_owned(), |code| format!("with code {code}"));
                write!(f, "{program} ended {code}: {}", shortened(output))
            }
            Self::Unexpected { program, expected, found } => {
                write!(f, "{program} output {:?}, expected {expected}", shortened(found))
            }
        }
    }
}

/// Returns the beginning of a program's output in one line, escaped for terminal output.
fn shortened(output: &str) -> String {
    let output = printable(&output.trim().replace('\n', "; "));
    match output.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}...", &output[..end]),
        None => output,
    }
}
