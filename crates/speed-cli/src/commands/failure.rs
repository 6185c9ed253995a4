//! Failures, reported as a line for people or an object for programs, with an exit code.

use serde_json::json;
use speed_core::{ExitCode, printable};
use speed_experiment::{ConfigError, ExperimentError};

use super::versioned_line;
use crate::bar;

/// The reason why a command stopped.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An error of an experiment, with a message and the exit code of its kind.
    Experiment(ExperimentError),
    /// An error of a role's program, also with its message and exit code.
    Roles(speed_roles::RolesError),
    /// An error of a round over a network, also with its message and exit code.
    Network(speed_network::NetworkError),
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

    /// Reports the failure on standard error: a line for people, or an object for programs.
    pub(crate) fn report(&self, json: bool) {
        if let Some(message) = self.message() {
            report(self.exit_code(), &message, json);
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

/// Reports on standard error why a program ends with `code`.
pub(crate) fn report(code: ExitCode, message: &str, json: bool) {
    if json {
        let error = json!({ "code": code.code(), "kind": kind(code), "message": message });
        bar::line(&versioned_line(&json!({ "error": error })));
    } else {
        bar::line(&format!("error: {}", shown(message)));
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
    }
}

/// Returns a message escaped for terminal output, because parts of it may be untrusted; line breaks stay.
fn shown(message: &str) -> String {
    message.split('\n').map(printable).collect::<Vec<_>>().join("\n")
}

impl From<ExperimentError> for Failure {
    fn from(error: ExperimentError) -> Self {
        Self::Experiment(error)
    }
}

impl From<speed_roles::RolesError> for Failure {
    fn from(error: speed_roles::RolesError) -> Self {
        Self::Roles(error)
    }
}

impl From<speed_network::NetworkError> for Failure {
    fn from(error: speed_network::NetworkError) -> Self {
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

impl From<speed_data::DataError> for Failure {
    fn from(error: speed_data::DataError) -> Self {
        Self::Experiment(error.into())
    }
}
