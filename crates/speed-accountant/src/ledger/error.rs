//! Errors of a ledger.

use std::path::PathBuf;

use speed_core::{ExitCode, printable_path};

use crate::AccountError;

/// An error of a ledger.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the fields")]
#[non_exhaustive]
pub enum LedgerError {
    /// Reading, writing or locking failed.
    #[error("cannot {action} ledger {}: {source}", printable_path(path))]
    Io { action: &'static str, path: PathBuf, source: std::io::Error },
    /// A line differs from the one that was written.
    #[error("ledger {}, line {line}: {damage}", printable_path(path))]
    Damaged {
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        damage: String,
    },
    /// The queries exceed the budget. Nothing was charged.
    #[error("ledger {}: {reason}", printable_path(path))]
    OverBudget { path: PathBuf, budget: f64, reason: String },
    /// The queries cannot be charged.
    #[error("ledger {}: {reason}", printable_path(path))]
    Refused { path: PathBuf, reason: String },
    /// An error of the accountant.
    #[error(transparent)]
    Account(#[from] AccountError),
}

impl LedgerError {
    /// Returns the documented exit code.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Refused { .. } => ExitCode::Usage,
            Self::Damaged { .. } => ExitCode::Input,
            Self::Io { source, .. } => match source.kind() {
                std::io::ErrorKind::NotFound => ExitCode::Input,
                std::io::ErrorKind::AlreadyExists => ExitCode::Results,
                _ => ExitCode::InputOutput,
            },
            Self::OverBudget { .. } | Self::Account(_) => ExitCode::Computation,
        }
    }
}
