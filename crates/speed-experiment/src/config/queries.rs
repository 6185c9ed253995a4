//! The pool images that are labelled: `[queries]`.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::data::DataConfig;
use super::fault::{Fault, refuse};

/// `[queries]` as written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "documented in configs/default.toml")]
pub struct RawQueries {
    pub count: usize,
    pub selection: QuerySelectionKind,
    pub file: String,
}

/// `queries.selection` as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QuerySelectionKind {
    /// [`QuerySelection::Random`]
    Random,
    /// [`QuerySelection::First`]
    First,
    /// [`QuerySelection::Balanced`]
    Balanced,
    /// [`QuerySelection::File`]
    File,
}

/// The queries, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueriesConfig {
    /// Number of queries, at least 1.
    pub count: usize,
    /// The choice among the pool images.
    pub selection: QuerySelection,
}

/// The choice of the queries among the pool images.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuerySelection {
    /// Distinct pool images, chosen by the seed.
    Random,
    /// The first pool images.
    First,
    /// Equal numbers of every class, by the pool's true labels and the seed.
    Balanced,
    /// Indices from an `.npy` file.
    File(PathBuf),
}

impl RawQueries {
    /// Checks the section against the images.
    pub(super) fn check(&self, data: &DataConfig) -> Result<QueriesConfig, Fault> {
        if let (QuerySelectionKind::Balanced, Some(reason)) = (self.selection, data.without_truth()) {
            return refuse("queries.selection", format!("{reason} to choose by"));
        }
        if !(1..=data.pool_images).contains(&self.count) {
            return refuse(
                "queries.count",
                format!("found {}, expected 1 to data.pool_images = {}", self.count, data.pool_images),
            );
        }
        let selection = match (self.selection, self.file.as_str()) {
            (QuerySelectionKind::File, "") => {
                return refuse("queries.file", "queries.selection = \"file\" needs a path");
            }
            (QuerySelectionKind::File, path) => QuerySelection::File(path.into()),
            (_, path) if !path.is_empty() => {
                return refuse("queries.file", "is read only with queries.selection = \"file\"");
            }
            (QuerySelectionKind::Random, _) => QuerySelection::Random,
            (QuerySelectionKind::First, _) => QuerySelection::First,
            (QuerySelectionKind::Balanced, _) => QuerySelection::Balanced,
        };
        Ok(QueriesConfig { count: self.count, selection })
    }
}

impl From<&QueriesConfig> for RawQueries {
    fn from(queries: &QueriesConfig) -> Self {
        let (selection, file) = match &queries.selection {
            QuerySelection::Random => (QuerySelectionKind::Random, String::new()),
            QuerySelection::First => (QuerySelectionKind::First, String::new()),
            QuerySelection::Balanced => (QuerySelectionKind::Balanced, String::new()),
            QuerySelection::File(path) => (QuerySelectionKind::File, path.to_string_lossy().into_owned()),
        };
        Self { count: queries.count, selection, file }
    }
}
