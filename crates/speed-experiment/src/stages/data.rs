//! The record of the images.

use serde_json::{Value, json};

use super::complete::complete;
use super::context::Context;
use super::images::Images;
use super::kind::Kind;
use super::stage::{Stage, StageFacts, StageName};
use crate::config::DataSource;
use crate::error::ExperimentError;
use crate::store::{Fingerprint, FinishedStage, StageFolder};

/// The file of the record.
const RECORD: &str = "data.json";

/// The record of the run's images.
pub(super) static DATA: Kind = Kind::new(
    "data",
    |config, _| config.data.source != DataSource::None,
    |context, node, _| {
        context.images.map_or(Ok(()), |images| complete(context, &DataStage { name: &node.name, images }))
    },
);

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

    fn facts(&self) -> StageFacts<'_> {
        StageFacts::new(self.name)
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
