//! The teachers' networks behind one type.

#[cfg(test)]
mod burn_twin;
mod loss;
mod parameters;
mod reference;
mod small;

use crate::batch::Images;
use crate::{Architecture, TeacherError};
use burn::module::Module;
use burn::optim::GradientsParams;
use burn::tensor::Device;
use reference::ReferenceNetwork;
pub(crate) use small::SmallNetwork;

pub use parameters::ParameterArray;
pub(crate) use parameters::parameter_arrays;
pub use small::KERNEL;
use speed_data::ImageShape;
use speed_random::Stream;

/// Memory that steps share: what a forward pass leaves for the backward pass.
#[derive(Default)]
pub(crate) struct Trace {
    small: small::Trace,
    reference: reference::Trace,
}

/// A teacher's network of either architecture.
#[derive(Module, Debug)]
pub(crate) enum Network {
    Small(SmallNetwork),
    Reference(ReferenceNetwork),
}

impl Network {
    /// Returns a network with initial weights from `stream`; its parameters are numbered, so that equal networks have equal
    /// bytes.
    pub(crate) fn new(
        architecture: Architecture,
        shape: ImageShape,
        classes: usize,
        stream: &mut Stream,
        device: &Device,
    ) -> Result<Self, TeacherError> {
        if !(1..=256).contains(&classes) {
            return Err(TeacherError::ClassCount { found: classes });
        }
        let too_small = |least| TeacherError::ImageTooSmall { shape, architecture: architecture.name(), least };
        let network = match architecture {
            Architecture::Small => Self::Small(
                SmallNetwork::new(shape, classes, stream, device).ok_or_else(|| too_small(SmallNetwork::MIN_SIZE))?,
            ),
            Architecture::Reference if shape.pixels() == 0 => return Err(too_small(1)),
            Architecture::Reference => Self::Reference(ReferenceNetwork::new(shape, classes, stream, device)),
        };
        Ok(speed_nn::params::number_parameters(network))
    }

    /// Logits of images, `classes` an image.
    pub(crate) fn logits(&self, images: &Images, trace: &mut Trace) -> Result<Vec<f32>, TeacherError> {
        match self {
            Self::Small(network) => network.logits(images, &mut trace.small),
            Self::Reference(network) => network.logits(images, &mut trace.reference),
        }
    }

    /// Returns the loss of a batch, weight decay included, and its gradients; for a network on the autodiff device `device`.
    pub(crate) fn gradients(
        &self,
        images: &Images,
        labels: &[u8],
        trace: &mut Trace,
        device: &Device,
    ) -> Result<(f32, GradientsParams), TeacherError> {
        let device = device.clone().inner();
        match self {
            Self::Small(network) => network.gradients(images, labels, &mut trace.small, &device),
            Self::Reference(network) => network.gradients(images, labels, &mut trace.reference, &device),
        }
    }

    /// Returns the value of an empty pixel: a byte b is read as `b / 255 + offset`.
    pub(crate) fn offset(&self) -> f32 {
        match self {
            Self::Small(_) => SmallNetwork::OFFSET,
            Self::Reference(_) => ReferenceNetwork::OFFSET,
        }
    }
}
