//! Errors.

use speed_core::printable;

use crate::device::DeviceError;
use crate::training::TraceError;

/// The reason why a network cannot leave as an ONNX model, or why a model cannot run.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the fields")]
#[non_exhaustive]
pub enum OnnxError {
    /// The network's operations cannot be recorded.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// A network without a form in ONNX here, or a model without the form that is needed.
    #[error("expected {expected}, found {}", printable(found))]
    Form { expected: String, found: String },
    /// The model computes other logits than its network.
    #[error(
        "expected the network's logits within {expected} of the largest, found a difference of {found}: nothing was written"
    )]
    Differs {
        /// The largest allowed difference, as a fraction of the largest logit.
        expected: f32,
        found: f32,
    },
    /// The runtime refuses the model or its images, or stopped.
    #[error("the runtime tract {fault}: {}", printable(reason))]
    Runtime { fault: &'static str, reason: String },
    /// The network's own logits could not be computed.
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

    pub(crate) fn refused(error: impl std::fmt::Display) -> Self {
        Self::Runtime { fault: "refuses the model", reason: format!("{error:#}") }
    }
}
