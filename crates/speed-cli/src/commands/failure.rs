//! Failures: for people a line, for programs an object, for both an exit code.

use serde_json::json;
use speed_core::{ExitCode, printable};
use speed_experiment::{ConfigError, ExperimentError};

use super::versioned_line;
use crate::bar;

/// The reason for which a command stopped.
#[derive(Debug)]
pub(crate) enum Failure {
    /// With a message and the exit code of its kind.
    Experiment(ExperimentError),
    /// A role's program, likewise.
    Roles(speed_roles::RolesError),
    /// A round over a network, likewise.
    Network(speed_network::NetworkError),
    /// One of Slurm's programs, likewise.
    Slurm(crate::slurm::SlurmError),
    /// Somebody was told why already.
    Told(ExitCode),
    /// The reader of standard output went away, as `| head` does: no failure of ours.
    OutputClosed,
}

impl Failure {
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Experiment(error) => error.exit_code(),
            Self::Roles(error) => error.exit_code(),
            Self::Network(error) => error.exit_code(),
            Self::Slurm(error) => error.exit_code(),
            Self::Told(code) => *code,
            Self::OutputClosed => ExitCode::Done,
        }
    }

    /// Says it on standard error: a line for people, or an object for programs.
    pub(crate) fn report(&self, json: bool) {
        if let Some(message) = self.message() {
            report(self.exit_code(), &message, json);
        }
    }

    /// Returns it in words, if there is anything to say.
    pub(crate) fn message(&self) -> Option<String> {
        match self {
            Self::Experiment(error) => Some(error.to_string()),
            Self::Roles(error) => Some(error.to_string()),
            Self::Network(error) => Some(error.to_string()),
            Self::Slurm(error) => Some(error.to_string()),
            Self::Told(_) | Self::OutputClosed => None,
        }
    }
}

/// Says on standard error why a program ends with `code`.
pub(crate) fn report(code: ExitCode, message: &str, json: bool) {
    if json {
        let error = json!({ "code": code.code(), "kind": kind(code), "message": message });
        bar::line(&versioned_line(&json!({ "error": error })));
    } else {
        bar::line(&format!("error: {}", shown(message)));
    }
}

/// Returns the kind of failure that an exit code means, in a word.
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

/// Returns a message without what would move a terminal's cursor, whoever chose it; lines stay lines.
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
