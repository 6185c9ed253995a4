//! The record of the images.

use serde_json::{Value, json};

use super::complete::complete;
use super::context::Context;
use super::images::Images;
use super::kind::{Kind, Node};
use super::outputs::Outputs;
use super::stage::{Stage, StageName};
use crate::config::{Config, DataSource};
use crate::error::ExperimentError;
use crate::store::{Fingerprint, FinishedStage, StageFolder};

/// The file of the record.
const RECORD: &str = "data.json";

/// The recording of the images, if a config uses images.
pub(super) struct Data;

impl Kind for Data {
    fn name(&self) -> &'static str {
        "data"
    }

    fn is_in(&self, config: &Config, _: Option<usize>) -> bool {
        config.data.source != DataSource::None
    }

    fn complete(&self, context: &Context<'_>, node: &Node, _: &mut Outputs) -> Result<(), ExperimentError> {
        context.images.map_or(Ok(()), |images| complete(context, &DataStage { name: &node.name, images }))
    }
}

/// The record of the images that a run uses.
struct DataStage<'a> {
    name: &'a StageName,
    images: &'a Images,
}

impl DataStage<'_> {
    fn record(&self, context: &Context<'_>) -> Value {
        let Images { train, pool, test, handwriting, .. } = self.images;
        let mut record = json!({
            "source": context.config.data.source,
            "train": { "images": train.len(), "sha256": Images::digest(train) },
            "pool": { "images": pool.len(), "sha256": Images::digest(pool) },
            "test": { "images": test.len(), "sha256": Images::digest(test) },
        });
        if let Some(handwriting) = handwriting {
            record["handwriting"] = json!(handwriting);
        }
        record
    }
}

impl Stage for DataStage<'_> {
    type Output = ();

    fn name(&self) -> &StageName {
        self.name
    }

    fn code_version(&self) -> u32 {
        1
    }

    fn inputs(&self, context: &Context<'_>) -> Result<Value, ExperimentError> {
        Ok(json!(Fingerprint::of(&self.record(context))))
    }

    fn run(&self, context: &Context<'_>, folder: &mut StageFolder) -> Result<Vec<String>, ExperimentError> {
        folder.write_json(RECORD, &self.record(context))?;
        Ok(vec![RECORD.into()])
    }

    fn load(&self, _: &Context<'_>, _: &FinishedStage) -> Result<(), ExperimentError> {
        Ok(())
    }
}
