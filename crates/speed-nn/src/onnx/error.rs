//! Errors.

use crate::device::DeviceError;
use crate::training::TraceError;
use speed_core::printable;

/// Maximum number of values of a tensor that a model of another program computes for one image: 256 MiB.
pub(crate) const MAX_VALUES: usize = 1 << 26;
/// The smallest and the largest number of classes of a round.
pub(crate) const CLASSES: [usize; 2] = [2, 256];

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
    #[error("the runtime tract refuses the model: {}", printable(reason))]
    Runtime {
        /// The runtime's message.
        reason: String,
    },
    /// The weights are in another file.
    #[error(
        "the weights of {} are in another file, as PyTorch saves them by default since version 2.9: save them in the model, for example with \
         torch.onnx.export(..., external_data=False)",
        printable(tensor)
    )]
    External {
        /// The first such tensor.
        tensor: String,
    },
    /// The runtime's optimised form computes other scores.
    #[error(
        "the runtime tract computes other scores after its optimisation: expected {expected:?}, found {found:?}; export the model without the \
         operations that quantise its last layer"
    )]
    Optimised {
        /// The scores of a picture by the model as it was written.
        expected: Vec<f32>,
        /// The scores after the optimisation.
        found: Vec<f32>,
    },
    /// The bytes are not a model in ONNX's format.
    #[error("expected a model in ONNX's format, found other or truncated bytes: {}", printable(reason))]
    Format {
        /// The reader's message.
        reason: String,
    },
    /// The model does not read images as a teacher does.
    #[error(
        "expected one input of N x channels x height x width, uint8 or float32, with N variable or 1, 1 or 3 channels, and a \
         fixed height and width, found {}",
        printable(found)
    )]
    Input {
        /// The inputs, the type or the shape.
        found: String,
    },
    /// The model does not return a score for every class.
    #[error(
        "expected a first output of N x classes, float32, with {} to {} classes, found {}",
        CLASSES[0],
        CLASSES[1],
        printable(found)
    )]
    Output {
        /// The type and shape.
        found: String,
    },
    /// The runtime lacks an operation, or it is random or has a graph of its own.
    #[error(
        "expected operations of the runtime tract, without randomness, loops and branches, found the operation {}",
        printable(operation)
    )]
    Unsupported {
        /// The operation.
        operation: String,
    },
    /// The shape of a tensor depends on the image.
    #[error(
        "expected shapes that depend on N only, found {} in the operation {}",
        printable(found),
        printable(operation)
    )]
    Shape {
        /// The operation.
        operation: String,
        /// The shape.
        found: String,
    },
    /// A tensor for one image is too large.
    #[error(
        "expected at most {MAX_VALUES} values in a tensor of one image, found {} in the operation {}",
        printable(found),
        printable(operation)
    )]
    Values {
        /// The operation.
        operation: String,
        /// The shape.
        found: String,
    },
    /// A score is not finite.
    #[error("expected a finite score of every class for this image, found {found}: the model is unusable")]
    Score {
        /// The value.
        found: f32,
    },
    /// The runtime stopped with a panic.
    #[error(
        "the runtime tract stopped with an internal error, so the model is damaged or tract cannot run it: {}",
        printable(reason)
    )]
    Stopped {
        /// The message of the panic.
        reason: String,
    },
    /// The network's own logits could not be computed.
    #[error(transparent)]
    Device(#[from] DeviceError),
}
