//! The pool images that are labelled: `[queries]`.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use speed_student::pool::Features;

use super::data::{DataConfig, DataSource};
use super::fault::{Fault, refuse};
use super::noise::is_unset;
use super::votes::VotesSource;

/// `[queries]` as written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "documented in configs/default.toml")]
pub struct RawQueries {
    pub count: usize,
    pub selection: QuerySelectionKind,
    pub file: String,
    #[serde(default, skip_serializing_if = "is_unset")]
    pub groups: bool,
    #[serde(default, skip_serializing_if = "is_unset")]
    pub features: Features,
    #[serde(default, skip_serializing_if = "is_unset")]
    pub beliefs: bool,
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
    /// [`QuerySelection::Clusters`]
    Clusters,
}

/// The queries, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueriesConfig {
    /// Number of queries, at least 1.
    pub count: usize,
    /// The choice among the pool images.
    pub selection: QuerySelection,
    /// The vectors of images from which the map of the pool is computed.
    pub features: Features,
    /// Whether students learn the most probable class of every answer, given all answers and the map of the pool.
    pub beliefs: bool,
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
    /// The clusters of the pool's map, as many as there are queries.
    Clusters {
        /// Whether a query is the core of a cluster instead of its typical image.
        groups: bool,
    },
}

impl QueriesConfig {
    /// Returns whether the queries, the votes about them or the meaning of the answers depend on the map of the pool.
    pub(crate) fn use_map(&self, votes: &VotesSource) -> bool {
        self.beliefs || matches!(self.selection, QuerySelection::Clusters { .. }) || *votes == VotesSource::Neighbours
    }
}

impl RawQueries {
    /// Returns whether the config has features other than the default.
    pub(super) fn has_features(&self) -> bool {
        !is_unset(&self.features)
    }

    /// Checks the section against the images.
    pub(super) fn check(&self, data: &DataConfig) -> Result<QueriesConfig, Fault> {
        if let (QuerySelectionKind::Balanced, Some(reason)) = (self.selection, data.without_truth()) {
            return refuse("queries.selection", format!("{reason} to choose by"));
        }
        let is_clusters = self.selection == QuerySelectionKind::Clusters;
        if is_clusters && data.source == DataSource::None {
            return refuse("queries.selection", "data.source = \"none\" has no images to divide into clusters");
        }
        if self.beliefs && data.source == DataSource::None {
            return refuse("queries.beliefs", "data.source = \"none\" has no images that could be near each other");
        }
        if self.groups && !is_clusters {
            return refuse("queries.groups", "is read only with queries.selection = \"clusters\"");
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
            (QuerySelectionKind::Clusters, _) => QuerySelection::Clusters { groups: self.groups },
        };
        Ok(QueriesConfig { count: self.count, selection, features: self.features, beliefs: self.beliefs })
    }
}

impl From<&QueriesConfig> for RawQueries {
    fn from(queries: &QueriesConfig) -> Self {
        let (selection, file) = match &queries.selection {
            QuerySelection::Random => (QuerySelectionKind::Random, String::new()),
            QuerySelection::First => (QuerySelectionKind::First, String::new()),
            QuerySelection::Balanced => (QuerySelectionKind::Balanced, String::new()),
            QuerySelection::File(path) => (QuerySelectionKind::File, path.to_string_lossy().into_owned()),
            QuerySelection::Clusters { .. } => (QuerySelectionKind::Clusters, String::new()),
        };
        let groups = queries.selection == QuerySelection::Clusters { groups: true };
        Self { count: queries.count, selection, file, groups, features: queries.features, beliefs: queries.beliefs }
    }
}
