//! The batches of a step: views of images, and their targets.

use speed_core::random::Stream;
use speed_nn::matrix::Matrix;
use speed_nn::training::{Cycle, Pixels};

use super::targets::{Targets, one_hot};
use crate::Lesson;

/// The images of a step: labelled ones first, pseudo-labelled ones after them.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) pixels: Pixels,
    /// A distribution over the classes for each image.
    pub(super) targets: Matrix,
    /// The weight of each image's loss.
    pub(super) weights: Vec<f32>,
    pub(super) labelled: usize,
}

pub(super) struct Batches<'a> {
    lesson: &'a Lesson<'a>,
    targets: &'a Targets,
    labelled: Cycle,
    confident: Cycle,
}

impl<'a> Batches<'a> {
    pub(super) fn new(lesson: &'a Lesson<'a>, targets: &'a Targets) -> Self {
        let cycle = |length: usize| Cycle::new((0..length).collect());
        Self { lesson, targets, labelled: cycle(lesson.labelled.len()), confident: cycle(targets.confident.len()) }
    }

    /// Returns strong views. The weights of labelled images sum to `labelled_weight`; with weight 0, labelled images
    /// are left out. The weights of pseudo-labelled images sum to the unlabelled weight times the share of the pool
    /// that has a pseudo-label, as if the other images were present with weight 0.
    pub(super) fn next(&mut self, labelled_weight: f64, stream: &mut Stream) -> Batch {
        let (pool, config) = (self.lesson.pool, &self.lesson.config.pseudo_labels);
        let labelled = if labelled_weight > 0.0 { config.labelled_batch } else { 0 };
        let confident = if self.targets.confident.is_empty() { 0 } else { config.batch };
        let share = self.targets.confident.len() as f64 / pool.len() as f64;
        let mut weights = vec![(labelled_weight / labelled.max(1) as f64) as f32; labelled];
        let weight = config.constants.unlabelled_weight * share / config.batch as f64;
        weights.resize(labelled + confident, weight as f32);

        let (strong, mut pixels) = (config.views.strong(), Pixels::with_capacity(pool.shape(), labelled + confident));
        let mut targets = Matrix::zeros(labelled + confident, self.targets.labelled.columns());
        for place in 0..labelled + confident {
            let target = targets.row_mut(place);
            let image = if place < labelled {
                let position = self.labelled.next(stream);
                target.copy_from_slice(self.targets.labelled.row(position));
                self.lesson.labelled[position].0
            } else {
                let (image, label) = self.targets.confident[self.confident.next(stream)];
                one_hot(label, target);
                image
            };
            strong.write(pool.pixels(image), pool.shape(), stream, pixels.push_empty());
        }
        Batch { pixels, targets, weights, labelled }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pseudo_labels::{PseudoLabelsConfig, PseudoLabelsConstants};
    use crate::{Images, StudentConfig};
    use burn::tensor::Device;
    use speed_core::random::Streams;
    use speed_data::{ImageShape, Split};

    #[test]
    fn weights_and_targets_are_those_of_the_epoch() {
        let shape = ImageShape { channels: 1, height: 2, width: 2 };
        let split = Split::new(shape, 3, vec![255; 40], vec![0; 10]).expect("a split");
        let constants = PseudoLabelsConstants { unlabelled_weight: 0.5, ..Default::default() };
        let pseudo_labels = PseudoLabelsConfig { labelled_batch: 2, batch: 4, constants, ..Default::default() };
        let config = &StudentConfig { pseudo_labels, ..StudentConfig::default() };
        let (labelled, streams, device) = (&[(3, 1), (4, 2)], &Streams::new(1), &Device::flex());
        let lesson =
            Lesson { config, pool: Images::new(&split), labelled, doubts: None, test: Some(&split), streams, device };
        let mut targets = Targets::from_labels(labelled, None, 3);
        let mut stream = streams.stream("batch", 0);
        let batch = Batches::new(&lesson, &targets).next(1.0, &mut stream);
        assert_eq!((batch.weights.as_slice(), batch.labelled), (&[0.5, 0.5][..], 2));
        assert_eq!(batch.pixels.count(), 2);

        targets.confident = vec![(7, 0), (8, 0)];
        let batch = Batches::new(&lesson, &targets).next(0.5, &mut stream);
        // Two of ten images are confident: 0.5 * 0.2 / 4 each.
        assert_eq!(batch.weights, [0.25, 0.25, 0.025, 0.025, 0.025, 0.025]);
        assert_eq!(batch.targets.row(2), [1.0, 0.0, 0.0]);
        assert_eq!(batch.targets.row(0)[0], 0.0);
        let batch = Batches::new(&lesson, &targets).next(0.0, &mut stream);
        assert_eq!((batch.weights.len(), batch.labelled), (4, 0));
    }
}
