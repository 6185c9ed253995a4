//! Failures, each with a message and an exit code.

use std::fmt::Display;

use speed_core::ExitCode;
use speed_experiment::{ConfigError, ExperimentError};

/// The reason why a command stopped.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An error of an experiment, with a message and the exit code of its kind.
    Experiment(ExperimentError),
    /// An error of a role's program, also with its message and exit code.
    Roles(speed_round::RolesError),
    /// An error of a round over a network, also with its message and exit code.
    Network(speed_round::network::NetworkError),
    /// An error of one of Slurm's programs, also with its message and exit code.
    Slurm(crate::slurm::SlurmError),
    /// The error was already reported.
    Reported(ExitCode),
    /// The reader of standard output closed it, as `| head` does. This is not a failure of the command.
    OutputClosed,
}

impl Failure {
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Experiment(error) => error.exit_code(),
            Self::Roles(error) => error.exit_code(),
            Self::Network(error) => error.exit_code(),
            Self::Slurm(error) => error.exit_code(),
            Self::Reported(code) => *code,
            Self::OutputClosed => ExitCode::Done,
        }
    }

    /// Returns the message, unless there is nothing to report.
    pub(crate) fn message(&self) -> Option<String> {
        match self {
            Self::Experiment(error) => Some(error.to_string()),
            Self::Roles(error) => Some(error.to_string()),
            Self::Network(error) => Some(error.to_string()),
            Self::Slurm(error) => Some(error.to_string()),
            Self::Reported(_) | Self::OutputClosed => None,
        }
    }
}

/// Returns the kind of failure of an exit code in one word.
pub(crate) fn kind(code: ExitCode) -> &'static str {
    match code {
        ExitCode::Done => "none",
        ExitCode::Usage => "config",
        ExitCode::Input => "input",
        ExitCode::Results => "results",
        ExitCode::InputOutput => "io",
        ExitCode::Computation => "computation",
        ExitCode::Processor => "processor",
        ExitCode::Interrupted | ExitCode::Terminated => "signal",
    }
}

/// Returns the failure for an invalid value of the command line.
pub(super) fn usage(name: &str, message: String) -> Failure {
    ConfigError::Key { place: "command line".into(), key: format!("--{name}"), message }.into()
}

/// Returns the failure for a refused value of an option.
pub(super) fn flag(name: &str, error: &impl Display) -> Failure {
    usage(name, error.to_string())
}

impl From<ExperimentError> for Failure {
    fn from(error: ExperimentError) -> Self {
        Self::Experiment(error)
    }
}

impl From<speed_round::RolesError> for Failure {
    fn from(error: speed_round::RolesError) -> Self {
        Self::Roles(error)
    }
}

impl From<speed_round::network::NetworkError> for Failure {
    fn from(error: speed_round::network::NetworkError) -> Self {
        Self::Network(error)
    }
}

impl From<crate::slurm::SlurmError> for Failure {
    fn from(error: crate::slurm::SlurmError) -> Self {
        Self::Slurm(error)
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self::Experiment(error.into())
    }
}

impl From<speed_accountant::ledger::LedgerError> for Failure {
    fn from(error: speed_accountant::ledger::LedgerError) -> Self {
        Self::Experiment(error.into())
    }
}

impl From<speed_data::DataError> for Failure {
    fn from(error: speed_data::DataError) -> Self {
        Self::Experiment(error.into())
    }
}
