//! The record of the images.

use std::path::Path;

use serde_json::{Value, json};

use super::complete::complete;
use super::context::Context;
use super::images::Images;
use super::kind::Kind;
use super::stage::{Stage, StageFacts, StageName};
use crate::config::DataSource;
use crate::error::ExperimentError;
use crate::store::{Fingerprint, FinishedStage, RunStore, StageFolder};

/// The file of the record.
const RECORD: &str = "data.json";

/// The record of the run's images.
pub(super) static DATA: Kind = Kind::new(
    "data",
    |config, _| config.data.source != DataSource::None,
    |context, node, _| {
        context.pictures().map_or(Ok(()), |images| complete(context, &DataStage { name: &node.name, images }))
    },
);

/// Returns the number of all images of the run in the directory `run`, if its record is there.
pub(super) fn pictures_in(run: &Path) -> Option<usize> {
    if !RunStore::is_finished(run, DATA.name) {
        return None;
    }
    let record: Value = serde_json::from_str(&RunStore::remains_in(run, DATA.name).read(RECORD)?).ok()?;
    let count = |split: &str| usize::try_from(record[split]["images"].as_u64()?).ok();
    Some(count("train")?.saturating_add(count("pool")?).saturating_add(count("test")?))
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
