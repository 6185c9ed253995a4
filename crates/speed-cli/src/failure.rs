//! Failures, each with its exit code and message.

use std::fmt::Display;

use speed_core::ExitCode;
use speed_experiment::ExperimentError;

use crate::slurm::SlurmError;

/// The reason why a command stopped.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: ExitCode,
    /// The message; `None` if nothing is left to report.
    pub(crate) message: Option<String>,
}

impl Failure {
    /// The reader of standard output closed it, as `| head` does. This is not a failure of the command.
    pub(crate) const OUTPUT_CLOSED: Self = Self::reported(ExitCode::Done);

    fn new(code: ExitCode, error: &impl Display) -> Self {
        Self { code, message: Some(error.to_string()) }
    }

    /// Returns a failure that was already reported.
    pub(crate) const fn reported(code: ExitCode) -> Self {
        Self { code, message: None }
    }
}

/// Returns the failure for an invalid value of an option.
pub(crate) fn usage(name: &str, message: impl Display) -> Failure {
    ExperimentError::option(format_args!("--{name}"), message).into()
}

impl From<ExperimentError> for Failure {
    fn from(error: ExperimentError) -> Self {
        Self::new(error.exit_code(), &error)
    }
}

impl From<speed_round::Refused> for Failure {
    fn from(error: speed_round::Refused) -> Self {
        Self::new(error.exit_code(), &error)
    }
}

impl From<SlurmError> for Failure {
    fn from(error: SlurmError) -> Self {
        Self::new(ExitCode::InputOutput, &error)
    }
}

impl From<speed_accountant::ledger::LedgerError> for Failure {
    fn from(error: speed_accountant::ledger::LedgerError) -> Self {
        ExperimentError::from(error).into()
    }
}

impl From<speed_data::DataError> for Failure {
    fn from(error: speed_data::DataError) -> Self {
        ExperimentError::from(error).into()
    }
}
