//! The origin of the votes: `[votes]`.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::data::DataSource;
use super::fault::{Fault, refuse};

/// `[votes]` as written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "documented in configs/default.toml")]
pub struct RawVotes {
    pub source: VotesSourceKind,
    pub file: String,
}

/// `votes.source` as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VotesSourceKind {
    /// [`VotesSource::Teachers`]
    Teachers,
    /// [`VotesSource::File`]
    File,
    /// [`VotesSource::Uniform`]
    Uniform,
    /// [`VotesSource::Truth`]
    Truth,
}

/// The origin of the votes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VotesSource {
    /// The ensemble, trained in this run.
    Teachers,
    /// An `.npy` file of labels or histograms.
    File(PathBuf),
    /// A class at random for each teacher and query.
    Uniform,
    /// The pool's true label from every teacher.
    Truth,
}

impl RawVotes {
    /// Checks the section beside the images.
    pub(super) fn check(&self, data: DataSource) -> Result<VotesSource, Fault> {
        let has_images = data != DataSource::None;
        match (self.source, self.file.as_str()) {
            (VotesSourceKind::File, "") => {
                refuse("votes.file", "votes.source = \"file\" needs the path of an .npy file")
            }
            (VotesSourceKind::File, path) => Ok(VotesSource::File(path.into())),
            (_, path) if !path.is_empty() => refuse("votes.file", "is read only with votes.source = \"file\""),
            (VotesSourceKind::Teachers, _) if !has_images => refuse(
                "votes.source",
                "data.source = \"none\" leaves teachers without images: use \"file\" or \"uniform\"",
            ),
            (VotesSourceKind::Truth, _) if !has_images => {
                refuse("votes.source", "data.source = \"none\" has no true labels: use \"file\" or \"uniform\"")
            }
            (VotesSourceKind::Teachers, _) => Ok(VotesSource::Teachers),
            (VotesSourceKind::Uniform, _) => Ok(VotesSource::Uniform),
            (VotesSourceKind::Truth, _) => Ok(VotesSource::Truth),
        }
    }
}

impl From<&VotesSource> for RawVotes {
    fn from(votes: &VotesSource) -> Self {
        let (source, file) = match votes {
            VotesSource::Teachers => (VotesSourceKind::Teachers, String::new()),
            VotesSource::File(path) => (VotesSourceKind::File, path.to_string_lossy().into_owned()),
            VotesSource::Uniform => (VotesSourceKind::Uniform, String::new()),
            VotesSource::Truth => (VotesSourceKind::Truth, String::new()),
        };
        Self { source, file }
    }
}
