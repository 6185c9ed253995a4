//! The queries: the pool images that the teachers label for the student.

use rand::seq::SliceRandom;
use rand::seq::index::sample;
use serde_json::{Value, json};
use speed_random::Streams;

use super::context::Context;
use super::data::Images;
use super::names::StageName;
use super::stage::Stage;
use crate::config::{Config, QuerySelection};
use crate::error::{ExperimentError, Mismatch};
use crate::npy;
use crate::store::{Fingerprint, FinishedStage, StageFolder, StageRemains};

/// The file of the pool indices.
const QUERIES: &str = "queries.npy";

/// Selects the queries: pool indices, in the order of the answers.
///
/// # Errors
/// If the file of indices cannot be read, or the pool has too few images of a class.
pub(crate) fn select(
    config: &Config,
    streams: &Streams,
    images: Option<&Images>,
) -> Result<Vec<usize>, ExperimentError> {
    let (count, pool) = (config.queries.count, config.data.pool_images);
    Ok(match &config.queries.selection {
        QuerySelection::First => (0..count).collect(),
        QuerySelection::Random => sample(&mut streams.stream("queries", 0), pool, count).into_vec(),
        QuerySelection::Balanced => balanced(streams, images, count)?,
        QuerySelection::File(path) => npy::read_indices(path, count, pool)?,
    })
}

/// Reads the queries of a run, if their stage is finished in `remains`.
pub(crate) fn chosen(remains: &StageRemains, config: &Config) -> Option<Vec<usize>> {
    npy::read_indices(&remains.folder().join(QUERIES), config.queries.count, config.data.pool_images).ok()
}

/// Selects `count` images of the pool in a seeded order: equally many of each class, with the remainder spread over the
/// first classes.
fn balanced(streams: &Streams, images: Option<&Images>, count: usize) -> Result<Vec<usize>, Mismatch> {
    let Some(Images { pool, .. }) = images else { return Err(Mismatch::BalancedWithoutImages) };
    let mut order: Vec<usize> = (0..pool.len()).collect();
    order.shuffle(&mut streams.stream("queries", 0));
    let mut chosen = Vec::with_capacity(count);
    for class in 0..pool.classes() {
        let wanted = count / pool.classes() + usize::from(class < count % pool.classes());
        let of_class = order.iter().copied().filter(|&image| usize::from(pool.label(image)) == class);
        chosen.extend(of_class.take(wanted));
    }
    if chosen.len() < count {
        return Err(Mismatch::Balanced { found: chosen.len(), queries: count, classes: pool.classes() });
    }
    Ok(chosen)
}

/// The record of the queries.
pub(crate) struct QueriesStage<'a> {
    pub(crate) name: &'a StageName,
    pub(crate) queries: &'a [usize],
}

impl Stage for QueriesStage<'_> {
    type Output = ();

    fn name(&self) -> &StageName {
        self.name
    }

    fn code_version(&self) -> u32 {
        1
    }

    fn inputs(&self, _: &Context<'_>) -> Result<Value, ExperimentError> {
        Ok(json!(Fingerprint::of_bytes(&npy::indices_to_bytes(self.queries))))
    }

    fn run(&self, _: &Context<'_>, folder: &mut StageFolder) -> Result<Vec<String>, ExperimentError> {
        folder.write(QUERIES, &npy::indices_to_bytes(self.queries))?;
        Ok(vec![QUERIES.into()])
    }

    fn load(&self, _: &Context<'_>, _: &FinishedStage) -> Result<(), ExperimentError> {
        Ok(())
    }
}
