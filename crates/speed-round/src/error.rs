//! The error of all programs of a round.

use std::fmt::Display;
use std::io::ErrorKind;
use std::path::PathBuf;

use speed_accountant::AccountError;
use speed_accountant::ledger::LedgerError;
use speed_aggregation::error::{
    AnswerListError, DecodeError, EncodingError, InexactCircuit, PartError, PrivacyNoiseError, ProofError, RoundError,
    ServerError, TeacherError,
};
use speed_core::{ClassesError, EntropyError, ExitCode, ShapeError, TextError, printable_path, without_path};
use speed_mechanism::MechanismError;

/// A refusal or a failure that stopped a program: its exit code, the file that it is about, if any, and a message with the expected, the found
/// and the next step.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", place.as_ref().map_or_else(String::new, |path| format!("{}: ", printable_path(path))))]
pub struct Refused {
    exit: ExitCode,
    place: Option<PathBuf>,
    message: String,
}

impl Refused {
    /// Creates an error without a place.
    pub(crate) fn new(exit: ExitCode, message: impl Display) -> Self {
        Self { exit, place: None, message: message.to_string() }
    }

    /// Returns an error about terms or options of a round.
    pub(crate) fn usage(message: impl Display) -> Self {
        Self::new(ExitCode::Usage, message)
    }

    /// Returns an error about an input whose file the caller knows.
    pub(crate) fn fault(message: impl Display) -> Self {
        Self::new(ExitCode::Input, message)
    }

    /// Fails with an error about an input, whose file the caller knows, unless the condition holds.
    pub(crate) fn unless(holds: bool, fault: impl FnOnce() -> String) -> Result<(), Self> {
        if holds { Ok(()) } else { Err(Self::fault(fault())) }
    }

    /// Returns the error with its file.
    #[must_use]
    pub(crate) fn at(self, path: impl Into<PathBuf>) -> Self {
        Self { place: Some(path.into()), ..self }
    }

    /// Returns an error about an input: a key, votes, a message, a log or a result that is missing, damaged or refused.
    pub fn input<F: Display>(path: impl Into<PathBuf>) -> impl FnOnce(F) -> Self {
        let path = path.into();
        move |fault| Self::fault(fault).at(path)
    }

    /// Returns an error about a file or directory that is in the way, in use, or without a round.
    pub(crate) fn results(path: impl Into<PathBuf>, message: &str) -> Self {
        Self::new(ExitCode::Results, message).at(path)
    }

    /// Returns an error of a party's registry: damage, or a failure of reading or writing.
    pub(crate) fn registry<E: Into<redb::Error>>(path: impl Into<PathBuf>) -> impl FnOnce(E) -> Self {
        let path = path.into();
        move |error| {
            let error = error.into();
            let exit = if is_damage(&error) { ExitCode::Input } else { ExitCode::InputOutput };
            Self::new(exit, format_args!("registry {}: {error}", printable_path(&path)))
        }
    }

    /// Returns a failure of reading or writing, for example a full disk.
    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |error| {
            let words = format_args!("cannot {action} {}: {}", printable_path(&path), without_path(error));
            Self::new(ExitCode::InputOutput, words)
        }
    }

    /// Returns the documented exit code.
    pub fn exit_code(&self) -> ExitCode {
        self.exit
    }

    pub(crate) fn with_exit(self, exit: ExitCode) -> Self {
        Self { exit, ..self }
    }
}

/// Returns whether an error means that a registry is damaged, or no registry of this program.
fn is_damage(error: &redb::Error) -> bool {
    match error {
        redb::Error::Io(error) => matches!(error.kind(), ErrorKind::InvalidData | ErrorKind::UnexpectedEof),
        redb::Error::Corrupted(_)
        | redb::Error::UpgradeRequired(_)
        | redb::Error::TableTypeMismatch { .. }
        | redb::Error::TypeDefinitionChanged { .. }
        | redb::Error::TableIsMultimap(_)
        | redb::Error::TableDoesNotExist(_) => true,
        _ => false,
    }
}

/// Gives the errors of libraries their exit codes.
macro_rules! exit_codes {
    ($($exit:ident: $($error:ty),+;)+) => {
        $($(impl From<$error> for Refused {
            fn from(error: $error) -> Self {
                Self::new(ExitCode::$exit, error)
            }
        })+)+
    };
}

exit_codes! {
    Usage: ClassesError, EncodingError, InexactCircuit, MechanismError, PrivacyNoiseError, RoundError, ShapeError;
    Input: DecodeError, TextError;
    Computation: AccountError, AnswerListError, EntropyError, PartError, ProofError, ServerError, TeacherError;
}

impl From<LedgerError> for Refused {
    fn from(error: LedgerError) -> Self {
        Self::new(error.exit_code(), error)
    }
}

/// Returns the first 100 characters of a text, for a message about it.
pub(crate) fn beginning(text: &str) -> String {
    text.chars().take(100).collect()
}

/// Parses TOML strictly. The error has the place and the fault in one line, without the file's line, whose content is untrusted.
pub(crate) fn parse_toml<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, Refused> {
    toml::from_str(text).map_err(|error: toml::de::Error| {
        let begin =
            |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(200).collect::<String>();
        // The first line contains line and column; without a place, it is the fault itself.
        let text = error.to_string();
        let place = begin(text.lines().next().unwrap_or_default());
        let fault = begin(error.message());
        Refused::fault(if place == fault { place } else { format!("{place}: {fault}") })
    })
}
