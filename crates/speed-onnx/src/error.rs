//! Errors.

use speed_nn::device::DeviceError;
use speed_nn::training::TraceError;

/// The reason why a network cannot leave as an ONNX model, or why a model cannot run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OnnxError {
    /// The network's operations cannot be recorded.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// An operation has no form in ONNX here.
    #[error("expected operations that ONNX has, found {name}, which has no form there for any number of images")]
    Operation {
        /// Burn's name of the operation.
        name: String,
    },
    /// The network computes something else for another number of images.
    #[error("expected a network with the same operations for every number of images, found {found}")]
    DependsOnBatch {
        /// The first operation that differs.
        found: String,
    },
    /// A constant has a type without a form in ONNX here.
    #[error("expected constants of 32-bit floating-point numbers or integers, found {found}")]
    Type {
        /// The type.
        found: String,
    },
    /// An operation reads a tensor that no operation made.
    #[error("expected operations on earlier results only, found {tensor}")]
    Unknown {
        /// The tensor.
        tensor: String,
    },
    /// The network does not return one row of logits for each image.
    #[error("expected logits of shape N x classes, found {found}")]
    Logits {
        /// The shape.
        found: String,
    },
    /// The model computes other logits than its network.
    #[error(
        "expected the network's logits within {expected} of the largest, found a difference of {found}: nothing was written"
    )]
    Differs {
        /// The largest allowed difference, as a fraction of the largest logit.
        expected: f32,
        /// The largest difference found.
        found: f32,
    },
    /// The runtime refuses the model or its images.
    #[error("the runtime tract refuses the model: {reason}")]
    Runtime {
        /// The runtime's message.
        reason: String,
    },
    /// The network's own logits could not be computed.
    #[error(transparent)]
    Device(#[from] DeviceError),
}
