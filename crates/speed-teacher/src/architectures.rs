//! The list of architectures: the built-in networks, and those that a program registers.

mod deeper;
mod linear;
mod reference;
mod small;

use burn::tensor::Device;
use speed_core::random::Streams;
use speed_data::ImageShape;
use speed_nn::params::number_parameters;
use speed_nn::training::{AnyClassifier, Named, RegistrationError, Registry, by_name};

use crate::train::train;
use crate::{Architecture, TeacherNetwork};
pub(crate) use deeper::DeeperNetwork;
pub(crate) use linear::LinearNetwork;
pub(crate) use reference::ReferenceNetwork;
pub(crate) use small::{SmallContrastNetwork, SmallNetwork};

static ARCHITECTURES: Registry<Architecture> = Registry::new(&[
    Architecture::SMALL,
    Architecture::SMALL_CONTRAST,
    Architecture::REFERENCE,
    Architecture::DEEPER,
    Architecture::LINEAR,
]);

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

    /// Multinomial logistic regression on an encoder's vectors.
    pub const LINEAR: Self = Self::new::<LinearNetwork>("linear");

    const fn new<N: TeacherNetwork>(name: &'static str) -> Self {
        Self {
            name,
            version: N::VERSION,
            least_size: N::LEAST_SIZE,
            step_bytes_per_pixel: N::STEP_BYTES_PER_PIXEL,
            reads_vectors: N::reads_vectors,
            train: train::<N>,
            least_parameters: N::least_parameters,
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

    fn find(name: &str) -> Result<Self, String> {
        ARCHITECTURES.find(name)
    }

    /// Returns all architectures, the built-in ones first.
    pub fn all() -> Vec<Self> {
        ARCHITECTURES.all()
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

by_name!(Architecture, Architecture::find);

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
                .contains("`small`, `small-contrast`, `reference`, `deeper`, `linear`")
        );
        let own = Architecture::register::<SmallNetwork>("small-again").expect("a new name");
        assert_eq!(read("small-again").expect("registered"), own);
        assert_eq!(serde_json::to_string(&own).expect("a name"), "\"small-again\"");
        assert!(Architecture::register::<ReferenceNetwork>("small-again").is_err());
    }
}
