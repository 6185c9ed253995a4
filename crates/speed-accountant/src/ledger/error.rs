//! Errors of a ledger.

use std::path::PathBuf;

use speed_core::{ExitCode, printable_path};

use crate::{AccountError, CompositionRule};

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
    #[error("ledger {}: {}", printable_path(path), over_budget(*queries, *would_be, *budget, *delta, *spent, *rule, calibrate))]
    OverBudget {
        path: PathBuf,
        queries: usize,
        would_be: f64,
        budget: f64,
        delta: f64,
        spent: f64,
        rule: CompositionRule,
        /// Options of `speed calibrate` that find noise within the budget.
        calibrate: String,
    },
    /// The queries cannot be charged.
    #[error("ledger {}: {reason}", printable_path(path))]
    Refused { path: PathBuf, reason: String },
    /// An error of the accountant.
    #[error(transparent)]
    Account(#[from] AccountError),
}

/// Describes why queries exceed a budget, and the next step.
fn over_budget(
    queries: usize,
    would_be: f64,
    budget: f64,
    delta: f64,
    spent: f64,
    rule: CompositionRule,
    calibrate: &str,
) -> String {
    if would_be.is_infinite() {
        return format!(
            "with {queries} more queries, no finite epsilon is known at delta {delta:e} and the budget's epsilon of {budget}: the \
             samplers' distance from exact noise exceeds delta, or the noise is too small; nothing was charged; a ledger with a \
             larger delta or a smaller budget, or more noise, may allow them"
        );
    }
    format!(
        "{queries} more queries would make epsilon {would_be:.6}, but the budget is {budget} at delta {delta:e} ({spent:.6} is \
         spent); nothing was charged; the rule: {rule}; `speed calibrate {calibrate} --queries {queries}`, with the charge's own \
         ratio, teachers, classes and threshold, finds noise that the budget allows"
    )
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
