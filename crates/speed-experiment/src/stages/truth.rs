//! The pool's true labels, which are used only to measure votes and answers.
//!
//! Labels from a file are not in any fingerprint, and their measurements are not in any record, because a change of
//! true labels must not cause answers to be given and paid again.

use std::borrow::Cow;
use std::path::Path;

use serde_json::Value;

use super::images::Images;
use crate::config::{Config, DataSource};
use crate::error::ExperimentError;
use crate::npy;

/// The true labels of the pool, from its images, or from a file if there are no images. A pool may have none.
pub(crate) struct Truth<'a> {
    labels: Cow<'a, [u8]>,
    /// The digest of the images of the labels.
    digest: Option<Value>,
    path: &'a Path,
}

impl<'a> Truth<'a> {
    pub(crate) fn for_run(config: &'a Config, images: Option<&'a Images>) -> Result<Option<Self>, ExperimentError> {
        if let Some(Images { pool, .. }) = images.filter(|_| config.data.has_labelled_pool()) {
            return Ok(Some(Self {
                labels: Cow::Borrowed(pool.labels()),
                digest: Some(Images::digest(pool)),
                path: Path::new(""),
            }));
        }
        let (data, path) = (&config.data, Path::new(&config.data.labels));
        if data.source != DataSource::None || data.labels.is_empty() {
            return Ok(None);
        }
        let labels = npy::read_true_labels(path, data.pool_images)?;
        Ok(Some(Self { labels: labels.into(), digest: None, path }))
    }

    pub(crate) fn labels(&self) -> &[u8] {
        &self.labels
    }

    /// Returns the digest of the images of the labels; `None` for labels from a file.
    pub(crate) fn digest(&self) -> Option<&Value> {
        self.digest.as_ref()
    }

    pub(crate) fn check(&self, classes: usize) -> Result<(), ExperimentError> {
        match self.labels.iter().position(|&label| usize::from(label) >= classes) {
            None => Ok(()),
            Some(position) => {
                let (found, max) = (self.labels[position], classes - 1);
                let fault = format_args!("entry {position}: label {found}, expected 0 to {max}");
                Err(ExperimentError::input(self.path, fault))
            }
        }
    }
}
