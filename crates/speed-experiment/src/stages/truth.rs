//! The pool's true labels. They measure votes and answers, and nothing else.

use std::borrow::Cow;
use std::path::Path;

use serde_json::{Value, json};

use super::data::Images;
use crate::config::Config;
use crate::error::ExperimentError;
use crate::npy;
use crate::store::Fingerprint;

/// The true labels of the pool: those of its images, or of a file where there are none.
pub(crate) struct Truth<'a> {
    labels: Cow<'a, [u8]>,
    digest: Value,
}

impl<'a> Truth<'a> {
    /// Returns the true labels of a run; none where nothing knows them.
    ///
    /// # Errors
    /// If `data.labels` cannot be read, or has too few.
    pub(crate) fn of(config: &Config, images: Option<&'a Images>) -> Result<Option<Self>, ExperimentError> {
        if let Some(Images { pool, .. }) = images {
            return Ok(Some(Self { labels: Cow::Borrowed(pool.labels()), digest: Images::digest(pool) }));
        }
        if config.data.labels.is_empty() {
            return Ok(None);
        }
        let labels = npy::read_true_labels(Path::new(&config.data.labels), config.data.pool_images)?;
        let digest = json!({ "labels": Fingerprint::of_bytes(&labels) });
        Ok(Some(Self { labels: labels.into(), digest }))
    }

    /// Returns a label for each image of the pool.
    pub(crate) fn labels(&self) -> &[u8] {
        &self.labels
    }

    /// Returns what the fingerprints of stages that use them, or the images, hold.
    pub(crate) fn digest(&self) -> &Value {
        &self.digest
    }
}
