//! Sections whose values are checked with one another: images, ensemble, repeats, and the device of trainings.

use serde::{Deserialize, Serialize};
use speed_data::ImageShape;

use super::fault::{Fault, refuse};

/// Limits on sizes: larger numbers are slips of the pen, and would not fit into memory or time.
const MAX_IMAGES: usize = 10_000_000;
const MAX_TEACHERS: usize = 1_000_000;
const MAX_REPEATS: usize = 10_000;

/// The device that computes trainings and votes: `device`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ComputeDevice {
    /// The processor, one student or teacher per thread.
    #[default]
    Cpu,
    /// A GPU, through Vulkan, Metal or DirectX 12, several trainings at a time.
    Wgpu,
}

impl ComputeDevice {
    pub(super) fn is_cpu(&self) -> bool {
        *self == Self::Cpu
    }
}

/// The images and their split: `[data]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "documented in configs/default.toml")]
pub struct DataConfig {
    pub source: DataSource,
    pub train_images: usize,
    pub test_images: usize,
    pub pool_images: usize,
}

/// The origin of the images: `data.source`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DataSource {
    /// Built-in procedural digits.
    Digits,
    /// The MNIST files.
    Mnist,
    /// No images: accounting and aggregation of a vote file.
    None,
}

/// The data holders: `[ensemble]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "documented in configs/default.toml")]
pub struct EnsembleConfig {
    pub teachers: usize,
}

/// The table: `[table]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "documented in configs/default.toml")]
pub struct TableConfig {
    pub repeats: usize,
}

impl DataSource {
    /// Returns the shape of the images, if there are any.
    pub(crate) fn shape(self) -> Option<ImageShape> {
        match self {
            Self::None => None,
            Self::Digits | Self::Mnist => Some(ImageShape { channels: 1, height: 28, width: 28 }),
        }
    }
}

impl DataConfig {
    /// Checks sizes, alone and beside each other.
    pub(super) fn check(&self, ensemble: &EnsembleConfig, table: &TableConfig) -> Result<(), Fault> {
        let sizes = [
            ("data.train_images", self.train_images, 0, MAX_IMAGES),
            ("data.test_images", self.test_images, 0, MAX_IMAGES),
            ("data.pool_images", self.pool_images, 1, MAX_IMAGES),
            ("ensemble.teachers", ensemble.teachers, 1, MAX_TEACHERS),
            ("table.repeats", table.repeats, 0, MAX_REPEATS),
        ];
        if let Some((key, found, _, max)) = sizes.into_iter().find(|(_, found, _, max)| found > max) {
            return refuse(key, format!("found {found}, expected at most {max}"));
        }
        if let Some((key, found, min, _)) = sizes.into_iter().rev().find(|(_, found, min, _)| found < min) {
            return refuse(key, format!("found {found}, expected at least {min}"));
        }
        match self.source {
            DataSource::Digits => self.check_digits(ensemble),
            DataSource::None if table.repeats > 0 => {
                refuse("table.repeats", "must be 0 where data.source = \"none\": a student needs images")
            }
            DataSource::Mnist | DataSource::None => Ok(()),
        }
    }

    fn check_digits(&self, ensemble: &EnsembleConfig) -> Result<(), Fault> {
        if self.train_images < ensemble.teachers {
            let message = format!("{} teachers share {} training images", ensemble.teachers, self.train_images);
            return refuse("ensemble.teachers", message);
        }
        if self.pool_images >= self.test_images {
            return refuse(
                "data.pool_images",
                format!("{} of {} test images leave none to measure the student", self.pool_images, self.test_images),
            );
        }
        Ok(())
    }
}
