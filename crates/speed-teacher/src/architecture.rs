//! The teachers' network architectures, by name.

use burn::tensor::{Device, Tensor};
use speed_core::random::{Stream, Streams};
use speed_data::ImageShape;
use speed_nn::params::number_parameters;
use speed_nn::training::{AnyClassifier, Classifier, Named, RegistrationError, Registry, by_name};

use crate::TeacherError;
use crate::architectures::{DeeperNetwork, ReferenceNetwork, SmallContrastNetwork, SmallNetwork};
use crate::train::{TrainFunction, train};

/// A classifier that teachers can use: [`Architecture::register`] gives it a name.
pub trait TeacherNetwork: Classifier {
    /// The least height and width of its images.
    const LEAST_SIZE: usize = 1;

    /// Approximate bytes that a step keeps for each pixel of an image; used in a run's estimate of its memory.
    const STEP_BYTES_PER_PIXEL: usize = 2048;

    /// A version number, to be raised when the name refers to a changed network: finished trainings are then not
    /// reused.
    const VERSION: u32 = 1;

    /// Returns a network with initial weights from `stream`, for images of at least [`LEAST_SIZE`](Self::LEAST_SIZE) a side.
    fn new(shape: ImageShape, classes: usize, stream: &mut Stream, device: &Device) -> Self;

    /// Returns a term that is added to the mean cross-entropy, of shape `[1]`: weight decay, for instance.
    fn penalty(&self) -> Option<Tensor<1>> {
        None
    }
}

/// A teacher's network architecture, identified by its name.
#[derive(Clone, Copy)]
pub struct Architecture {
    name: &'static str,
    version: u32,
    least_size: usize,
    step_bytes_per_pixel: usize,
    pub(crate) train: TrainFunction,
    /// Makes a network with arbitrary parameters.
    pub(crate) template: fn(ImageShape, usize, &Device) -> Box<dyn AnyClassifier>,
}

static ARCHITECTURES: Registry<Architecture> =
    Registry::new(&[Architecture::SMALL, Architecture::SMALL_CONTRAST, Architecture::REFERENCE, Architecture::DEEPER]);

impl Architecture {
    /// 5x5x16, 5x5x32, 64: a small fraction of the reference's work, for partitions of a few hundred images.
    pub const SMALL: Self = Self::new::<SmallNetwork>("small");
    /// The size of the small one, for photographs of digits: in grey, with mean 0 and deviation 1, and with almost the
    /// same response to dark on light as to light on dark.
    pub const SMALL_CONTRAST: Self = Self::new::<SmallContrastNetwork>("small-contrast");
    /// The paper's: 5x5x64, 5x5x128, 384, 192 with local response normalisation.
    pub const REFERENCE: Self = Self::new::<ReferenceNetwork>("reference");
    /// The paper's for SVHN: seven convolutions, 192, 192.
    pub const DEEPER: Self = Self::new::<DeeperNetwork>("deeper");

    const fn new<N: TeacherNetwork>(name: &'static str) -> Self {
        Self {
            name,
            version: N::VERSION,
            least_size: N::LEAST_SIZE,
            step_bytes_per_pixel: N::STEP_BYTES_PER_PIXEL,
            train: train::<N>,
            template: template::<N>,
        }
    }

    /// Registers a network under a name, which configs can then use in this process.
    ///
    /// # Errors
    /// [`RegistrationError`].
    pub fn register<N: TeacherNetwork>(name: &'static str) -> Result<Self, RegistrationError> {
        ARCHITECTURES.add(Self::new::<N>(name))
    }

    /// Returns all architectures, the built-in ones first.
    #[must_use]
    pub fn all() -> Vec<Self> {
        ARCHITECTURES.all()
    }

    /// Returns its name in a config.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// Returns the version of the network with this name.
    #[must_use]
    pub const fn version(self) -> u32 {
        self.version
    }

    /// Returns the approximate bytes that a step keeps for each pixel of an image.
    #[must_use]
    pub const fn step_bytes_per_pixel(self) -> usize {
        self.step_bytes_per_pixel
    }

    /// Checks the number of classes.
    ///
    /// # Errors
    /// [`TeacherError::ClassCount`].
    pub(crate) fn check_classes(found: usize) -> Result<(), TeacherError> {
        // A label is one byte.
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

fn template<N: TeacherNetwork>(shape: ImageShape, classes: usize, device: &Device) -> Box<dyn AnyClassifier> {
    Box::new(number_parameters(N::new(shape, classes, &mut Streams::new(0).stream("template", 0), device)))
}

impl Named for Architecture {
    fn name(self) -> &'static str {
        self.name
    }
}

by_name!(Architecture, ARCHITECTURES);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configs_know_architectures_by_their_names() {
        let read = |name: &str| serde_json::from_str::<Architecture>(&format!("\"{name}\""));
        assert!(
            read("small-again")
                .expect_err("unknown")
                .to_string()
                .contains("`small`, `small-contrast`, `reference`, `deeper`")
        );
        let own = Architecture::register::<SmallNetwork>("small-again").expect("a new name");
        assert_eq!(read("small-again").expect("registered"), own);
        assert_eq!(serde_json::to_string(&own).expect("a name"), "\"small-again\"");
        assert!(Architecture::register::<ReferenceNetwork>("small-again").is_err());
    }
}
