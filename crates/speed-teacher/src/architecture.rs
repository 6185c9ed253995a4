//! The teachers' networks by name.

use std::fmt;
use std::sync::{PoisonError, RwLock};

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use speed_data::ImageShape;
use speed_random::Stream;

use crate::TeacherError;
use crate::architectures::{DeeperNetwork, ReferenceNetwork, SmallNetwork};
use crate::network::{AnyNetwork, Template};
use crate::train::{TrainFunction, train};

/// A network that classifies images: a Burn module like any other. [`Architecture::register`] gives it a name.
pub trait TeacherNetwork: Module + Sync + 'static {
    /// The value of an empty pixel: a byte b of an image is read as `b / 255 + OFFSET`.
    const OFFSET: f32 = 0.0;

    /// The least height and width of its images.
    const LEAST_SIZE: usize = 1;

    /// Bytes that a step keeps for each pixel of an image, about: what a run says that it needs.
    const STEP_BYTES_PER_PIXEL: usize = 2048;

    /// A number to raise when the same name stands for another network: trainings that were finished are then not used again.
    const VERSION: u32 = 1;

    /// Returns a network with initial weights from `stream`, for images of at least [`LEAST_SIZE`](Self::LEAST_SIZE) a side.
    fn new(shape: ImageShape, classes: usize, stream: &mut Stream, device: &Device) -> Self;

    /// Returns the logits `[images, classes]` of images `[images, height, width, channels]`.
    fn logits(&self, images: Tensor<4>) -> Tensor<2>;

    /// Returns what is added to the mean cross-entropy, of shape `[1]`: weight decay, for instance.
    fn penalty(&self) -> Option<Tensor<1>> {
        None
    }
}

/// A teacher's network by its name.
#[derive(Clone, Copy)]
pub struct Architecture {
    name: &'static str,
    version: u32,
    least_size: usize,
    step_bytes_per_pixel: usize,
    pub(crate) offset: f32,
    pub(crate) train: TrainFunction,
    pub(crate) template: Template,
}

/// A name that stands for another architecture already, or cannot be one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegistrationError {
    /// It is taken.
    #[error("there is an architecture {name:?} already")]
    Taken {
        /// The name.
        name: String,
    },
    /// It is empty, or not of lower-case letters, digits and hyphens.
    #[error("{name:?} is no name of an architecture: expected lower-case letters, digits and hyphens")]
    Name {
        /// The name.
        name: String,
    },
}

/// Architectures of the program that uses this crate, beside the built-in ones.
static REGISTERED: RwLock<Vec<Architecture>> = RwLock::new(Vec::new());

impl Architecture {
    /// 5x5x16, 5x5x32, 64: a small fraction of the reference's work, for partitions of a few hundred images.
    pub const SMALL: Self = Self::of::<SmallNetwork>("small");
    /// The paper's: 5x5x64, 5x5x128, 384, 192 with local response normalisation.
    pub const REFERENCE: Self = Self::of::<ReferenceNetwork>("reference");
    /// The paper's for SVHN: seven convolutions, 192, 192.
    pub const DEEPER: Self = Self::of::<DeeperNetwork>("deeper");

    const BUILT_IN: [Self; 3] = [Self::SMALL, Self::REFERENCE, Self::DEEPER];

    const fn of<N: TeacherNetwork>(name: &'static str) -> Self {
        Self {
            name,
            version: N::VERSION,
            least_size: N::LEAST_SIZE,
            step_bytes_per_pixel: N::STEP_BYTES_PER_PIXEL,
            offset: N::OFFSET,
            train: train::<N>,
            template: <dyn AnyNetwork>::template::<N>,
        }
    }

    /// Gives a network a name, under which configs of this process find it.
    ///
    /// # Errors
    /// [`RegistrationError`].
    pub fn register<N: TeacherNetwork>(name: &'static str) -> Result<Self, RegistrationError> {
        let is_part = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if name.is_empty() || !name.bytes().all(is_part) {
            return Err(RegistrationError::Name { name: name.to_owned() });
        }
        let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
        if Self::BUILT_IN.iter().chain(registered.iter()).any(|other| other.name == name) {
            return Err(RegistrationError::Taken { name: name.to_owned() });
        }
        let architecture = Self::of::<N>(name);
        registered.push(architecture);
        Ok(architecture)
    }

    /// Returns all architectures, the built-in ones first.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
        Self::BUILT_IN.iter().chain(registered.iter()).copied().collect()
    }

    /// Returns its name in a config.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// Returns the version of the network behind the name.
    #[must_use]
    pub const fn version(self) -> u32 {
        self.version
    }

    /// Returns the bytes that a step keeps for each pixel of an image, about.
    #[must_use]
    pub const fn step_bytes_per_pixel(self) -> usize {
        self.step_bytes_per_pixel
    }

    /// Checks the number of classes.
    ///
    /// # Errors
    /// [`TeacherError::ClassCount`].
    pub(crate) fn check_classes(found: usize) -> Result<(), TeacherError> {
        // A label is a byte.
        if (1..=256).contains(&found) { Ok(()) } else { Err(TeacherError::ClassCount { found }) }
    }

    /// Checks the size of images.
    ///
    /// # Errors
    /// [`TeacherError::ImageTooSmall`].
    pub(crate) fn check_images(self, shape: ImageShape) -> Result<(), TeacherError> {
        let (architecture, least) = (self.name, self.least_size);
        if shape.pixels() == 0 || shape.height.min(shape.width) < least {
            return Err(TeacherError::ImageTooSmall { shape, architecture, least });
        }
        Ok(())
    }
}

impl PartialEq for Architecture {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Architecture {}

impl fmt::Debug for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Serialize for Architecture {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name)
    }
}

impl<'de> Deserialize<'de> for Architecture {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let all = Self::all();
        all.iter().find(|architecture| architecture.name == name).copied().ok_or_else(|| {
            let names: Vec<String> = all.iter().map(|architecture| format!("`{}`", architecture.name)).collect();
            serde::de::Error::custom(format!("unknown variant `{name}`, expected one of {}", names.join(", ")))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_known_to_configs() {
        assert_eq!(
            Architecture::register::<SmallNetwork>("small"),
            Err(RegistrationError::Taken { name: "small".into() })
        );
        for name in ["", "My net", "a_b"] {
            assert_eq!(
                Architecture::register::<SmallNetwork>(name),
                Err(RegistrationError::Name { name: name.into() })
            );
        }
        let read = |name: &str| serde_json::from_str::<Architecture>(&format!("\"{name}\""));
        assert!(read("small-again").expect_err("unknown").to_string().contains("`small`, `reference`"));
        let own = Architecture::register::<SmallNetwork>("small-again").expect("a new name");
        assert_eq!(read("small-again").expect("registered"), own);
        assert_eq!(serde_json::to_string(&own).expect("a name"), "\"small-again\"");
        assert!(Architecture::register::<ReferenceNetwork>("small-again").is_err());
    }
}
