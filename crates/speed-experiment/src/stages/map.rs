//! The map of the pool, from which clusters are made, and by which teachers with few images vote.

use serde_json::{Value, json};
use speed_data::Images as Unlabelled;
use speed_student::pool::{Cluster, Features, MapParts, PoolMap};

use super::complete::complete;
use super::context::Context;
use super::images::Images;
use super::kind::Kind;
use super::stage::{Stage, StageFacts};
use crate::error::ExperimentError;
use crate::mapping::{divide_pool, map_pool};
use crate::npy;
use crate::store::{Fingerprint, FinishedStage, StageFolder};

/// The files of the map: components, points, places and sparsity ([`MapParts`]).
const FILES: [&str; 4] = ["components.npy", "points.npy", "places.npy", "sparsity.npy"];

pub(crate) struct MappedPool {
    pub(crate) map: PoolMap,
    pub(super) hash: Fingerprint,
}

impl MappedPool {
    pub(super) fn clusters(&self, context: &Context<'_>) -> Vec<Cluster> {
        divide_pool(&self.map, context.config.queries.count, &context.streams, context.progress)
    }
}

pub(super) static POOL_MAPPING: Kind = Kind::new(
    "map",
    |config, _| config.queries.use_map(config.votes.source),
    |context, node, outputs| {
        let Some(images) = context.images() else { return Ok(()) };
        outputs.put(complete(context, &MapStage { name: &node.name, images })?);
        Ok(())
    },
);

struct MapStage<'a> {
    name: &'a str,
    images: &'a Images,
}

impl MapStage<'_> {
    fn features(context: &Context<'_>) -> Features {
        if context.config.features.encoder().is_some() { Features::Encoded } else { context.config.queries.features }
    }
}

impl Stage for MapStage<'_> {
    type Output = MappedPool;

    fn facts(&self) -> StageFacts<'_> {
        StageFacts::new(self.name)
    }

    fn inputs(&self, context: &Context<'_>) -> Result<Value, ExperimentError> {
        let pool = Images::digest(&self.images.pool);
        Ok(json!({ "pool": pool, "features": Self::features(context), "seed": context.config.seed }))
    }

    fn run(&self, context: &Context<'_>, folder: &mut StageFolder) -> Result<Vec<String>, ExperimentError> {
        let pool = Unlabelled::new(&self.images.pool);
        let map = map_pool(pool, Self::features(context), &context.streams, context.threads, context.progress)?;
        let MapParts { components, points, places, sparsity } = map.to_parts();
        let ([count, dimensions], width) = (map.sizes(), components.len() / (1 + map.sizes()[0]));
        let parts = [(components, width), (points, count), (places, dimensions), (sparsity, 1)];
        for (file, (values, columns)) in FILES.into_iter().zip(parts) {
            folder.write(file, &npy::reals_to_bytes(&values, columns))?;
        }
        Ok(FILES.map(str::to_owned).to_vec())
    }

    fn load(&self, context: &Context<'_>, done: &FinishedStage) -> Result<MappedPool, ExperimentError> {
        let read = |file: &str| npy::read_reals(&done.path(file));
        let [components, points, places, sparsity] = FILES;
        let parts = MapParts {
            components: read(components)?,
            points: read(points)?,
            places: read(places)?,
            sparsity: read(sparsity)?,
        };
        let map = PoolMap::from_parts(Unlabelled::new(&self.images.pool), Self::features(context), &parts)?;
        Ok(MappedPool { map, hash: done.outputs_hash() })
    }
}
