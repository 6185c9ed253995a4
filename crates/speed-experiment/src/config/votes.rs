//! The origin of the votes: `[votes]`.

use std::path::Path;

use serde::{Deserialize, Serialize};
use speed_core::VoteShape;
use speed_core::vote_files::VotesForm;

use super::data::{DataConfig, DataSource};
use super::fault::{Fault, refuse};

/// The origin of the votes: `[votes]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "documented in configs/default.toml")]
pub struct VotesConfig {
    pub source: VotesSource,
    pub file: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub form: String,
    #[serde(default, skip_serializing_if = "speed_core::is_default")]
    pub classes: usize,
}

/// `votes.source`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VotesSource {
    /// The ensemble, trained in this run.
    Teachers,
    /// A file of labels or histograms.
    File,
    /// A random class for each teacher and query.
    Uniform,
    /// The pool's true label from every teacher.
    Truth,
    /// The label of each teacher's own image that is nearest in the map of the pool.
    Neighbours,
}

impl VotesConfig {
    pub(crate) fn path(&self) -> &Path {
        Path::new(&self.file)
    }

    /// Returns the form of the file; `None` means the only form that fits the config.
    pub(crate) fn form(&self) -> Option<VotesForm> {
        // `check` refuses every other text.
        self.form.parse().ok()
    }

    /// Returns the number of classes, if the config has one.
    pub(crate) fn classes(&self) -> Option<usize> {
        (self.classes != 0).then_some(self.classes)
    }

    pub(super) fn check(&self, data: &DataConfig) -> Result<(), Fault> {
        let has_images = data.source != DataSource::None;
        self.check_form()?;
        self.check_classes(has_images)?;
        match (self.source, self.file.as_str()) {
            (VotesSource::File, "") => {
                refuse("votes.file", "votes.source = \"file\" needs the path of an .npy or CSV file")
            }
            (VotesSource::File, _) => Ok(()),
            (_, path) if !path.is_empty() => refuse("votes.file", "is read only with votes.source = \"file\""),
            (VotesSource::Teachers | VotesSource::Neighbours, _) if !has_images => refuse(
                "votes.source",
                "data.source = \"none\" leaves teachers without images: use \"file\" or \"uniform\"",
            ),
            (VotesSource::Truth, _) => match data.without_truth() {
                None => Ok(()),
                Some(reason) => refuse("votes.source", format!("{reason}: use another source of votes")),
            },
            _ => Ok(()),
        }
    }

    fn check_form(&self) -> Result<(), Fault> {
        match self.form.as_str() {
            "" => Ok(()),
            _ if self.source != VotesSource::File => refuse("votes.form", "is read only with votes.source = \"file\""),
            form => form.parse::<VotesForm>().map(drop).map_err(|message| Fault::new("votes.form", message)),
        }
    }

    fn check_classes(&self, has_images: bool) -> Result<(), Fault> {
        let is_read = matches!(self.source, VotesSource::File | VotesSource::Uniform);
        match self.classes {
            0 => Ok(()),
            _ if !is_read => refuse("votes.classes", "is read only with votes.source = \"file\" or \"uniform\""),
            _ if has_images => {
                refuse("votes.classes", "is read only with data.source = \"none\": images determine their number")
            }
            found if !(2..=VoteShape::MAX_CLASSES).contains(&found) => {
                refuse("votes.classes", format!("found {found}, expected 2 to {}", VoteShape::MAX_CLASSES))
            }
            _ => Ok(()),
        }
    }
}
