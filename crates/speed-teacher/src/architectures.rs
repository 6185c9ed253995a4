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
    use burn::tensor::Tensor;

    use super::*;

    #[track_caller]
    fn check<N: TeacherNetwork>([channels, height, width]: [usize; 3], classes: usize, all: usize, least: usize) {
        let (shape, device) = (ImageShape { channels, height, width }, Device::flex());
        let network = N::new(shape, classes, &mut Streams::new(1).stream("w", 0), &device);
        assert_eq!((network.num_params(), N::least_parameters(shape, classes)), (all, least));
        assert_eq!(network.logits(Tensor::ones([2, height, width, channels], &device)).dims(), [2, classes]);
    }

    #[test]
    fn layers_have_their_sizes() {
        // 28x28x1: 25*16+16, 400*32+32, 512*64+64, 64*10+10. Contrast is computed from one channel.
        for (shape, classes, all, flat) in [
            ([1, 28, 28], 10, 416 + 12_832 + 32_832 + 650, 512),
            ([3, 32, 32], 10, 1216 + 12_832 + 800 * 64 + 64 + 650, 800),
            ([1, 16, 17], 3, 416 + 12_832 + 32 * 64 + 64 + 195, 32),
        ] {
            check::<SmallNetwork>(shape, classes, all, flat * 64);
            check::<SmallContrastNetwork>(shape, classes, all - (shape[0] - 1) * 25 * 16, flat * 64);
        }
        // 28x28x1 is pooled to 14 and 7: 25*64+64, 1600*128+128, 6272*384+384, 384*192+192, 192*10+10.
        check::<ReferenceNetwork>([1, 28, 28], 10, 1664 + 204_928 + 2_408_832 + 73_920 + 1930, 6272 * 384);
        let last = 3 * 2 * 128 * 384;
        check::<ReferenceNetwork>([3, 9, 5], 4, 4864 + 204_928 + last + 384 + 73_920 + 772, last);
        // After the convolutions, 32x32x3 is 8x8x192: 9*3*96+96, 2 of 9*96*96+96, 9*96*192+192, 2 of 9*192*192+192,
        // 25*192*192+192; 12288*192+192, 192*192+192, 192*10+10. And 5x20x1 is 2x5x192.
        let convolutions = 2 * 83_040 + 166_080 + 2 * 331_968 + 921_792;
        check::<DeeperNetwork>([3, 32, 32], 10, 2688 + convolutions + 2_359_488 + 37_056 + 1930, 12_288 * 192);
        check::<DeeperNetwork>([1, 5, 20], 3, 960 + convolutions + 368_832 + 37_056 + 579, 1920 * 192);
    }

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
