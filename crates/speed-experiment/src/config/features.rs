//! The encoder that turns pictures into vectors: `[features]`.

use std::path::Path;

use serde::{Deserialize, Serialize};
use speed_data::pictures::Size;
use speed_nn::onnx::{EncoderSettings, TokenPool};

use super::fault::{Fault, refuse};

/// The key of the encoder, which the other keys of the section belong to.
pub(super) const ENCODER: &str = "features.encoder";

/// The encoder of pictures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "documented in configs/default.toml")]
pub struct FeaturesConfig {
    pub encoder: String,
    #[serde(default, skip_serializing_if = "speed_core::is_default")]
    pub mean: Vec<f64>,
    #[serde(default, skip_serializing_if = "speed_core::is_default")]
    pub deviation: Vec<f64>,
    #[serde(default, skip_serializing_if = "speed_core::is_default")]
    pub pool: String,
    #[serde(default, skip_serializing_if = "speed_core::is_default")]
    pub size: String,
    #[serde(default, skip_serializing_if = "speed_core::is_default")]
    pub mirror: bool,
}

impl FeaturesConfig {
    /// Returns the file of the encoder, if pictures become vectors.
    pub(crate) fn encoder(&self) -> Option<&Path> {
        (!self.encoder.is_empty()).then(|| Path::new(&self.encoder))
    }

    pub(super) fn settings(&self) -> Result<EncoderSettings, Fault> {
        let pool = match self.pool.as_str() {
            "" => None,
            "first" => Some(TokenPool::First),
            "mean" => Some(TokenPool::Mean),
            other => return refuse("features.pool", format!("found {other:?}, expected \"first\", \"mean\" or \"\"")),
        };
        let size = (!self.size.is_empty()).then(|| self.size.parse::<Size>()).transpose();
        let size = size.map_err(|error| Fault::new("features.size", error))?;
        let size = size.map(|Size { height, width }| [height as usize, width as usize]);
        let reals = |values: &[f64]| values.iter().map(|&value| value as f32).collect();
        Ok(EncoderSettings {
            size,
            mean: reals(&self.mean),
            deviation: reals(&self.deviation),
            pool,
            mirror: self.mirror,
        })
    }

    pub(super) fn check(&self) -> Result<(), Fault> {
        if self.encoder().is_none() {
            let set = [
                ("mean", speed_core::is_default(&self.mean)),
                ("deviation", speed_core::is_default(&self.deviation)),
                ("pool", speed_core::is_default(&self.pool)),
                ("size", speed_core::is_default(&self.size)),
                ("mirror", speed_core::is_default(&self.mirror)),
            ];
            return match set.into_iter().find(|(_, is_unset)| !is_unset) {
                Some((key, _)) => refuse(format!("features.{key}"), format!("is read with {ENCODER} only")),
                None => Ok(()),
            };
        }
        if !matches!(self.mean.len(), 0 | 1 | 3) {
            let found = self.mean.len();
            return refuse("features.mean", format!("found {found} numbers, expected one for each channel, or []"));
        }
        if self.deviation.len() != self.mean.len() {
            let (found, expected) = (self.deviation.len(), self.mean.len());
            let message = format!("found {found} numbers, expected {expected} like features.mean");
            return refuse("features.deviation", message);
        }
        if let Some(found) = self.deviation.iter().find(|deviation| **deviation <= 0.0 || !deviation.is_finite()) {
            return refuse("features.deviation", format!("found {found:?}, expected positive numbers"));
        }
        if let Some(found) = self.mean.iter().find(|mean| !mean.is_finite()) {
            return refuse("features.mean", format!("found {found:?}, expected finite numbers"));
        }
        self.settings().map(drop)
    }
}

/// Returns the message about a network that reads pictures; `known` are the names of the others.
pub(super) fn reads_pictures(found: &str, known: impl Iterator<Item = &'static str>) -> String {
    let known: Vec<String> = known.map(|name| format!("{name:?}")).collect();
    let known = if known.is_empty() { "none here".to_owned() } else { known.join(", ") };
    format!("{found:?} reads pictures, and {ENCODER} makes vectors of them: expected a network for vectors ({known})")
}
