//! ONNX models of networks.
//!
//! Its four main uses:
//! - make the ONNX model of a network from its recorded operations ([`Export`]);
//! - compare an ONNX model with its network, before it leaves ([`largest_difference`]);
//! - run an exported model ([`Runtime`]);
//! - run a classifier of another program ([`Classifier`]), whose file is untrusted.
//!
//! A network is written once, as a Burn module. Its operations are recorded from its own `logits`, with two numbers of images,
//! so that the model accepts any number.
//!
//! | module | content |
//! |---|---|
//! | `export` | from a network to the bytes of a model |
//! | `shapes` | axes whose length depends on the number of images |
//! | `values`, `lower` | from recorded tensors and operations to values and nodes of a graph |
//! | `proto` | nodes, constants and types as protobuf messages |
//! | `runtime` | models that run, in tract |
//! | `classifier` | classifiers of other programs |

mod classifier;
mod error;
mod export;
mod lower;
mod proto;
mod runtime;
mod shapes;
#[cfg(test)]
mod tests;
mod values;

pub use classifier::{Classifier, MAX_MODEL};
pub use error::OnnxError;
pub use export::{Export, IMAGES, LOGITS, PROBABILITIES, largest_difference};
pub use runtime::{PixelType, Runtime};
