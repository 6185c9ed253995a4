//! Predictions of the students' networks.

use burn::tensor::{Device, Tensor};
use speed_data::Split;

use crate::Images;

/// Images classified at a time.
const TOGETHER: usize = 200;

/// A network that classifies images.
pub(crate) trait Classify {
    /// Returns the logits `[images, classes]` of images `[images, height, width, channels]` within 0..=1, as in use.
    fn classify(&self, images: Tensor<4>) -> Tensor<2>;
}

/// Returns the most likely class of every image; of equal ones the lowest.
pub(crate) fn predict(network: &impl Classify, images: Images<'_>, device: &Device) -> Vec<u8> {
    let mut labels = Vec::with_capacity(images.len());
    let indices: Vec<usize> = (0..images.len()).collect();
    for some in indices.chunks(TOGETHER) {
        let logits = network.classify(images.batch(some, device));
        let classes = logits.dims()[1];
        labels.extend(values(logits).chunks_exact(classes).map(greatest));
    }
    labels
}

/// Returns the share of the test images that are classified as labelled.
pub(crate) fn accuracy(network: &impl Classify, test: &Split, device: &Device) -> f64 {
    let labels = predict(network, Images::of(test), device);
    let right = labels.iter().zip(test.labels()).filter(|(found, label)| found == label).count();
    right as f64 / test.len() as f64
}

/// Returns the values of a tensor in row-major order.
///
/// # Panics
/// When the device failed.
pub(crate) fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_to_vec().expect("values of f32")
}

fn greatest(logits: &[f32]) -> u8 {
    let best = (1..logits.len()).fold(0, |best, class| if logits[class] > logits[best] { class } else { best });
    u8::try_from(best).expect("a split has at most 256 classes")
}
