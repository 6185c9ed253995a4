//! The pool images that are labelled: `[queries]`.

use serde::{Deserialize, Serialize};
use speed_student::pool::Features;

use super::data::{DataConfig, DataSource};
use super::fault::{Fault, refuse};
use super::votes::VotesSource;

/// The queries: `[queries]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "documented in configs/default.toml")]
pub struct QueriesConfig {
    pub count: usize,
    pub selection: QuerySelection,
    pub file: String,
    #[serde(default, skip_serializing_if = "speed_core::is_default")]
    pub groups: bool,
    #[serde(default, skip_serializing_if = "speed_core::is_default")]
    pub features: Features,
    #[serde(default, skip_serializing_if = "speed_core::is_default")]
    pub beliefs: bool,
}

/// The choice of the queries among the pool images: `queries.selection`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QuerySelection {
    /// Distinct pool images, chosen by the seed.
    Random,
    /// The first pool images.
    First,
    /// Indices from an `.npy` file.
    File,
    /// The clusters of the pool's map, as many as there are queries.
    Clusters,
}

impl QueriesConfig {
    /// Returns whether the queries, the votes about them or the meaning of the answers depend on the map of the pool.
    pub(crate) fn use_map(&self, votes: VotesSource) -> bool {
        self.beliefs || self.selection == QuerySelection::Clusters || votes == VotesSource::Neighbours
    }

    pub(super) fn has_features(&self) -> bool {
        !speed_core::is_default(&self.features)
    }

    pub(super) fn check(&self, data: &DataConfig) -> Result<(), Fault> {
        let is_clusters = self.selection == QuerySelection::Clusters;
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
        match (self.selection == QuerySelection::File, self.file.is_empty()) {
            (true, true) => refuse("queries.file", "queries.selection = \"file\" needs a path"),
            (false, false) => refuse("queries.file", "is read only with queries.selection = \"file\""),
            _ => Ok(()),
        }
    }
}
