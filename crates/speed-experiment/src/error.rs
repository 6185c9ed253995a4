//! The error of experiments: a refusal or a failure, with the exit code of the command.

use std::fmt::Display;
use std::path::PathBuf;

use speed_accountant::AccountError;
use speed_accountant::ledger::LedgerError;
use speed_aggregation::error::{AggregationError, VotesError as NoisyVotesError};
use speed_core::npy::NpyError;
use speed_core::{ExitCode, VotesError, printable_path, without_path};
use speed_data::DataError;
use speed_mechanism::MechanismError;
use speed_nn::device::DeviceError;
use speed_nn::matrix::OtherArithmetic;
use speed_nn::threads::QueueError;
use speed_nn::training::{TensorError, TraceError};
use speed_student::label_spreading::SpreadingError;
use speed_student::pool::MapError;
use speed_teacher::{EnsembleError, TeacherError};

use crate::report::ClassificationError;

/// A refusal or a failure that stopped an experiment: its exit code, the file or directory that it is about, if any, and a message with the
/// expected, the found and the next step.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", place.as_ref().map_or_else(String::new, |path| format!("{}: ", printable_path(path))))]
pub struct ExperimentError {
    exit: ExitCode,
    place: Option<PathBuf>,
    message: String,
}

impl ExperimentError {
    /// Creates an error without a place.
    pub fn new(exit: ExitCode, message: impl Display) -> Self {
        Self { exit, place: None, message: message.to_string() }
    }

    /// Returns an error about a key of a config. `place` is `file:line`, `--set`, or only the file if the key has its default; the message
    /// has the found and the allowed values.
    pub(crate) fn key(place: impl Display, key: impl Display, message: impl Display) -> Self {
        Self::new(ExitCode::Usage, format_args!("{place}: key `{key}`: {message}"))
    }

    /// Returns an error about an option of the command line.
    pub fn option(option: impl Display, message: impl Display) -> Self {
        Self::key("command line", option, message)
    }

    /// Returns an error about inputs that do not fit together, or about an input whose file the caller knows.
    pub(crate) fn fault(message: impl Display) -> Self {
        Self::new(ExitCode::Input, message)
    }

    /// Returns an error about a file of images, votes or queries, or a model's file, that is missing, damaged or refused.
    pub fn input(path: impl Into<PathBuf>, fault: impl Display) -> Self {
        Self::fault(fault).at(path)
    }

    pub(crate) fn unreadable(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |error| Self::input(path, format_args!("cannot read: {error}"))
    }

    pub(crate) fn unreadable_model(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |error| Self::input(path, format_args!("cannot read the model: {error}"))
    }

    /// Returns an error about a model of another origin than its card.
    pub fn other_model(path: impl Into<PathBuf>) -> Self {
        Self::input(path, "the model is of another run, row, student or round than its card")
    }

    /// Returns an error about a directory or file of results.
    pub fn results(path: impl Into<PathBuf>, fault: impl Display) -> Self {
        Self::new(ExitCode::Results, fault).at(path)
    }

    /// Returns an error about a path of results that is a file.
    pub fn not_a_folder(path: impl Into<PathBuf>) -> Self {
        Self::results(path, "is a file, expected a folder of results: give another --results")
    }

    /// Returns an error about the missing report of a run.
    pub fn not_finished(report: impl Into<PathBuf>) -> Self {
        let fault =
            "is missing: the run is not finished, or its report was lost; `speed run` with the same config writes it";
        Self::results(report, fault)
    }

    pub(crate) fn in_use(folder: impl Into<PathBuf>) -> Self {
        Self::results(folder, "another `speed` works in this folder: wait for it, or use another --results")
    }

    /// Returns an error about a value that cannot be written as JSON.
    pub fn unwritable(path: impl Into<PathBuf>) -> impl FnOnce(serde_json::Error) -> Self {
        let path = path.into();
        move |error| Self::results(path, format_args!("cannot be written as JSON: {error}"))
    }

    /// Returns an error about a finished stage, or a noise key, that another run has replaced.
    pub(crate) fn taken_away(path: impl Into<PathBuf>) -> Self {
        Self::results(path, "was removed by another run of the experiment: run again")
    }

    /// Returns an error about a file of a stage that is not the expected JSON value.
    pub(crate) fn not_ours(path: impl Into<PathBuf>, bytes: &[u8], error: &serde_json::Error, stage: &str) -> Self {
        let found = found_instead(bytes, error);
        let fault = format!("not a file that this version wrote: expected a value in JSON, found {found}");
        Self::results(path, format_args!("{fault}; --force {stage} repeats the stage"))
    }

    /// Returns an error about a report that no run writes.
    pub fn unlikely(expected: impl Display, found: impl Display) -> Self {
        let fault = format_args!("not a report that this version wrote: expected {expected}, found {found}");
        Self::new(ExitCode::Results, fault)
    }

    pub(crate) fn other_format(path: impl Into<PathBuf>, expected: u32, found: Option<u32>) -> Self {
        let found = found.map_or_else(|| "a file without a format".to_owned(), |found| format!("format {found}"));
        let next = "use the version of speed that wrote it, or move it away and run again";
        Self::results(path, format_args!("found {found}, this program reads format {expected}: {next}"))
    }

    pub(crate) fn of_page((path, damage): (PathBuf, &str)) -> Self {
        let next = "expected the file that the run wrote; `speed run` with the same config writes it again";
        Self::results(path, format_args!("{damage}, {next}"))
    }

    /// Returns a failure of a file system: the attempted `action` on the file or directory `path`.
    pub fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |error| {
            let words = format_args!("cannot {action} {}: {}", printable_path(&path), without_path(error));
            Self::new(ExitCode::InputOutput, words)
        }
    }

    /// Returns the error with its file or directory.
    #[must_use]
    pub fn at(self, path: impl Into<PathBuf>) -> Self {
        Self { place: Some(path.into()), ..self }
    }

    /// Returns the documented exit code.
    pub fn exit_code(&self) -> ExitCode {
        self.exit
    }
}

/// Gives the errors of libraries their exit codes and texts.
macro_rules! exit_codes {
    ($($exit:ident $text:literal: $($error:ty),+;)+) => {
        $($(impl From<$error> for ExperimentError {
            fn from(error: $error) -> Self {
                Self::new(ExitCode::$exit, format_args!($text, error))
            }
        })+)+
    };
}

exit_codes! {
    Input "{}": DataError, NoisyVotesError, NpyError, TraceError;
    Input "its tensors do not fit its description: {}": TensorError;
    Input "results by class: {}": ClassificationError;
    Computation "{}": AccountError, AggregationError, MapError, MechanismError, OtherArithmetic, SpreadingError, TeacherError, VotesError;
}

impl From<DeviceError> for ExperimentError {
    fn from(error: DeviceError) -> Self {
        let exit = if matches!(error, DeviceError::NotBuilt) { ExitCode::Usage } else { ExitCode::Computation };
        Self::new(exit, format_args!("device: {error}"))
    }
}

impl From<LedgerError> for ExperimentError {
    fn from(error: LedgerError) -> Self {
        Self::new(error.exit_code(), error)
    }
}

impl From<EnsembleError<Self>> for ExperimentError {
    fn from(error: EnsembleError<Self>) -> Self {
        match error {
            EnsembleError::Teacher(error) => error.into(),
            EnsembleError::Caller(error) => error,
            EnsembleError::Votes(error) => error.into(),
            EnsembleError::Threads { reason } => without_threads(reason),
        }
    }
}

impl From<QueueError<Self>> for ExperimentError {
    fn from(error: QueueError<Self>) -> Self {
        match error {
            QueueError::Work(error) => error,
            QueueError::Pool(error) => without_threads(error),
        }
    }
}

fn without_threads(reason: impl Display) -> ExperimentError {
    ExperimentError::new(ExitCode::Computation, format_args!("cannot start a thread: {reason}"))
}

/// Describes bytes that are not the expected JSON value.
pub fn found_instead(bytes: &[u8], error: &serde_json::Error) -> String {
    match bytes.len() {
        0 => "an empty file".to_owned(),
        length if error.is_eof() => format!("{length} bytes that end early"),
        _ => error.to_string(),
    }
}
