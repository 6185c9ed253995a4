//! The encoder of a run in its reports.

use serde::{Deserialize, Serialize};
use speed_nn::onnx::EncoderPreparation;

/// The condition on an encoder under which claims hold as stated.
pub(crate) const FROM_PUBLIC_DATA: &str =
    "The encoder must come from public data: epsilon does not cover pictures that trained it.";

/// The encoder that turned pictures into vectors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EncoderFacts {
    /// The name of its file.
    pub file: String,
    /// The SHA-256 of its model, external weights and preparation, in hexadecimal digits.
    pub digest: String,
    /// Number of values of a vector.
    pub width: usize,
    /// The preparation of its pictures.
    pub preparation: EncoderPreparation,
}

impl EncoderFacts {
    /// Describes it in one line, with the file's name as it is.
    #[must_use]
    pub fn in_words(&self) -> String {
        let [height, width] = self.preparation.size;
        let Self { file, digest, width: values, .. } = self;
        format!("{file}, SHA-256 {digest}: pictures of {height} x {width} pixels become vectors of {values} values")
    }
}
