//! The queries: the pool images that the teachers label for the student.

use rand::seq::SliceRandom;
use rand::seq::index::sample;
use serde_json::{Value, json};
use speed_core::random::Streams;

use super::complete::complete;
use super::context::Context;
use super::images::Images;
use super::kind::{Kind, Node};
use super::outputs::Outputs;
use super::stage::{Stage, StageName};
use crate::config::{Config, QuerySelection as Selection, RowConfig};
use crate::error::{ExperimentError, Mismatch};
use crate::npy;
use crate::store::{Fingerprint, FinishedStage, StageFolder, StageRemains};

/// The name of the kind and of its stage.
pub(super) const KIND: &str = "queries";
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
        Selection::First => (0..count).collect(),
        Selection::Random => sample(&mut streams.stream("queries", 0), pool, count).into_vec(),
        Selection::Balanced => balanced(streams, images, count)?,
        Selection::File(path) => npy::read_indices(path, count, pool)?,
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

/// The queries of a run: pool indices in the order of the queries.
pub(crate) struct Queries(pub(crate) Vec<usize>);

impl Queries {
    /// Returns the queries that a row answers.
    pub(super) fn of_row(&self, row: &RowConfig) -> &[usize] {
        &self.0[..row.query_count(self.0.len())]
    }
}

/// The selection of the queries of every run.
pub(super) struct QuerySelection;

impl Kind for QuerySelection {
    fn name(&self) -> &'static str {
        KIND
    }

    fn is_in(&self, _: &Config, _: Option<usize>) -> bool {
        true
    }

    fn complete(&self, context: &Context<'_>, node: &Node, outputs: &mut Outputs) -> Result<(), ExperimentError> {
        let queries = select(context.config, &context.streams, context.images)?;
        complete(context, &QueriesStage { name: &node.name, queries: &queries })?;
        outputs.put(Queries(queries));
        Ok(())
    }
}

/// The record of the queries.
struct QueriesStage<'a> {
    name: &'a StageName,
    queries: &'a [usize],
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
