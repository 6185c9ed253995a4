//! Which pool images the student asks about.

use std::path::Path;

use rand::seq::SliceRandom;
use rand::seq::index::sample;
use serde_json::json;

use super::{Context, Images};
use crate::config::QuerySelection;
use crate::store::Fingerprint;
use crate::{ExperimentError, npy};

/// Pool indices of the queries, in the order in which they are asked.
pub(crate) fn select(context: &Context<'_>, images: Option<&Images>) -> Result<Vec<usize>, ExperimentError> {
    let config = context.config;
    let (count, pool) = (config.queries.count, config.data.pool_images);
    let indices = match config.queries.selection {
        QuerySelection::First => (0..count).collect(),
        QuerySelection::Random => sample(&mut context.streams.stream("queries", 0), pool, count).into_vec(),
        QuerySelection::Balanced => balanced(context, images, count)?,
        QuerySelection::File => npy::read_indices(Path::new(&config.queries.file), count, pool)?,
    };
    let bytes = npy::indices_to_bytes(&indices);
    context.stage("queries", 1, &json!(Fingerprint::of_bytes(&bytes)), |folder| {
        folder.write("queries.npy", &bytes)?;
        Ok(vec!["queries.npy".into()])
    })?;
    Ok(indices)
}

/// `count` images of the pool, as many of every class or one more of the first ones, drawn by the seed.
fn balanced(context: &Context<'_>, images: Option<&Images>, count: usize) -> Result<Vec<usize>, ExperimentError> {
    let Some(Images { pool, .. }) = images else {
        return Err(ExperimentError::Mismatch("queries.selection = \"balanced\" needs images with labels".into()));
    };
    let mut order: Vec<usize> = (0..pool.len()).collect();
    order.shuffle(&mut context.streams.stream("queries", 0));
    let mut chosen = Vec::with_capacity(count);
    for class in 0..pool.classes() {
        let wanted = count / pool.classes() + usize::from(class < count % pool.classes());
        let of_class = order.iter().copied().filter(|&image| usize::from(pool.label(image)) == class);
        chosen.extend(of_class.take(wanted));
    }
    if chosen.len() < count {
        return Err(ExperimentError::Mismatch(format!(
            "queries.selection = \"balanced\": the pool has only {} images for {count} queries of {} classes",
            chosen.len(),
            pool.classes()
        )));
    }
    Ok(chosen)
}
