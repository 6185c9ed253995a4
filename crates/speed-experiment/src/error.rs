//! All errors that can stop an experiment, with an exit code for each kind.

mod input;
mod mismatch;
mod model;
mod results;

pub use input::InputFault;
pub use mismatch::Mismatch;
pub use model::ModelFault;
pub use results::{Damage, ResultsFault, found_instead};

use std::path::PathBuf;

use speed_accountant::ledger::LedgerError;
use speed_core::{ExitCode, printable_path, without_path};
use speed_nn::device::DeviceError;
use speed_nn::threads::QueueError;
use speed_student::StudentError;

use crate::config::ConfigError;

/// An error that stopped an experiment. [`ExperimentError::exit_code`] gives the exit code of the command.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExperimentError {
    /// The config cannot run.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Images are missing or wrong.
    #[error(transparent)]
    Data(Box<speed_data::DataError>),
    /// Image files are missing or wrong.
    #[error("{}", lines(faults))]
    DataFiles {
        /// The fault of each file.
        faults: Vec<speed_data::DataError>,
    },
    /// A file of votes or queries is missing or wrong.
    #[error("{}: {fault}", printable_path(path))]
    Input {
        /// The file.
        path: PathBuf,
        /// Its fault.
        #[source]
        fault: InputFault,
    },
    /// A model's file is missing, damaged or refused.
    #[error("{}: {fault}", printable_path(path))]
    Model {
        /// The file.
        path: PathBuf,
        /// Its fault.
        #[source]
        fault: ModelFault,
    },
    /// Inputs are valid one by one but do not fit together.
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
    /// The results directory is in use, belongs to another config, or holds something unexpected.
    #[error("{}: {fault}", printable_path(path))]
    Results {
        /// The directory or file.
        path: PathBuf,
        /// Its fault, and the next step.
        #[source]
        fault: ResultsFault,
    },
    /// Reading or writing failed, for example because the disk is full.
    #[error("cannot {action} {}: {source}", printable_path(path))]
    Io {
        /// The attempted action.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// A teacher failed.
    #[error(transparent)]
    Teacher(#[from] speed_teacher::TeacherError),
    /// Votes do not form a table.
    #[error(transparent)]
    Votes(#[from] speed_core::VotesError),
    /// The pool has no map.
    #[error(transparent)]
    Map(speed_student::pool::MapError),
    /// Threads could not be started.
    #[error("cannot start a thread: {source}")]
    Threads {
        /// The operating system's error.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The device of the trainings is missing or failed.
    #[error("device: {0}")]
    Device(#[from] DeviceError),
    /// Another run in this process uses the other arithmetic.
    #[error(transparent)]
    Arithmetic(#[from] speed_nn::matrix::OtherArithmetic),
    /// The noise cannot be drawn.
    #[error(transparent)]
    Mechanism(#[from] speed_mechanism::MechanismError),
    /// The aggregation failed.
    #[error(transparent)]
    Aggregation(#[from] speed_aggregation::error::AggregationError),
    /// The accountant refused the input.
    #[error(transparent)]
    Account(#[from] speed_accountant::AccountError),
    /// The ledger refused the charge.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// An audit refuted a claim.
    #[error("the audit refutes the claim: at least {lower_bound}, claimed {claim}")]
    Audit {
        /// The lower bound of epsilon from the audit.
        lower_bound: f64,
        /// The claimed epsilon.
        claim: f64,
    },
    /// A student outside of a run failed.
    #[error(transparent)]
    Alone(Box<StudentError>),
    /// Label spreading failed.
    #[error(transparent)]
    Spreading(#[from] speed_student::label_spreading::SpreadingError),
    /// A student failed.
    #[error("student repeat {repeat} on the labels of row {row:?}: {source}")]
    Student {
        /// The repeat.
        repeat: usize,
        /// The first row with these labels.
        row: String,
        /// The cause.
        source: Box<StudentError>,
    },
}

impl From<speed_data::DataError> for ExperimentError {
    fn from(error: speed_data::DataError) -> Self {
        Self::Data(Box::new(error))
    }
}

fn lines(faults: &[speed_data::DataError]) -> String {
    faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n       ")
}

impl From<speed_teacher::EnsembleError<Self>> for ExperimentError {
    fn from(error: speed_teacher::EnsembleError<Self>) -> Self {
        match error {
            speed_teacher::EnsembleError::Teacher(error) => Self::Teacher(error),
            speed_teacher::EnsembleError::Caller(error) => error,
            speed_teacher::EnsembleError::Votes(error) => Self::Votes(error),
            speed_teacher::EnsembleError::Threads { reason } => Self::Threads { source: reason.into() },
        }
    }
}

impl From<QueueError<Self>> for ExperimentError {
    fn from(error: QueueError<Self>) -> Self {
        match error {
            QueueError::Work(error) => error,
            QueueError::Pool(error) => Self::Threads { source: error.into() },
        }
    }
}

impl ExperimentError {
    /// Returns the documented exit code.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Config(_) | Self::Device(DeviceError::NotBuilt) => ExitCode::Usage,
            Self::Data(_) | Self::DataFiles { .. } | Self::Input { .. } | Self::Mismatch(_) => ExitCode::Input,
            Self::Model { fault, .. } => fault.exit_code(),
            Self::Results { .. } => ExitCode::Results,
            Self::Io { .. } => ExitCode::InputOutput,
            Self::Ledger(error) => error.exit_code(),
            Self::Teacher(_)
            | Self::Votes(_)
            | Self::Threads { .. }
            | Self::Device(_)
            | Self::Arithmetic(_)
            | Self::Mechanism(_)
            | Self::Aggregation(_)
            | Self::Account(_)
            | Self::Audit { .. }
            | Self::Alone(_)
            | Self::Spreading(_)
            | Self::Map(_)
            | Self::Student { .. } => ExitCode::Computation,
        }
    }

    /// Returns a function that wraps a file system error: the attempted `action` on the file or directory `path`
    /// failed.
    pub fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source: without_path(source) }
    }
}
