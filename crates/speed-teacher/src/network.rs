//! A trained network of any architecture, without gradients.

use burn::tensor::{Device, Tensor};
use speed_data::ImageShape;
use speed_nn::params::{number_parameters, to_record, with_record};
use speed_random::Streams;

use crate::{TeacherError, TeacherNetwork};

/// A network whose type is not known.
pub(crate) trait AnyNetwork: Send + Sync {
    /// Returns the logits `[images, classes]` of images `[images, height, width, channels]`.
    fn logits(&self, images: Tensor<4>) -> Tensor<2>;

    /// Returns Burn's record of its parameters.
    fn record(&self) -> Result<Vec<u8>, TeacherError>;

    /// Returns the same network with the parameters of a record.
    fn with_record(&self, record: &[u8]) -> Result<Box<dyn AnyNetwork>, TeacherError>;

    /// Returns a copy.
    fn boxed(&self) -> Box<dyn AnyNetwork>;
}

/// Makes a network of an architecture with parameters of no meaning.
pub(crate) type Template = fn(ImageShape, usize, &Device) -> Box<dyn AnyNetwork>;

impl dyn AnyNetwork {
    pub(crate) fn template<N: TeacherNetwork>(shape: ImageShape, classes: usize, device: &Device) -> Box<Self> {
        let mut stream = Streams::new(0).stream("template", 0);
        Box::new(number_parameters(N::new(shape, classes, &mut stream, device)))
    }
}

impl<N: TeacherNetwork> AnyNetwork for N {
    fn logits(&self, images: Tensor<4>) -> Tensor<2> {
        TeacherNetwork::logits(self, images)
    }

    fn record(&self) -> Result<Vec<u8>, TeacherError> {
        to_record(self).map_err(TeacherError::record)
    }

    fn with_record(&self, record: &[u8]) -> Result<Box<dyn AnyNetwork>, TeacherError> {
        Ok(Box::new(with_record(self.clone(), record).map_err(TeacherError::record)?))
    }

    fn boxed(&self) -> Box<dyn AnyNetwork> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn AnyNetwork> {
    fn clone(&self) -> Self {
        self.as_ref().boxed()
    }
}
