//! ONNX models of networks.
//!
//! Its five main uses:
//! - make the ONNX model of a network from its recorded operations ([`Export`]);
//! - compare an ONNX model with its network, before it leaves ([`largest_difference`]);
//! - run an exported model ([`Runtime`]);
//! - run a classifier of another program ([`Classifier`]), whose file is untrusted;
//! - turn pictures into vectors with a public encoder ([`Encoder`]), whose file is untrusted, too.
//!
//! A network is written once, as a Burn module. Its operations are recorded from its own `logits`, with two numbers of images,
//! so that the model accepts any number.

mod classifier;
mod convolution;
mod encoder;
mod error;
mod export;
mod external;
mod front;
mod lower;
mod preparation;
mod proto;
mod runtime;
mod shapes;
mod small_encoder;
#[cfg(test)]
mod tests;
mod untrusted;
mod values;

pub use classifier::Classifier;
pub use encoder::Encoder;
pub use error::OnnxError;
pub use export::{Export, LOGITS, PROBABILITIES, largest_difference};
pub use front::IMAGES;
pub use preparation::{EncoderPreparation, EncoderSettings, TokenPool};
pub use runtime::{PixelType, Runtime};
pub use small_encoder::small_encoder;
pub use untrusted::MAX_MODEL;
