//! Everything that can stop a role's program, each kind with an exit code of its own.

use std::path::PathBuf;

use speed_aggregation::{AnswerListError, EncodingError, RoundError, ServerError, TeacherError};
use speed_core::EntropyError;
use speed_mechanism::MechanismError;

/// A program that stopped. [`RolesError::exit_code`] is what the command line returns.
#[derive(Debug, thiserror::Error)]
pub enum RolesError {
    /// The options contradict each other or the round.
    #[error("{0}")]
    Options(String),
    /// The options do not make a round.
    #[error(transparent)]
    Terms(#[from] RoundError),
    /// The round has no exact encoding under this key.
    #[error(transparent)]
    Encoding(#[from] EncodingError),
    /// The noise of the round cannot be specified or drawn.
    #[error(transparent)]
    Mechanism(#[from] MechanismError),
    /// The round's file is missing, damaged, or was changed.
    #[error("{}: {message}", path.display())]
    Round {
        /// The file.
        path: PathBuf,
        /// Expected and found.
        message: String,
    },
    /// A key, a file of votes or a result is missing or wrong.
    #[error("{}: {message}", path.display())]
    Input {
        /// The file.
        path: PathBuf,
        /// Expected and found.
        message: String,
    },
    /// Too few teachers gave an answer that can be used.
    #[error("{counted} of {teachers} teachers gave a usable answer, at least {minimum} must{}", list(refused))]
    TooFew {
        /// Teachers whose answers can be used.
        counted: usize,
        /// Teachers of the round.
        teachers: usize,
        /// Teachers that must answer.
        minimum: usize,
        /// Refused files and why.
        refused: Vec<String>,
    },
    /// A file or folder is there already, or another program works with it.
    #[error("{}: {message}", path.display())]
    Results {
        /// The file or folder.
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
    /// The teacher cannot encrypt.
    #[error(transparent)]
    Teacher(#[from] TeacherError),
    /// The server cannot compute.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The answers do not make a result.
    #[error(transparent)]
    Answers(#[from] AnswerListError),
    /// The operating system gave no randomness.
    #[error(transparent)]
    Entropy(#[from] EntropyError),
}

impl RolesError {
    /// The documented exit code: 2 config or command line, 3 input, 4 results, 5 reading or writing, 6 computation.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Options(_) | Self::Terms(_) | Self::Encoding(_) | Self::Mechanism(_) | Self::Round { .. } => 2,
            Self::Input { .. } | Self::TooFew { .. } => 3,
            Self::Results { .. } => 4,
            Self::Io { .. } => 5,
            Self::Teacher(_) | Self::Server(_) | Self::Answers(_) | Self::Entropy(_) => 6,
        }
    }

    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source }
    }
}

/// Refusals, one a line, after the message; nothing for none.
fn list(refused: &[String]) -> String {
    refused.iter().map(|line| format!("\n       {line}")).collect()
}
