//! Why a ledger refuses.

use std::path::PathBuf;

use crate::AccountError;

/// Why a ledger refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LedgerError {
    /// Reading, writing or locking failed.
    #[error("cannot {action} ledger {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// The operating system's word.
        source: std::io::Error,
    },
    /// A line is not what was written.
    #[error("ledger {}, line {line}: {message}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// Expected and found.
        message: String,
    },
    /// The queries would pass the budget. Nothing was charged.
    #[error(
        "ledger {}: {queries} more queries would make epsilon {would_be:.6}, but the budget is {budget} at delta {delta:e} \
         ({spent:.6} is spent); nothing was charged",
        path.display()
    )]
    OverBudget {
        /// The file.
        path: PathBuf,
        /// How many queries were asked for.
        queries: usize,
        /// Epsilon with them.
        would_be: f64,
        /// Epsilon of the budget.
        budget: f64,
        /// Delta of the budget.
        delta: f64,
        /// Epsilon without them.
        spent: f64,
    },
    /// The queries cannot be charged.
    #[error("ledger {}: {message}", path.display())]
    Refused {
        /// The file.
        path: PathBuf,
        /// Why.
        message: String,
    },
    /// The accountant refused.
    #[error(transparent)]
    Account(#[from] AccountError),
}
