//! The encoder that turns pictures into vectors: `[features]`.

use std::path::Path;

use serde::{Deserialize, Serialize};
use speed_data::pictures::Size;
use speed_nn::onnx::{EncoderSettings, TokenPool};
use speed_student::StudentMethod;
use speed_teacher::Architecture;

use super::data::DataSource;
use super::experiment::RawConfig;
use super::fault::{Fault, refuse};
use super::noise::is_unset;
use super::votes::VotesSourceKind;

/// The key of the encoder, which the other keys of the section belong to.
const ENCODER: &str = "features.encoder";

/// The encoder of pictures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "documented in configs/default.toml")]
pub struct FeaturesConfig {
    pub encoder: String,
    #[serde(default, skip_serializing_if = "is_unset")]
    pub mean: Vec<f64>,
    #[serde(default, skip_serializing_if = "is_unset")]
    pub deviation: Vec<f64>,
    #[serde(default, skip_serializing_if = "is_unset")]
    pub pool: String,
    #[serde(default, skip_serializing_if = "is_unset")]
    pub size: String,
}

impl FeaturesConfig {
    /// Returns the file of the encoder, if pictures become vectors.
    pub(crate) fn encoder(&self) -> Option<&Path> {
        (!self.encoder.is_empty()).then(|| Path::new(&self.encoder))
    }

    /// Returns the settings of the encoder.
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
        Ok(EncoderSettings { size, mean: reals(&self.mean), deviation: reals(&self.deviation), pool })
    }

    /// Checks the keys of the section against each other.
    fn check(&self) -> Result<(), Fault> {
        if self.encoder().is_none() {
            let set = [
                ("mean", is_unset(&self.mean)),
                ("deviation", is_unset(&self.deviation)),
                ("pool", is_unset(&self.pool)),
                ("size", is_unset(&self.size)),
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
        if let Some(found) = self.deviation.iter().find(|deviation| **deviation <= 0.0 || deviation.is_nan()) {
            return refuse("features.deviation", format!("found {found:?}, expected positive numbers"));
        }
        self.settings().map(drop)
    }
}

impl RawConfig {
    /// Checks the encoder, and that all other sections can work on its vectors.
    pub(super) fn check_features(&self) -> Result<(), Fault> {
        self.features.check()?;
        if self.features.encoder().is_none() {
            return Ok(());
        }
        if self.data.source == DataSource::None {
            return refuse(ENCODER, "data.source = \"none\" has no pictures for an encoder");
        }
        if self.queries.has_features() {
            return refuse("queries.features", format!("is for pixels: {ENCODER} gives the vectors of the map"));
        }
        if self.votes.source == VotesSourceKind::Teachers {
            let architecture = self.teacher.architecture;
            if !architecture.reads_vectors() {
                let known =
                    Architecture::all().into_iter().filter(|other| other.reads_vectors()).map(Architecture::name);
                return refuse("teacher.architecture", reads_pictures(architecture.name(), known));
            }
            if self.teacher.shift != 0 {
                let message =
                    format!("found {}, expected 0: the vectors of {ENCODER} cannot be shifted", self.teacher.shift);
                return refuse("teacher.shift", message);
            }
        }
        let rows = self.row.iter().enumerate().filter(|_| self.table.repeats > 0);
        for (index, row) in rows {
            let method = row.student.0.unwrap_or(self.student.method);
            if !method.reads_vectors() {
                let key = row.student.0.map_or_else(|| "student.method".to_owned(), |_| format!("row.{index}.student"));
                let known =
                    StudentMethod::all().into_iter().filter(|other| other.reads_vectors()).map(StudentMethod::name);
                return refuse(key, reads_pictures(method.name(), known) + "; or table.repeats = 0 for no students");
            }
        }
        Ok(())
    }
}

/// Returns the message about a network that reads pictures; `known` are the names of the others.
fn reads_pictures(found: &str, known: impl Iterator<Item = &'static str>) -> String {
    let known: Vec<String> = known.map(|name| format!("{name:?}")).collect();
    let known = if known.is_empty() { "none here".to_owned() } else { known.join(", ") };
    format!("{found:?} reads pictures, and {ENCODER} makes vectors of them: expected a network for vectors ({known})")
}
