//! The teachers' networks behind one type.

mod reference;
mod small;

use crate::batch::Images;
use crate::{Architecture, TeacherError};
use burn::module::Module;
use burn::optim::GradientsParams;
use burn::tensor::{Device, Int, Tensor, TensorData, activation};
use reference::ReferenceNetwork;
use small::SmallNetwork;
use speed_data::ImageShape;
use speed_random::Stream;

pub(crate) use small::Trace;

/// A teacher's network of either architecture.
#[derive(Module, Debug)]
pub(crate) enum Network {
    Small(SmallNetwork),
    Reference(ReferenceNetwork),
}

impl Network {
    /// A network with initial weights from `stream`; its parameters are numbered, so that equal networks have equal
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
                SmallNetwork::new(shape, classes, stream, device).ok_or_else(|| too_small(SmallNetwork::LEAST_SIZE))?,
            ),
            Architecture::Reference if shape.pixels() == 0 => return Err(too_small(1)),
            Architecture::Reference => Self::Reference(ReferenceNetwork::new(shape, classes, stream, device)),
        };
        Ok(speed_nn::params::number_parameters(network))
    }

    /// Logits of images, `classes` an image.
    pub(crate) fn logits(&self, images: &Images, trace: &mut Trace) -> Result<Vec<f32>, TeacherError> {
        match self {
            Self::Small(network) => network.logits(images, trace),
            Self::Reference(network) => {
                network.forward(images, &Device::flex()).into_data().try_to_vec().map_err(TeacherError::device)
            }
        }
    }

    /// The loss of a batch, weight decay included, and its gradients; for a network on the autodiff device `device`.
    pub(crate) fn gradients(
        &self,
        images: &Images,
        labels: &[u8],
        trace: &mut Trace,
        device: &Device,
    ) -> Result<(f32, GradientsParams), TeacherError> {
        match self {
            Self::Small(network) => network.gradients(images, labels, trace, &device.clone().inner()),
            Self::Reference(network) => {
                let loss = cross_entropy(network.forward(images, device), labels, device) + network.penalty();
                let value = loss.clone().into_scalar();
                Ok((value, GradientsParams::from_grads(loss.backward(), self)))
            }
        }
    }

    /// The value of an empty pixel: a byte b is read as `b / 255 + offset`.
    pub(crate) fn offset(&self) -> f32 {
        match self {
            Self::Small(_) => SmallNetwork::OFFSET,
            Self::Reference(_) => ReferenceNetwork::OFFSET,
        }
    }
}

/// Mean cross-entropy in nats, shape `[1]`.
fn cross_entropy(logits: Tensor<2>, labels: &[u8], device: &Device) -> Tensor<1> {
    let labels: Vec<i32> = labels.iter().map(|&label| i32::from(label)).collect();
    let labels: Tensor<2, Int> = Tensor::from_data(TensorData::new(labels, [logits.dims()[0], 1]), device);
    activation::log_softmax(logits, 1).gather(1, labels).mean().neg()
}
