//! Which pool images the student asks about.

use std::path::Path;

use rand::seq::index::sample;
use serde_json::json;

use super::Context;
use crate::config::QuerySelection;
use crate::store::Fingerprint;
use crate::{ExperimentError, npy};

/// Pool indices of the queries, in the order in which they are asked.
pub(crate) fn select(context: &Context<'_>) -> Result<Vec<usize>, ExperimentError> {
    let config = context.config;
    let (count, pool) = (config.queries.count, config.data.pool_images);
    let indices = match config.queries.selection {
        QuerySelection::First => (0..count).collect(),
        QuerySelection::Random => sample(&mut context.streams.stream("queries", 0), pool, count).into_vec(),
        QuerySelection::File => npy::read_indices(Path::new(&config.queries.file), count, pool)?,
    };
    let bytes = npy::indices_to_bytes(&indices);
    context.stage("queries", 1, &json!(Fingerprint::of_bytes(&bytes)), |folder| {
        folder.write("queries.npy", &bytes)?;
        Ok(vec!["queries.npy".into()])
    })?;
    Ok(indices)
}
