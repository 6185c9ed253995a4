//! Images: the private training split, and the public test split cut into pool and test.

use std::path::Path;

use serde_json::{Value, json};
use speed_data::digits::{self, DigitsConfig};
use speed_data::{Split, locate, mnist};
use speed_random::Streams;

use super::context::Context;
use super::names::StageName;
use super::stage::Stage;
use crate::config::{Config, DataSource};
use crate::error::{ExperimentError, Mismatch};
use crate::store::{Fingerprint, FinishedStage, StageFolder};

/// The record of the images.
const RECORD: &str = "data.json";

/// The images of a run.
pub(crate) struct Images {
    /// Private: the teachers' partitions.
    pub(crate) train: Split,
    /// Public: the student's unlabelled pool; queries are drawn here.
    pub(crate) pool: Split,
    /// Public: measures the student and nothing else.
    pub(crate) test: Split,
}

impl Images {
    /// Loads or generates the images of `config`, if it has any.
    ///
    /// # Errors
    /// If files are missing or wrong, or there are too few images.
    pub(crate) fn load(
        config: &Config,
        streams: &Streams,
        datasets: Option<&Path>,
    ) -> Result<Option<Self>, ExperimentError> {
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
        let images = Self {
            train: dataset.train.clone(),
            pool: dataset.test.slice(0..pool),
            test: dataset.test.slice(pool..dataset.test.len()),
        };
        Ok(Some(images))
    }

    /// Returns a split's digest as the fingerprints of stages that use it hold it.
    pub(crate) fn digest(split: &Split) -> Value {
        json!(hex::encode(split.digest()))
    }
}

fn check_sizes(config: &Config, train: usize, test: usize) -> Result<(), Mismatch> {
    let (teachers, pool) = (config.ensemble.teachers, config.data.pool_images);
    if teachers > train {
        return Err(Mismatch::Teachers { teachers, images: train });
    }
    if pool >= test {
        return Err(Mismatch::Pool { pool, images: test });
    }
    Ok(())
}

/// The record of the images that a run uses.
pub(crate) struct DataStage<'a> {
    pub(crate) name: &'a StageName,
    pub(crate) images: &'a Images,
}

impl DataStage<'_> {
    fn record(&self, context: &Context<'_>) -> Value {
        let Images { train, pool, test } = self.images;
        json!({
            "source": context.config.data.source,
            "train": { "images": train.len(), "sha256": Images::digest(train) },
            "pool": { "images": pool.len(), "sha256": Images::digest(pool) },
            "test": { "images": test.len(), "sha256": Images::digest(test) },
        })
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
