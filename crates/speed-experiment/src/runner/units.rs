//! The units of a run's stages, read from its directory.

use std::path::Path;

use crate::error::ExperimentError;
use crate::stages::{Graph, StageUnits};
use crate::store::RunStore;

impl StageUnits {
    /// Counts the units of the divided stages of the run in `folder`, and changes nothing there.
    ///
    /// # Errors
    /// If the run's config cannot be read.
    pub fn of_run(folder: &Path) -> Result<Vec<Self>, ExperimentError> {
        let config = RunStore::config_in(folder)?;
        let graph = Graph::for_config(&config);
        let nodes = graph.nodes().iter().enumerate();
        Ok(nodes.filter_map(|(at, node)| node.kind.count_units(folder, &config, node, &graph.nodes()[..at])).collect())
    }
}
