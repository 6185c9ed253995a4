//! The encoder of a run in its reports.

use serde::{Deserialize, Serialize};
use speed_core::moves_the_cursor;
use speed_nn::onnx::EncoderPreparation;

/// The condition on an encoder under which claims hold as stated.
pub(crate) const FROM_PUBLIC_DATA: &str =
    "The encoder must come from public data: epsilon does not cover pictures that trained it.";

/// Largest length of the name of an encoder's file in bytes.
const MAX_NAME: usize = 1024;

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
    /// Checks facts of a file.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.digest.len() != 64 || !self.digest.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(format!("expected the digest of an encoder in 64 hexadecimal digits, found {:?}", self.digest));
        }
        if self.file.len() > MAX_NAME || self.file.contains(moves_the_cursor) {
            return Err(format!(
                "expected a file of an encoder of at most {MAX_NAME} characters, none of them control characters"
            ));
        }
        self.preparation.check().map_err(|error| format!("encoder: {error}"))
    }

    /// Describes it in one line, with the file's name as it is.
    pub fn in_words(&self) -> String {
        let [height, width] = self.preparation.size;
        let Self { file, digest, width: values, .. } = self;
        let pictures = if self.preparation.mirror { "pictures and their mirror images" } else { "pictures" };
        format!("{file}, SHA-256 {digest}: {pictures} of {height} x {width} pixels become vectors of {values} values")
    }
}
