//! Sections whose values are checked together: images, ensemble, repeats, and the device of trainings.

use serde::{Deserialize, Serialize};
use speed_data::partition::SKEWS;
use speed_data::pictures::{Reading, Size};
use speed_data::{Facts, ImageShape, street};

use super::fault::{Fault, refuse};
use super::patients::PatientRule;
use crate::report::{MAX_CLASS_NAME, check_class_names};

/// Limit on numbers of images: larger numbers are typing errors, and would exceed memory or time.
const MAX_IMAGES: usize = 10_000_000;
const MAX_BYTES: usize = 8 << 30;
/// Maximum number of values of an image, because a dense layer on a full-size photograph would exhaust the memory.
pub(crate) const MAX_PIXELS: usize = 3 * 256 * 256;
const MAX_TEACHERS: usize = 1_000_000;
const MAX_REPEATS: usize = 10_000;

pub(super) const SKEW: &str = "ensemble.skew";

/// The value of `data.labels` for a pool without true labels.
const NO_LABELS: &str = "none";

/// The device that computes trainings and votes: `device`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ComputeDevice {
    /// The processor, with one student or teacher per thread.
    #[default]
    Cpu,
    /// A GPU through Vulkan, Metal or DirectX 12, with several trainings at a time.
    Wgpu,
}

/// The images and their split: `[data]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "documented in configs/default.toml")]
pub struct DataConfig {
    pub source: DataSource,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub folder: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub size: String,
    #[serde(default = "on", skip_serializing_if = "is_on")]
    pub colour: bool,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub labels: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub patients: String,
    pub train_images: usize,
    pub test_images: usize,
    pub pool_images: usize,
    #[serde(default, skip_serializing_if = "speed_core::is_default")]
    pub pool: PoolOrigin,
}

/// The split whose images are the student's pool: `data.pool`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PoolOrigin {
    /// The first images of the test split; its other images measure the student.
    #[default]
    Test,
    /// The last images of the training split, which no teacher has; all images of the test split measure the student.
    Train,
}

fn on() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_on(key: &bool) -> bool {
    *key
}

/// The origin of the images: `data.source`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "documented in configs/default.toml")]
pub enum DataSource {
    Digits,
    StreetDigits,
    Mnist,
    FashionMnist,
    Kmnist,
    EmnistDigits,
    EmnistLetters,
    EmnistBalanced,
    Svhn,
    SvhnLike,
    #[serde(rename = "cifar-10")]
    Cifar10,
    Pictures,
    Arrays,
    None,
}

/// The data holders: `[ensemble]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "documented in configs/default.toml")]
pub struct EnsembleConfig {
    pub teachers: usize,
    #[serde(default, skip_serializing_if = "speed_core::is_default")]
    pub parties: usize,
    #[serde(default, skip_serializing_if = "speed_core::is_default")]
    pub skew: f64,
}

/// The number of parties with unequal classes if every teacher is a party of its own.
const UNEQUAL_PARTIES: usize = 10;

impl EnsembleConfig {
    /// Returns the number of teachers of each party with classes of its own, if classes are divided unequally.
    pub(crate) fn unequal_parties(&self) -> Option<Vec<usize>> {
        let parties = if self.parties == 0 { UNEQUAL_PARTIES.min(self.teachers) } else { self.parties };
        (self.skew > 0.0).then(|| self.divided_among(parties).collect())
    }

    /// Returns the number of teachers of each of `parties` parties, as equal as possible.
    fn divided_among(&self, parties: usize) -> impl Iterator<Item = usize> {
        let teachers = self.teachers;
        (0..parties).map(move |party| teachers / parties + usize::from(party < teachers % parties))
    }

    /// Returns the number of teachers of each party, as equal as possible; consecutive teachers belong to one party. Empty if
    /// every teacher is a party.
    pub fn teachers_of_parties(&self) -> Vec<u32> {
        self.divided_among(self.parties).map(|teachers| u32::try_from(teachers).unwrap_or(u32::MAX)).collect()
    }

    pub(crate) fn largest_party(&self) -> usize {
        if self.parties == 0 { 1 } else { self.teachers.div_ceil(self.parties) }
    }
}

/// The table: `[table]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "documented in configs/default.toml")]
pub struct TableConfig {
    pub repeats: usize,
    #[serde(default, skip_serializing_if = "speed_core::is_default")]
    pub baselines: bool,
}

impl DataSource {
    pub(crate) fn published(self) -> Option<&'static str> {
        match self {
            Self::Mnist => Some("mnist"),
            Self::FashionMnist => Some("fashion-mnist"),
            Self::Kmnist => Some("kmnist"),
            Self::EmnistDigits => Some("emnist-digits"),
            Self::EmnistLetters => Some("emnist-letters"),
            Self::EmnistBalanced => Some("emnist-balanced"),
            Self::Svhn => Some("svhn"),
            Self::Cifar10 => Some("cifar-10"),
            Self::Digits | Self::StreetDigits | Self::SvhnLike | Self::Pictures | Self::Arrays | Self::None => None,
        }
    }

    pub(crate) fn has_folder(self) -> bool {
        matches!(self, Self::SvhnLike | Self::Pictures | Self::Arrays)
    }
}

impl DataConfig {
    /// Returns the facts about the images that are known before they are read; `None` for images in a directory, and
    /// without images.
    pub(crate) fn facts(&self) -> Option<Facts> {
        let generated = |shape| Facts { shape, classes: 10, train: self.train_images, test: self.test_images };
        match self.source {
            DataSource::Digits => Some(generated(ImageShape { channels: 1, height: 28, width: 28 })),
            DataSource::StreetDigits => Some(generated(street::SHAPE)),
            source => source.published().map(|name| Facts::published(name).expect("a name of the catalog")),
        }
    }

    pub(crate) fn has_labelled_pool(&self) -> bool {
        self.source != DataSource::None && self.labels != NO_LABELS
    }

    /// Returns the rule that gives the patient of every image, if patients determine the teachers' parts.
    pub(crate) fn patients(&self) -> Option<PatientRule> {
        // `check` refuses every other text.
        self.patients.parse().ok()
    }

    /// Returns the reason why the pool has no true labels, if it has none.
    pub(super) fn without_truth(&self) -> Option<&'static str> {
        match self.source {
            DataSource::None => Some("data.source = \"none\" has no true labels"),
            _ if !self.has_labelled_pool() => Some("data.labels = \"none\" leaves the pool without true labels"),
            _ => None,
        }
    }

    /// Returns the shape to which pictures are resized, if any.
    pub(super) fn picture_shape(&self) -> Result<Option<ImageShape>, Fault> {
        if self.source != DataSource::Pictures {
            return Ok(None);
        }
        Ok(self.reading()?.shape())
    }

    pub(super) fn reading(&self) -> Result<Reading, Fault> {
        let size = if self.size.is_empty() { None } else { Some(&self.size) };
        let size = size.map(|size| size.parse::<Size>()).transpose();
        let size = size.map_err(|error| Fault::new("data.size", error))?;
        Ok(Reading { size, least_side: 1, is_colour: self.colour, max_values: MAX_PIXELS })
    }

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
        if ensemble.parties > ensemble.teachers {
            let message =
                format!("found {}, expected at most ensemble.teachers, {}", ensemble.parties, ensemble.teachers);
            return refuse("ensemble.parties", message);
        }
        let [least, most] = SKEWS;
        if ensemble.skew != 0.0 && !(least..=most).contains(&ensemble.skew) {
            return refuse(SKEW, format!("found {:?}, expected 0 or from {least} to {most}", ensemble.skew));
        }
        self.reading()?;
        if self.source.has_folder() && self.folder.is_empty() {
            return refuse("data.folder", "missing: set the folder of the images");
        }
        if !self.source.has_folder() && !self.folder.is_empty() {
            return refuse("data.folder", "is read with source \"pictures\", \"arrays\" and \"svhn-like\" only");
        }
        if self.source != DataSource::Pictures && !(self.size.is_empty() && self.colour) {
            let key = if self.colour { "data.size" } else { "data.colour" };
            return refuse(key, "is read with source \"pictures\" only");
        }
        self.check_labels()?;
        self.check_pool()?;
        self.check_class_names()?;
        self.check_patients()?;
        match self.source {
            DataSource::Digits | DataSource::StreetDigits => self.check_counts(ensemble),
            DataSource::None if table.baselines => {
                refuse("table.baselines", "must be false if data.source = \"none\": a baseline needs images")
            }
            DataSource::None if table.repeats > 0 => {
                refuse("table.repeats", "must be 0 if data.source = \"none\": a student needs images")
            }
            _ => Ok(()),
        }
    }

    fn check_labels(&self) -> Result<(), Fault> {
        const KEY: &str = "data.labels";
        match self.source {
            DataSource::None => Ok(()),
            _ if self.labels.is_empty() => Ok(()),
            DataSource::Pictures | DataSource::Arrays if self.labels == NO_LABELS => Ok(()),
            DataSource::Pictures | DataSource::Arrays => {
                refuse(KEY, "expected \"\" or \"none\": a file of labels is read with source \"none\" only")
            }
            _ => {
                refuse(KEY, "is read with source \"none\", \"pictures\" and \"arrays\" only: these images have labels")
            }
        }
    }

    fn check_pool(&self) -> Result<(), Fault> {
        let reason = match self.source {
            DataSource::None => "data.source = \"none\" has no images",
            DataSource::Digits | DataSource::StreetDigits => {
                "built-in images have as many test images as data.test_images says: increase it instead"
            }
            _ if self.labels == NO_LABELS => "data.labels = \"none\" has a pool of its own",
            _ => return Ok(()),
        };
        if self.pool == PoolOrigin::Train { refuse("data.pool", reason) } else { Ok(()) }
    }

    /// Checks the names of the classes; their number is compared with the images.
    fn check_class_names(&self) -> Result<(), Fault> {
        const KEY: &str = "data.classes";
        if self.classes.is_empty() {
            return Ok(());
        }
        if !matches!(self.source, DataSource::Arrays | DataSource::SvhnLike) {
            return refuse(
                KEY,
                "is read with source \"arrays\" and \"svhn-like\" only: other images have names of classes",
            );
        }
        check_class_names(&self.classes).map_err(|error| Fault::new(KEY, error))?;
        match self.classes.iter().find(|name| name.len() > MAX_CLASS_NAME) {
            Some(name) => {
                refuse(KEY, format!("expected names of at most {MAX_CLASS_NAME} bytes, found one of {}", name.len()))
            }
            None => Ok(()),
        }
    }

    /// Checks the rule for patients. A pool of training images could contain pictures of a patient of a teacher.
    fn check_patients(&self) -> Result<(), Fault> {
        const KEY: &str = "data.patients";
        if self.patients.is_empty() {
            return Ok(());
        }
        let rule = self.patients.parse::<PatientRule>().map_err(|fault| Fault::new(KEY, fault))?;
        match self.source {
            DataSource::Pictures => {}
            DataSource::Arrays if matches!(rule, PatientRule::File(_)) => {}
            DataSource::Arrays => {
                return refuse(
                    KEY,
                    "an array has no names: give a CSV file with the columns file (positions from 0) and patient",
                );
            }
            _ => {
                return refuse(
                    KEY,
                    "is read with source \"pictures\" and \"arrays\" only: other images have no patients",
                );
            }
        }
        if self.pool == PoolOrigin::Train {
            return refuse(
                KEY,
                "with data.pool = \"train\" a patient could be in the pool and train a teacher: use \"test\"",
            );
        }
        Ok(())
    }

    fn check_counts(&self, ensemble: &EnsembleConfig) -> Result<(), Fault> {
        let pixels = self.facts().map_or(0, |facts| facts.shape.pixels());
        for (key, count) in [("data.train_images", self.train_images), ("data.test_images", self.test_images)] {
            if count * pixels > MAX_BYTES {
                return refuse(
                    key,
                    format!("found {count}, expected at most {} of {pixels} bytes", MAX_BYTES / pixels),
                );
            }
        }
        if self.train_images < ensemble.teachers {
            let message = format!("{} teachers share {} training images", ensemble.teachers, self.train_images);
            return refuse("ensemble.teachers", message);
        }
        if self.pool_images >= self.test_images {
            return refuse(
                "data.pool_images",
                format!(
                    "{} of {} test images leave no image to measure the student",
                    self.pool_images, self.test_images
                ),
            );
        }
        Ok(())
    }
}
