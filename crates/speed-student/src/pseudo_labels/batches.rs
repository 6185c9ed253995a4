//! The views of images that a step sees, and its targets.

use burn::tensor::{Device, Tensor, TensorData, activation};
use rand::seq::SliceRandom;
use speed_data::ImageShape;
use speed_nn::matrix::Matrix;
use speed_random::Stream;

use super::PseudoLabelsConfig;
use super::targets::{Lesson, one_hot};
use crate::Images;

/// The images of a step: labelled ones first, pseudo-labelled ones after them. Keeps its memory.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// Image by image in HWC order, 0..=1.
    pub(super) pixels: Vec<f32>,
    /// A distribution over the classes for each image.
    pub(super) targets: Matrix,
    /// The weight of each image's loss.
    pub(super) weights: Vec<f32>,
    /// Number of labelled ones.
    pub(super) labelled: usize,
}

impl Batch {
    /// Returns the images as `[images, height, width, channels]`.
    pub(super) fn images(&self, shape: ImageShape, device: &Device) -> Tensor<4> {
        let dims = [self.weights.len(), shape.height, shape.width, shape.channels];
        Tensor::from_data(TensorData::new(self.pixels.clone(), dims), device)
    }

    /// Returns the weighted cross-entropy of every image, `[images]`, in nats.
    pub(super) fn losses(&self, logits: Tensor<2>) -> Tensor<1> {
        let device = &logits.device();
        let dims = [self.targets.rows(), self.targets.columns()];
        let targets = Tensor::<2>::from_data(TensorData::new(self.targets.values().to_vec(), dims), device);
        let weights = Tensor::<1>::from_data(self.weights.as_slice(), device);
        let entropies = (activation::log_softmax(logits, 1) * targets).sum_dim(1).squeeze_dim::<1>(1);
        entropies.neg() * weights
    }
}

/// Draws the batches of an epoch.
pub(super) struct Batches<'a> {
    config: &'a PseudoLabelsConfig,
    pool: Images<'a>,
    labels: &'a [(usize, u8)],
    lesson: &'a Lesson,
    labelled: Cycle,
    confident: Cycle,
}

impl<'a> Batches<'a> {
    pub(super) fn new(
        config: &'a PseudoLabelsConfig,
        pool: Images<'a>,
        labels: &'a [(usize, u8)],
        lesson: &'a Lesson,
    ) -> Self {
        let (labelled, confident) = (Cycle::new(labels.len()), Cycle::new(lesson.confident.len()));
        Self { config, pool, labels, lesson, labelled, confident }
    }

    /// Writes strong views to `batch`. The weights of labelled images sum to `labelled_weight`, and without weight there
    /// are none; those of pseudo-labelled images sum to the unlabelled weight times the share of the pool that has a
    /// pseudo-label, as if the others were there with weight 0.
    pub(super) fn next(&mut self, labelled_weight: f64, batch: &mut Batch, stream: &mut Stream) {
        let Self { config, pool, labels, lesson, .. } = *self;
        let labelled = if labelled_weight > 0.0 { config.labelled_batch } else { 0 };
        let confident = if lesson.confident.is_empty() { 0 } else { config.batch };
        let share = lesson.confident.len() as f64 / pool.len() as f64;
        batch.weights.clear();
        batch.weights.resize(labelled, (labelled_weight / labelled.max(1) as f64) as f32);
        let weight = config.unlabelled_weight * share / config.batch as f64;
        batch.weights.resize(labelled + confident, weight as f32);
        batch.targets.resize(labelled + confident, lesson.labelled.columns());
        batch.labelled = labelled;

        let shape = pool.shape();
        batch.pixels.resize((labelled + confident) * shape.pixels(), 0.0);
        for (place, view) in batch.pixels.chunks_exact_mut(shape.pixels()).enumerate() {
            let target = batch.targets.row_mut(place);
            let image = if place < labelled {
                let position = self.labelled.next(stream);
                target.copy_from_slice(lesson.labelled.row(position));
                labels[position].0
            } else {
                let (image, label) = lesson.confident[self.confident.next(stream)];
                one_hot(label, target);
                image
            };
            config.strong.write(pool.pixels(image), shape, stream, view);
        }
    }
}

/// Every position once, in random order, then again in another order.
#[derive(Debug)]
struct Cycle {
    order: Vec<usize>,
    next: usize,
}

impl Cycle {
    fn new(length: usize) -> Self {
        Self { order: (0..length).collect(), next: length }
    }

    fn next(&mut self, stream: &mut Stream) -> usize {
        if self.next == self.order.len() {
            self.order.shuffle(stream);
            self.next = 0;
        }
        self.next += 1;
        self.order[self.next - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use speed_data::Split;
    use speed_random::Streams;

    #[test]
    fn a_cycle_takes_every_position_once_a_round() {
        let (mut cycle, mut stream) = (Cycle::new(7), Streams::new(1).stream("cycle", 0));
        let rounds: Vec<Vec<usize>> = (0..3).map(|_| (0..7).map(|_| cycle.next(&mut stream)).collect()).collect();
        for round in &rounds {
            let mut sorted = round.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..7).collect::<Vec<_>>());
        }
        assert_ne!(rounds[0], rounds[1]);
    }

    #[test]
    fn weights_and_targets_are_those_of_the_lesson() {
        let shape = ImageShape { channels: 1, height: 2, width: 2 };
        let split = Split::new(shape, 3, vec![255; 40], vec![0; 10]).expect("a split");
        let config =
            PseudoLabelsConfig { labelled_batch: 2, batch: 4, unlabelled_weight: 0.5, ..PseudoLabelsConfig::default() };
        let labels = [(3, 1), (4, 2)];
        let mut lesson = Lesson::of_labels(&labels, 3);
        let (mut batch, mut stream) = (Batch::default(), Streams::new(1).stream("batch", 0));
        Batches::new(&config, Images::of(&split), &labels, &lesson).next(1.0, &mut batch, &mut stream);
        assert_eq!((batch.weights.as_slice(), batch.labelled), (&[0.5, 0.5][..], 2));
        assert_eq!(batch.pixels.len(), 8);

        lesson.confident = vec![(7, 0), (8, 0)];
        Batches::new(&config, Images::of(&split), &labels, &lesson).next(0.5, &mut batch, &mut stream);
        // Two of ten images are confident: 0.5 * 0.2 / 4 each.
        assert_eq!(batch.weights, [0.25, 0.25, 0.025, 0.025, 0.025, 0.025]);
        assert_eq!(batch.targets.row(2), [1.0, 0.0, 0.0]);
        assert_eq!(batch.targets.row(0)[0], 0.0);
        Batches::new(&config, Images::of(&split), &labels, &lesson).next(0.0, &mut batch, &mut stream);
        assert_eq!((batch.weights.len(), batch.labelled), (4, 0));
    }
}
