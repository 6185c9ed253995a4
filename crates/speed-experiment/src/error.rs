//! Everything that can stop an experiment, each kind with an exit code of its own.

use std::path::PathBuf;

use speed_batched::DeviceError;
use speed_ledger::LedgerError;

use crate::config::ConfigError;

/// An experiment that stopped. [`ExperimentError::exit_code`] is what the command line returns.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// The config cannot run.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Images are missing or wrong.
    #[error(transparent)]
    Data(#[from] speed_data::DataError),
    /// A file of votes or queries is missing or wrong.
    #[error("{}: {message}", path.display())]
    Input {
        /// The file.
        path: PathBuf,
        /// Expected and found.
        message: String,
    },
    /// Inputs are fine one by one and do not fit together.
    #[error("{0}")]
    Mismatch(String),
    /// The results folder is in use, belongs to another config, or holds something unexpected.
    #[error("{}: {message}", path.display())]
    Results {
        /// The folder or file.
        path: PathBuf,
        /// What is wrong and what to do.
        message: String,
    },
    /// Reading or writing failed, a full disk for example.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// The operating system's word.
        source: std::io::Error,
    },
    /// A teacher failed.
    #[error(transparent)]
    Teacher(#[from] speed_teacher::TeacherError),
    /// Votes do not make a table.
    #[error(transparent)]
    Votes(#[from] speed_core::VotesError),
    /// Threads could not be started.
    #[error("cannot start a thread: {reason}")]
    Threads {
        /// The system's message.
        reason: String,
    },
    /// The device that trainings are sent to is not there, or failed.
    #[error("device: {0}")]
    Device(#[from] DeviceError),
    /// Another run in this process computes with the other arithmetic.
    #[error(transparent)]
    Arithmetic(#[from] speed_nn::matrix::OtherArithmetic),
    /// The noise cannot be drawn.
    #[error(transparent)]
    Mechanism(#[from] speed_mechanism::MechanismError),
    /// The aggregation failed.
    #[error(transparent)]
    Aggregation(#[from] speed_aggregation::AggregationError),
    /// The accountant refused.
    #[error(transparent)]
    Account(#[from] speed_accountant::AccountError),
    /// The ledger refused.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// An audit refuted a claim.
    #[error("{0}")]
    Audit(String),
    /// A student failed.
    #[error("student repeat {repeat} on the labels of row {row:?}: {message}")]
    Student {
        /// Which repeat.
        repeat: usize,
        /// The first row with these labels.
        row: String,
        /// Why.
        message: String,
    },
}

impl From<speed_teacher::EnsembleError<Self>> for ExperimentError {
    fn from(error: speed_teacher::EnsembleError<Self>) -> Self {
        match error {
            speed_teacher::EnsembleError::Teacher(error) => Self::Teacher(error),
            speed_teacher::EnsembleError::Caller(error) => error,
            speed_teacher::EnsembleError::Votes(error) => Self::Votes(error),
            speed_teacher::EnsembleError::Threads { reason } => Self::Threads { reason },
        }
    }
}

impl From<speed_batched::TeachersError<Self>> for ExperimentError {
    fn from(error: speed_batched::TeachersError<Self>) -> Self {
        use speed_batched::TeachersError;
        match error {
            TeachersError::Teacher(error) => Self::Teacher(error),
            TeachersError::Device(error) => Self::Device(error),
            TeachersError::Caller(error) => error,
            error @ TeachersError::Architecture => Self::Mismatch(error.to_string()),
        }
    }
}

impl ExperimentError {
    /// The documented exit code: 2 config or command line, 3 input data or ledger, 4 results folder or a file that is there, 5
    /// reading or writing, 6 computation or budget.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Config(_) | Self::Device(DeviceError::NotBuilt) => 2,
            Self::Data(_) | Self::Input { .. } | Self::Mismatch(_) => 3,
            Self::Results { .. } => 4,
            Self::Io { .. } => 5,
            Self::Ledger(error) => match error {
                LedgerError::Refused { .. } => 2,
                LedgerError::Damaged { .. } => 3,
                LedgerError::Io { source, .. } => match source.kind() {
                    std::io::ErrorKind::NotFound => 3,
                    std::io::ErrorKind::AlreadyExists => 4,
                    _ => 5,
                },
                _ => 6,
            },
            Self::Teacher(_)
            | Self::Votes(_)
            | Self::Threads { .. }
            | Self::Device(_)
            | Self::Arithmetic(_)
            | Self::Mechanism(_)
            | Self::Aggregation(_)
            | Self::Account(_)
            | Self::Audit(_)
            | Self::Student { .. } => 6,
        }
    }

    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source }
    }
}
