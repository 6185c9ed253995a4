//! The settings of a teacher and its training, with the architecture. They share a file because an architecture trains
//! with settings that contain it. `architectures.rs` has the list of architectures.

use std::sync::atomic::AtomicBool;

use burn::tensor::Device;
use serde::{Deserialize, Serialize};
use speed_core::random::Streams;
use speed_data::{ImageShape, Split};
use speed_nn::training::{AnyClassifier, InvalidField};

use crate::{TeacherError, Unknown};

/// The `[teacher]` part of a configuration. The same for every teacher of an ensemble.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TeacherConfig {
    /// The network.
    pub architecture: Architecture,
    /// The optimizer.
    pub optimizer: OptimizerKind,
    /// The learning rate at the first step.
    pub learning_rate: f64,
    /// The learning rate as a function of the step.
    pub schedule: Schedule,
    /// Images in one step.
    pub batch: usize,
    /// Steps of the optimizer.
    pub steps: usize,
    /// Augmentation: every image of a batch is moved by up to this number of pixels in both directions. 0 disables it.
    pub shift: usize,
    /// Exponential average of the parameters, used for every prediction. 0 disables it; otherwise it is the rate r in
    /// `a += max(r, 9 / (10 + t)) (p - a)` after step t = 1, 2, ... The published code's decay of 0.9999 is a rate of
    /// 0.0001; the second term is TensorFlow's warm-up, which the published code also uses.
    pub average: f64,
    /// The weights of the classes in the loss.
    #[serde(default, skip_serializing_if = "speed_core::is_default")]
    pub class_weights: ClassWeights,
    /// What a teacher that lacks classes does with an image unlike its own.
    #[serde(default, skip_serializing_if = "speed_core::is_default")]
    pub unknown: Unknown,
}

/// The weights of the classes in a teacher's loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClassWeights {
    /// Every image counts the same.
    #[default]
    None,
    /// Every class counts the same: an image of class c has the weight n / (K n_c), if n images of K classes train the
    /// teacher and n_c of them are of class c. The mean weight is 1.
    Balanced,
}

impl ClassWeights {
    /// Returns the weight of each of `classes` classes, given the labels of a teacher's training images; `None` if all
    /// images count the same. A class without images has weight 0.
    pub(crate) fn of_labels(self, labels: impl Iterator<Item = u8>, classes: usize) -> Option<Vec<f32>> {
        if self == Self::None {
            return None;
        }
        let mut counts = vec![0_usize; classes];
        labels.for_each(|label| counts[usize::from(label)] += 1);
        let (images, own) = (counts.iter().sum::<usize>(), counts.iter().filter(|count| **count > 0).count());
        let weight = |count: usize| if count == 0 { 0.0 } else { images as f64 / (own * count) as f64 };
        Some(counts.into_iter().map(|count| weight(count) as f32).collect())
    }
}

/// The rule by which a gradient changes the parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OptimizerKind {
    /// Adam with beta1 0.9, beta2 0.999, epsilon 1e-8.
    Adam,
    /// Plain gradient descent, as in the paper.
    Sgd,
}

/// The learning rate over the steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Schedule {
    /// The same at every step.
    Constant,
    /// Half a cosine from the first rate to zero.
    Cosine,
    /// A drop to a tenth after every 350 passes over the partition, as in the paper's published code.
    Staircase,
}

impl TeacherConfig {
    /// The settings of `configs/mnist.toml`.
    pub const SMALL: Self = Self {
        architecture: Architecture::SMALL,
        optimizer: OptimizerKind::Adam,
        learning_rate: 4e-3,
        schedule: Schedule::Cosine,
        batch: 30,
        steps: 300,
        shift: 2,
        average: 0.0,
        class_weights: ClassWeights::None,
        unknown: Unknown::Abstain,
    };

    /// Returns the learning rate at `step` (from 0) of a teacher that trains on `images` images.
    pub(crate) fn rate_at(&self, images: usize, step: usize) -> f64 {
        let first = self.learning_rate;
        match self.schedule {
            Schedule::Constant => first,
            Schedule::Cosine => {
                let done = step as f64 / self.steps as f64;
                first * 0.5 * (1.0 + libm::cos(std::f64::consts::PI * done))
            }
            Schedule::Staircase => {
                let drop_after = DECAY_EPOCHS * images as f64 / self.batch as f64;
                first * 0.1_f64.powf((step as f64 / drop_after.floor().max(1.0)).floor())
            }
        }
    }

    /// Checks that images of this size can be trained on.
    ///
    /// # Errors
    /// [`TeacherError::ShiftTooLarge`] and [`TeacherError::Data`].
    pub fn check_images(&self, shape: ImageShape) -> Result<(), TeacherError> {
        if self.shift >= shape.height.min(shape.width) {
            return Err(TeacherError::ShiftTooLarge { shift: self.shift, shape });
        }
        self.architecture.check_images(shape)
    }

    /// Checks each field separately.
    ///
    /// # Errors
    /// The first field with a value that no training could use.
    pub fn check(&self) -> Result<(), InvalidField> {
        let require = |holds: bool, field, allowed: &str, found: String| {
            InvalidField::unless(holds, field, || format!("must be {allowed}, found {found}"))
        };
        let rate = self.learning_rate;
        require(rate > 0.0 && rate.is_finite(), "learning_rate", "a positive number", format!("{rate:?}"))?;
        require((1..=MAX_BATCH).contains(&self.batch), "batch", "from 1 to 65536", self.batch.to_string())?;
        require(self.steps > 0, "steps", "at least 1", self.steps.to_string())?;
        let average = self.average;
        require((0.0..1.0).contains(&average), "average", "at least 0 and below 1", format!("{average:?}"))
    }
}

/// Passes over the partition between two drops of the staircase, as in the published code.
const DECAY_EPOCHS: f64 = 350.0;

/// A larger batch is probably a typing error, and its patches would not fit into memory.
const MAX_BATCH: usize = 65_536;

/// A teacher's network architecture, identified by its name.
#[derive(Clone, Copy)]
pub struct Architecture {
    pub(crate) name: &'static str,
    pub(crate) version: u32,
    pub(crate) least_size: usize,
    pub(crate) step_bytes_per_pixel: usize,
    /// Returns whether it learns from an encoder's vectors.
    pub(crate) reads_vectors: fn() -> bool,
    pub(crate) train: TrainFunction,
    pub(crate) least_parameters: fn(ImageShape, usize) -> usize,
    pub(crate) template: fn(ImageShape, usize, &Device) -> Box<dyn AnyClassifier>,
}

impl Architecture {
    /// Returns its name in a config.
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// Returns the version of the network with this name.
    pub const fn version(self) -> u32 {
        self.version
    }

    /// Returns whether it learns from an encoder's vectors, and not from pictures.
    pub fn reads_vectors(self) -> bool {
        (self.reads_vectors)()
    }

    /// Returns the approximate bytes that a step keeps for each pixel of an image.
    pub const fn step_bytes_per_pixel(self) -> usize {
        self.step_bytes_per_pixel
    }

    /// Returns a network of this architecture with `parameters` parameters of arbitrary values, so that those of a file can
    /// replace them.
    ///
    /// # Errors
    /// If the network does not exist for this image size and number of classes, or has more parameters.
    pub fn classifier(
        self,
        shape: ImageShape,
        classes: usize,
        parameters: usize,
        device: &Device,
    ) -> Result<Box<dyn AnyClassifier>, TeacherError> {
        Self::check_classes(classes)?;
        self.check_images(shape)?;
        let least = (self.least_parameters)(shape, classes);
        if parameters < least {
            return Err(TeacherError::FewParameters { least, found: parameters });
        }
        Ok((self.template)(shape, classes, device))
    }

    pub(crate) fn check_classes(found: usize) -> Result<(), TeacherError> {
        // A label is one byte.
        match found {
            1..=256 => Ok(()),
            _ => Err(TeacherError::Data(format!("a teacher needs 1 to 256 classes, found {found}"))),
        }
    }

    pub(crate) fn check_images(self, shape: ImageShape) -> Result<(), TeacherError> {
        let Self { name, least_size: least, .. } = self;
        if shape.pixels() == 0 || shape.height.min(shape.width) < least {
            return Err(TeacherError::Data(format!(
                "images of {shape} are too small for the {name} network, which needs at least {least}x{least}"
            )));
        }
        Ok(())
    }
}

/// The checked input of one teacher's training.
pub(crate) struct TeacherTraining<'a> {
    pub(crate) index: usize,
    pub(crate) config: &'a TeacherConfig,
    pub(crate) data: &'a Split,
    /// Indices of the training images.
    pub(crate) images: &'a [usize],
    pub(crate) streams: &'a Streams,
    pub(crate) device: &'a Device,
    pub(crate) stop: &'a AtomicBool,
}

/// A function that trains a network, and returns it without gradients, together with the loss of its last batch.
pub(crate) type TrainFunction = fn(&TeacherTraining<'_>) -> Result<(Box<dyn AnyClassifier>, f64), TeacherError>;

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn small() -> TeacherConfig {
        TeacherConfig { steps: 60, shift: 1, ..TeacherConfig::SMALL }
    }

    #[test]
    fn schedules_have_their_shapes() {
        let check = |schedule, expected: &[(usize, f64)]| {
            let config = TeacherConfig { schedule, learning_rate: 0.5, steps: 100, batch: 128, ..small() };
            for &(step, expected) in expected {
                let found = config.rate_at(240, step);
                assert!((found - expected).abs() < 1e-12, "{schedule:?} at {step}: {found}");
            }
        };
        check(Schedule::Constant, &[(0, 0.5), (50, 0.5), (99, 0.5)]);
        check(Schedule::Cosine, &[(0, 0.5), (50, 0.25), (100, 0.0)]);
        // 350 epochs of 240 images in batches of 128 are 656.25 steps.
        check(Schedule::Staircase, &[(0, 0.5), (655, 0.5), (656, 0.05), (1311, 0.05), (1312, 0.005)]);
    }

    #[test]
    fn balanced_weights_give_every_class_of_a_teacher_the_same_sum() {
        let labels = [0, 0, 2, 0, 0, 0, 2, 0];
        assert_eq!(ClassWeights::None.of_labels(labels.into_iter(), 3), None);
        // Eight images of two classes: 8 / (2 * 6) and 8 / (2 * 2).
        let weights = ClassWeights::Balanced.of_labels(labels.into_iter(), 3).expect("weights");
        assert_eq!(weights, [8.0 / 12.0, 0.0, 2.0]);
        let only = ClassWeights::Balanced.of_labels([1; 5].into_iter(), 3);
        assert_eq!(only, Some(vec![0.0, 1.0, 0.0]));
    }

    #[test]
    fn every_impossible_value_names_its_field() {
        assert_eq!(small().check(), Ok(()));
        type Spoil = fn(&mut TeacherConfig);
        let cases: [(&str, Spoil); 9] = [
            ("learning_rate", |c| c.learning_rate = 0.0),
            ("learning_rate", |c| c.learning_rate = f64::NAN),
            ("learning_rate", |c| c.learning_rate = f64::INFINITY),
            ("batch", |c| c.batch = 0),
            ("batch", |c| c.batch = 65_537),
            ("steps", |c| c.steps = 0),
            ("average", |c| c.average = 1.0),
            ("average", |c| c.average = -0.1),
            ("average", |c| c.average = f64::NAN),
        ];
        for (field, spoil) in cases {
            let mut config = small();
            spoil(&mut config);
            assert_eq!(config.check().map_err(|e| e.field), Err(field));
        }
    }

    #[test]
    fn the_written_form_is_stable_and_strict() {
        let json = serde_json::to_string(&small()).expect("plain data");
        assert_eq!(serde_json::from_str::<TeacherConfig>(&json).expect("its own form"), small());
        assert!(
            json.contains(r#""architecture":"small","optimizer":"adam""#) && json.contains(r#""schedule":"cosine""#)
        );
        assert!(!json.contains("class_weights"), "equal weights are not in digests: {json}");
        let balanced = TeacherConfig { class_weights: ClassWeights::Balanced, ..small() };
        let written = serde_json::to_string(&balanced).expect("plain data");
        assert!(written.contains(r#""class_weights":"balanced""#), "{written}");
        assert_eq!(serde_json::from_str::<TeacherConfig>(&written).expect("its own form"), balanced);
        for (from, to) in [(r#""small""#, r#""large""#), (r#""batch""#, r#""batches""#), ("30", "-1"), ("30", "\"30\"")]
        {
            assert!(serde_json::from_str::<TeacherConfig>(&json.replacen(from, to, 1)).is_err(), "{from} to {to}");
        }
    }
}
