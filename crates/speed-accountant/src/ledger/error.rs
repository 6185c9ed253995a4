//! Errors of a ledger.

use std::path::PathBuf;

use speed_core::{ExitCode, printable_path};
use speed_mechanism::Mechanism;

use crate::{AccountError, CompositionRule, PrivacyEvent};

/// An error of a ledger.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the fields")]
#[non_exhaustive]
pub enum LedgerError {
    /// Reading, writing or locking failed.
    #[error("cannot {action} ledger {}: {source}", printable_path(path))]
    Io { action: &'static str, path: PathBuf, source: std::io::Error },
    /// A line differs from the one that was written.
    #[error("ledger {}, line {line}: {source}", printable_path(path))]
    Damaged {
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        source: Damage,
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
    #[error("ledger {}: {source}", printable_path(path))]
    Refused { path: PathBuf, source: Refusal },
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
    #[must_use]
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

/// A difference between a line and the one that was written.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the fields")]
#[non_exhaustive]
pub enum Damage {
    /// The file is not text.
    #[error("{0}")]
    NotText(#[from] std::str::Utf8Error),
    /// The line has only one part.
    #[error("expected an entry and a checksum")]
    NoChecksum,
    /// The checksum does not match the line.
    #[error("checksum is {found}, expected {expected}: a line was changed or is missing")]
    Checksum { found: String, expected: String },
    /// The entry is invalid.
    #[error("{0}")]
    Entry(#[from] serde_json::Error),
    /// An opening line is not the first line, or has another format.
    #[error("expected one opening line of format {expected}, found format {found}")]
    Opening { found: u32, expected: u32 },
    /// The opening line is missing.
    #[error("expected an opening line with the budget")]
    NoOpening,
    /// There are more queries than can be composed.
    #[error("{found} queries are charged, expected at most {max}")]
    Queries { found: usize, max: usize },
    /// A threshold is not a valid number of votes for this noise.
    #[error("threshold is {found:?}, expected a number of votes up to 1e15, and an integer for integer noise")]
    Threshold { found: f64 },
    /// Checks without a threshold.
    #[error("check is true, but there is no threshold: expected a number of votes")]
    CheckThreshold,
    /// The distance of a sampler is not between 0 and 1.
    #[error("sampling_distance is {found}, expected a number from 0 to 1")]
    TotalVariation { found: f64 },
    /// Numbers of teachers without a claim for the party.
    #[error(transparent)]
    Party(#[from] PartyFault),
    /// The last line is incomplete.
    #[error(
        "only {bytes} bytes are left of it: a crash cut it short and its queries were never answered (the next charge \
         replaces it), or the file is an incomplete copy"
    )]
    Torn {
        /// Number of bytes present.
        bytes: u64,
    },
}

/// A charge whose numbers of teachers have no claim for a party.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the fields")]
#[non_exhaustive]
pub enum PartyFault {
    /// The party has no teacher, more than all parties, or too many.
    #[error("party_teachers is {found}, expected 1 to {max}")]
    Teachers { found: usize, max: usize },
    /// The party has several teachers, and the number of all teachers is unknown.
    #[error(
        "party_teachers is {party_teachers}, but teachers is missing: expected the number of teachers of all parties"
    )]
    NoTeachers { party_teachers: usize },
    /// The claim for a party of several teachers does not hold for this number of classes.
    #[error(
        "classes is {}, expected 2 to {} for a party of several teachers",
        found.map_or_else(|| "unknown".to_owned(), |found| found.to_string()),
        PrivacyEvent::MAX_PARTY_CLASSES
    )]
    Classes { found: Option<usize> },
}

/// The reason why queries cannot be charged.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the fields")]
#[non_exhaustive]
pub enum Refusal {
    /// The budget is not a positive finite epsilon.
    #[error("budget epsilon is {found}, expected a finite number above 0")]
    Budget { found: f64 },
    /// Neither the ledger nor its caller has a budget.
    #[error("it has no budget of its own, expected a limit: give --epsilon")]
    NoBudget,
    /// There are fewer than two classes.
    #[error("classes is {found}, expected at least 2")]
    Classes { found: usize },
    /// The number of queries is zero, or their noise is Gaussian.
    #[error("expected at least one query of Laplace, Skellam or binomial noise, found {queries} of {mechanism}")]
    Queries { queries: usize, mechanism: Mechanism },
    /// Numbers of teachers without a claim for the party.
    #[error(transparent)]
    Party(#[from] PartyFault),
    /// The noise was used for another question.
    #[error("this noise is charged for other answers")]
    OtherAnswers,
    /// Answers to a question that may be answered once.
    #[error(
        "this party's answer to the round is charged with other noise: a second version of the same answers would halve the noise; use the registry that has the first"
    )]
    Released,
    /// An entry cannot be written as JSON.
    #[error("{0}")]
    Entry(#[from] serde_json::Error),
}
