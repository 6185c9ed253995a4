//! Images: the private training split, and the public test split cut into pool and test.

use std::path::Path;

use serde_json::{Value, json};
use speed_data::digits::{self, DigitsConfig};
use speed_data::{Split, locate, mnist};
use speed_random::Streams;

use super::Context;
use crate::ExperimentError;
use crate::config::{Config, DataSource};
use crate::store::Fingerprint;

/// The images of a run.
pub(crate) struct Images {
    /// Private: the teachers' partitions.
    pub(crate) train: Split,
    /// Public: the student's unlabelled pool; queries are drawn here.
    pub(crate) pool: Split,
    /// Measures the student and nothing else.
    pub(crate) test: Split,
}

impl Images {
    /// What the stages that use a split put into their fingerprints.
    pub(crate) fn digest(split: &Split) -> Value {
        json!(split.digest().iter().map(|byte| format!("{byte:02x}")).collect::<String>())
    }
}

/// Loads or generates the images.
pub(crate) fn load(
    config: &Config,
    streams: &Streams,
    datasets: Option<&Path>,
) -> Result<Option<Images>, ExperimentError> {
    let dataset = match config.data.source {
        DataSource::None => return Ok(None),
        DataSource::Mnist => mnist::load(&locate("mnist", datasets)?)?,
        DataSource::Digits => {
            let size = DigitsConfig { train: config.data.train_images, test: config.data.test_images };
            digits::generate(size, streams)
        }
    };
    check_sizes(config, dataset.train.len(), dataset.test.len())?;
    let pool = config.data.pool_images;
    let images = Images {
        train: dataset.train.clone(),
        pool: dataset.test.slice(0..pool),
        test: dataset.test.slice(pool..dataset.test.len()),
    };
    Ok(Some(images))
}

/// Writes down which images they are.
pub(crate) fn record(context: &Context<'_>, images: Option<&Images>) -> Result<(), ExperimentError> {
    let (config, Some(images)) = (context.config, images) else { return Ok(()) };
    let record = json!({
        "source": config.data.source,
        "train": { "images": images.train.len(), "sha256": Images::digest(&images.train) },
        "pool": { "images": images.pool.len(), "sha256": Images::digest(&images.pool) },
        "test": { "images": images.test.len(), "sha256": Images::digest(&images.test) },
    });
    context.stage("data", 1, &json!(Fingerprint::of(&record)), |folder| {
        folder.write_json("data.json", &record)?;
        Ok(vec!["data.json".into()])
    })?;
    Ok(())
}

fn check_sizes(config: &Config, train: usize, test: usize) -> Result<(), ExperimentError> {
    let teachers = config.ensemble.teachers;
    if teachers > train {
        return Err(ExperimentError::Mismatch(format!(
            "ensemble.teachers = {teachers}: more teachers than the {train} training images"
        )));
    }
    let pool = config.data.pool_images;
    if pool >= test {
        return Err(ExperimentError::Mismatch(format!(
            "data.pool_images = {pool}: of {test} test images none is left to measure the student"
        )));
    }
    Ok(())
}
