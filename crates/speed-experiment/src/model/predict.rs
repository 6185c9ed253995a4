//! Predictions of a model, in batches on several threads.

use std::num::NonZeroUsize;

use serde::Serialize;
use speed_core::random::{Stream, Streams};
use speed_core::{ExitCode, Vote};
use speed_data::Split;
use speed_nn::math::exp;
use speed_nn::threads;
use speed_nn::training::{Activations, TOGETHER, greatest, logits};

use super::Model;
use super::description::{Network, Origin};
use super::inputs::{Image, Inputs};
use crate::error::ExperimentError;

/// Maximum number of values of the largest tensor of a batch: 1 GiB. Smaller networks compute [`TOGETHER`] images at a time,
/// so their logits have the bits of an evaluation.
const BATCH_VALUES: usize = 1 << 28;
/// Maximum number of values of the largest tensors of all threads: 2 GiB.
const ALL_VALUES: usize = 1 << 29;

/// Number of pictures that a thread encodes between two reports of progress.
const ENCODED: usize = 4;

/// The prediction of one image.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Prediction {
    /// The image: the path of a picture, or the path of an array with a position.
    pub image: String,
    /// The most likely class; the lowest class on a tie.
    pub class: usize,
    /// The probability of every class, as the network states it.
    pub probabilities: Vec<f32>,
}

/// The prediction of many images.
#[derive(Clone, Copy)]
pub struct Predicting<'a> {
    /// The model.
    pub model: &'a Model,
    /// Number of threads. Predictions do not depend on it.
    pub threads: NonZeroUsize,
    /// The function that is called with the number of images of every finished batch.
    pub on_batch: &'a (dyn Fn(usize) + Sync),
}

impl Predicting<'_> {
    /// Returns the prediction of every image, in order. Only the encoder's vectors, and a batch of other images per thread, are in memory
    /// at a time.
    ///
    /// # Errors
    /// If a picture cannot be read or does not have the model's shape, the model's encoder was not read or fails, or the network
    /// gives logits that are not finite.
    pub fn predict(&self, inputs: &Inputs) -> Result<Vec<Prediction>, ExperimentError> {
        Ok(self.votes(inputs)?.into_iter().map(|(prediction, _)| prediction).collect())
    }

    /// Returns the prediction of every image as [`Self::predict`], with its vote, which is usually the predicted class. For an
    /// image unlike a teacher's own, `teacher.unknown` of its training decides the vote. `None` is an empty vote. The model's
    /// seed determines random votes.
    pub(crate) fn votes(&self, inputs: &Inputs) -> Result<Vec<(Prediction, Vote)>, ExperimentError> {
        let _arithmetic = self.model.description.arithmetic.hold()?;
        let Activations { tensor, patches } = self.model.activations;
        let together = (BATCH_VALUES / tensor.max(1)).clamp(1, TOGETHER);
        let threads = (ALL_VALUES / (together * tensor + patches).max(1)).clamp(1, self.threads.get());
        let vectors = if inputs.are_vectors() { None } else { self.vectors(inputs)? };
        let images = vectors.as_ref().unwrap_or(inputs).images();
        let numbered: Vec<(usize, &[Image])> = images.chunks(together).enumerate().collect();
        let Origin { seed, teacher, .. } = self.model.description.origin;
        let streams = Streams::new(seed).child("unknown", teacher.unwrap_or(0) as u64);
        let predictions = threads::map(&numbered, threads, |&(batch, images), _| {
            let predictions = self.batch(images, &mut streams.stream("batch", batch as u64))?;
            if vectors.is_none() {
                (self.on_batch)(images.len());
            }
            Ok::<_, ExperimentError>(predictions)
        })?;
        Ok(predictions.into_iter().flatten().collect())
    }

    /// Returns the vectors of images, from which every model of the same encoder predicts; `None` for a model of pictures.
    pub(crate) fn vectors(&self, inputs: &Inputs) -> Result<Option<Inputs>, ExperimentError> {
        let Some(encoder) = self.model.encoder()? else { return Ok(None) };
        let few: Vec<&[Image]> = inputs.images().chunks(ENCODED).collect();
        let vectors = threads::map(&few, self.threads.get(), |images, _| {
            let vectors =
                images.iter().map(|image| self.model.vector(encoder, image)).collect::<Result<Vec<_>, _>>()?;
            (self.on_batch)(images.len());
            Ok::<_, ExperimentError>(vectors)
        })?;
        Ok(Some(inputs.with_vectors(vectors.concat())))
    }

    fn batch(&self, images: &[Image], stream: &mut Stream) -> Result<Vec<(Prediction, Vote)>, ExperimentError> {
        let (model, preparation) = (self.model, self.model.preparation());
        let mut pixels = Vec::with_capacity(images.len() * model.shape().pixels());
        images.iter().try_for_each(|image| image.read(&preparation, &mut pixels))?;
        // The labels are not used.
        let split = Split::new(model.shape(), model.description.classes.len(), pixels, vec![0; images.len()])?;
        let all: Vec<usize> = (0..split.len()).collect();
        let (logits, classes) = logits(model.network.as_ref(), &split, &all, &model.device)?;
        let predictions =
            images.iter().zip(logits.chunks_exact(classes)).enumerate().map(|(index, (image, logits))| {
                if let Some(&found) = logits.iter().find(|logit| !logit.is_finite()) {
                    let expected = "expected finite logits of every class for this image";
                    let message = format_args!("{expected}, found {found}: the model is unusable");
                    return Err(ExperimentError::new(ExitCode::Computation, message).at(image.name()));
                }
                let label = greatest(logits);
                let vote = match (&model.own, &model.description.network) {
                    (Some(own), Network::Teacher { config, .. }) => {
                        own.vote(config.unknown, label, split.pixels(index), stream)
                    }
                    _ => Some(label),
                };
                let prediction =
                    Prediction { image: image.name(), class: label.into(), probabilities: probabilities(logits) };
                Ok((prediction, vote))
            });
        predictions.collect()
    }
}

/// Returns the probabilities of finite logits: a softmax.
pub(crate) fn probabilities(logits: &[f32]) -> Vec<f32> {
    let greatest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let weights: Vec<f32> = logits.iter().map(|logit| exp(logit - greatest)).collect();
    let sum: f32 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / sum).collect()
}

#[cfg(test)]
mod tests {
    use super::probabilities;

    #[test]
    fn probabilities_sum_to_one_for_logits_of_any_size() {
        for logits in [vec![0.0, 0.0], vec![1000.0, -1000.0, 999.0], vec![f32::MAX, f32::MIN], vec![-3.0]] {
            let found = probabilities(&logits);
            assert!((found.iter().sum::<f32>() - 1.0).abs() < 1e-6, "{logits:?}: {found:?}");
        }
        assert_eq!(probabilities(&[5.0, 5.0]), [0.5, 0.5]);
    }
}
