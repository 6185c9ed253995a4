//! The record of the images.

use std::path::Path;

use serde_json::{Value, json};

use super::complete::complete;
use super::context::Context;
use super::images::Images;
use super::kind::Kind;
use super::stage::{JsonStage, StageFacts};
use crate::config::DataSource;
use crate::store::{Fingerprint, RunStore};

const RECORD: &str = "data.json";

pub(super) static DATA: Kind = Kind::new(
    "data",
    |config, _| config.data.source != DataSource::None,
    |context, node, _| {
        let Some(images) = context.pictures else { return Ok(()) };
        let record = record(context, images);
        let (facts, inputs) = (StageFacts::new(&node.name), json!(Fingerprint::of(&record)));
        complete(context, &JsonStage { facts, file: RECORD, inputs, work: || Ok(record.clone()) }).map(drop)
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

fn record(context: &Context<'_>, images: &Images) -> Value {
    let Images { train, pool, test, handwriting, .. } = images;
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
