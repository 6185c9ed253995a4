//! The origin of the votes: `[votes]`.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use speed_core::VoteShape;
use speed_core::vote_files::VotesForm;

use super::data::{DataConfig, DataSource};
use super::fault::{Fault, refuse};
use super::noise::is_unset;

/// `[votes]` as written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "documented in configs/default.toml")]
pub struct RawVotes {
    pub source: VotesSourceKind,
    pub file: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub form: String,
    #[serde(default, skip_serializing_if = "is_unset")]
    pub classes: usize,
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
    /// [`VotesSource::Neighbours`]
    Neighbours,
}

/// The origin of the votes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VotesSource {
    /// The ensemble, trained in this run.
    Teachers,
    /// A file of labels or histograms.
    File(VotesInFile),
    /// A random class for each teacher and query. Without images, the number of classes.
    Uniform(Option<usize>),
    /// The pool's true label from every teacher.
    Truth,
    /// The label of each teacher's own image that is nearest in the map of the pool.
    Neighbours,
}

/// A file of votes, with the keys that describe it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VotesInFile {
    /// The file: `.npy` or CSV.
    pub path: PathBuf,
    /// Its form; `None` means the only form that fits the config.
    pub form: Option<VotesForm>,
    /// The number of classes, if labels without images do not determine it.
    pub classes: Option<usize>,
}

impl RawVotes {
    /// Checks the section against the images.
    pub(super) fn check(&self, data: &DataConfig) -> Result<VotesSource, Fault> {
        let has_images = data.source != DataSource::None;
        let form = self.check_form()?;
        let classes = self.check_classes(has_images)?;
        match (self.source, self.file.as_str()) {
            (VotesSourceKind::File, "") => {
                refuse("votes.file", "votes.source = \"file\" needs the path of an .npy or CSV file")
            }
            (VotesSourceKind::File, path) => Ok(VotesSource::File(VotesInFile { path: path.into(), form, classes })),
            (_, path) if !path.is_empty() => refuse("votes.file", "is read only with votes.source = \"file\""),
            (VotesSourceKind::Teachers | VotesSourceKind::Neighbours, _) if !has_images => refuse(
                "votes.source",
                "data.source = \"none\" leaves teachers without images: use \"file\" or \"uniform\"",
            ),
            (VotesSourceKind::Teachers, _) => Ok(VotesSource::Teachers),
            (VotesSourceKind::Neighbours, _) => Ok(VotesSource::Neighbours),
            (VotesSourceKind::Uniform, _) => Ok(VotesSource::Uniform(classes)),
            (VotesSourceKind::Truth, _) => match data.without_truth() {
                None => Ok(VotesSource::Truth),
                Some(reason) => refuse("votes.source", format!("{reason}: use another source of votes")),
            },
        }
    }

    fn check_form(&self) -> Result<Option<VotesForm>, Fault> {
        match self.form.as_str() {
            "" => Ok(None),
            _ if self.source != VotesSourceKind::File => {
                refuse("votes.form", "is read only with votes.source = \"file\"")
            }
            form => form.parse().map(Some).map_err(|message| Fault::new("votes.form", message)),
        }
    }

    fn check_classes(&self, has_images: bool) -> Result<Option<usize>, Fault> {
        let is_read = matches!(self.source, VotesSourceKind::File | VotesSourceKind::Uniform);
        match self.classes {
            0 => Ok(None),
            _ if !is_read => refuse("votes.classes", "is read only with votes.source = \"file\" or \"uniform\""),
            _ if has_images => {
                refuse("votes.classes", "is read only with data.source = \"none\": images determine their number")
            }
            found if !(2..=VoteShape::MAX_CLASSES).contains(&found) => {
                refuse("votes.classes", format!("found {found}, expected 2 to {}", VoteShape::MAX_CLASSES))
            }
            found => Ok(Some(found)),
        }
    }
}

impl From<&VotesSource> for RawVotes {
    fn from(votes: &VotesSource) -> Self {
        let (source, classes) = match votes {
            VotesSource::Teachers => (VotesSourceKind::Teachers, None),
            VotesSource::Uniform(classes) => (VotesSourceKind::Uniform, *classes),
            VotesSource::Truth => (VotesSourceKind::Truth, None),
            VotesSource::Neighbours => (VotesSourceKind::Neighbours, None),
            VotesSource::File(VotesInFile { path, form, classes }) => {
                return Self {
                    source: VotesSourceKind::File,
                    file: path.to_string_lossy().into_owned(),
                    form: form.map_or_else(String::new, |form| form.to_string()),
                    classes: classes.unwrap_or(0),
                };
            }
        };
        Self { source, file: String::new(), form: String::new(), classes: classes.unwrap_or(0) }
    }
}
