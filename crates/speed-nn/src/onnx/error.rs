//! Errors.

use std::io;
use std::path::{Path, PathBuf};

use speed_core::{printable, printable_path};

use crate::device::DeviceError;
use crate::training::TraceError;

/// The reason why a network cannot leave as an ONNX model, or why a model cannot run.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the fields")]
#[non_exhaustive]
pub enum OnnxError {
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// A network without a form in ONNX here, or a model without the form that is needed.
    #[error("expected {expected}, found {}", printable(found))]
    Form { expected: String, found: String },
    #[error(
        "expected the network's logits within {expected} of the largest, found a difference of {found}: nothing was written"
    )]
    Differs {
        /// The largest allowed difference, as a fraction of the largest logit.
        expected: f32,
        found: f32,
    },
    #[error("the runtime tract {fault}: {}", printable(reason))]
    Runtime { fault: &'static str, reason: String },
    #[error("cannot read {}: {error}", printable_path(path))]
    Unreadable { path: PathBuf, error: io::Error },
    #[error(transparent)]
    Device(#[from] DeviceError),
}

impl OnnxError {
    pub(crate) fn form(expected: impl Into<String>, found: impl Into<String>) -> Self {
        Self::Form { expected: expected.into(), found: found.into() }
    }

    pub(crate) fn logits(found: impl Into<String>) -> Self {
        Self::form("logits of shape N x classes", found)
    }

    pub(crate) fn unreadable(path: &Path, error: io::Error) -> Self {
        Self::Unreadable { path: path.to_owned(), error }
    }

    /// Adds the next step to the text.
    pub(crate) fn advising(self, advice: &str) -> Self {
        match self {
            Self::Form { expected, found } => Self::Form { expected, found: format!("{found}: {advice}") },
            Self::Runtime { fault, reason } => Self::Runtime { fault, reason: format!("{reason}; {advice}") },
            other => other,
        }
    }

    pub(crate) fn refused(error: impl std::fmt::Display) -> Self {
        Self::Runtime { fault: "refuses the model", reason: format!("{error:#}") }
    }
}
