//! Everything that a training changes, and its step.

use rand::seq::SliceRandom;
use speed_nn::adam::{Adam, Moments};
use speed_nn::average::Average;
use speed_nn::cross_entropy::{cross_entropy, softmax};
use speed_nn::matrix::Matrix;
use speed_random::Stream;

use super::network::{Classifier, Trace};
use super::targets::{align, confident, most_probable, one_hot, posterior};
use super::{Augmentation, PseudoLabelsConfig, PseudoLabelsMetrics};
use crate::Images;

/// Images that are classified at a time.
const EVALUATED: usize = 100;

/// The network in training.
#[derive(Debug)]
pub(super) struct State {
    pub(super) network: Classifier,
    moments: Vec<Moments>,
    average: Average,
    steps: u64,
    pub(super) metrics: Vec<PseudoLabelsMetrics>,
}

/// What an epoch teaches.
#[derive(Debug)]
pub(super) struct Lesson {
    /// A distribution over the classes for each labelled image, in the order of the given labels.
    labelled: Matrix,
    /// Images with a pseudo-label.
    confident: Vec<(usize, u8)>,
    /// Given labels that are not the most probable class.
    pub(super) disputed: u32,
}

/// Memory that steps share; holds nothing that outlives a step.
#[derive(Debug, Default)]
pub(super) struct Workspace {
    pixels: Vec<f32>,
    targets: Matrix,
    weights: Vec<f32>,
    trace: Trace,
}

impl State {
    pub(super) fn new(config: &PseudoLabelsConfig, network: Classifier) -> Self {
        let lengths: Vec<usize> = network.parameters().iter().map(|array| array.len()).collect();
        Self {
            moments: lengths.iter().map(|&length| Moments::zeros(length)).collect(),
            average: Average::new(config.average_rate, lengths),
            steps: 0,
            metrics: Vec::new(),
            network,
        }
    }

    /// The student: the network with the average of its parameters.
    pub(super) fn averaged(&self) -> Classifier {
        self.network.with_parameters(&self.average.corrected())
    }

    /// One step of the optimiser on a batch that `workspace` holds. Returns the losses of the two kinds of images.
    pub(super) fn step(
        &mut self,
        config: &PseudoLabelsConfig,
        labelled: usize,
        done: f64,
        workspace: &mut Workspace,
        stream: &mut Stream,
    ) -> [f64; 2] {
        let Workspace { pixels, targets, weights, trace } = workspace;
        self.network.forward(pixels, weights.len(), trace, Some(stream));
        let logits = &mut trace.logits;
        let losses = cross_entropy(&logits.output, targets, weights, [labelled, weights.len()], &mut logits.gradient);
        self.network.backward(pixels, trace);
        let mut adam = Adam::new(config.adam(done), self.steps);
        let update = adam.begin_step();
        let parameters = self.network.parameters_mut().into_iter();
        for ((parameters, gradient), moments) in parameters.zip(trace.gradients()).zip(&mut self.moments) {
            update.update(parameters, gradient, moments);
        }
        self.steps += 1;
        self.average.update(1, &self.network.parameters());
        losses
    }
}

impl Lesson {
    /// The given labels as they are.
    pub(super) fn of_labels(labels: &[(usize, u8)], classes: usize) -> Self {
        let mut targets = Matrix::zeros(labels.len(), classes);
        for (row, &(_, label)) in labels.iter().enumerate() {
            one_hot(label, targets.row_mut(row));
        }
        Self { labelled: targets, confident: Vec::new(), disputed: 0 }
    }

    /// What `teacher` makes of the pool.
    pub(super) fn of_pool(
        config: &PseudoLabelsConfig,
        teacher: &Classifier,
        graph: Option<&Matrix>,
        pool: Images<'_>,
        labels: &[(usize, u8)],
        workspace: &mut Workspace,
        stream: &mut Stream,
    ) -> Self {
        let mut all = Matrix::zeros(pool.len(), teacher.classes());
        for _ in 0..config.views {
            let one = probabilities(teacher, pool, Some((&config.weak, stream)), workspace);
            all.values_mut().iter_mut().zip(one.values()).for_each(|(sum, p)| *sum += p / config.views as f32);
        }
        let mut probabilities = all;
        align(&mut probabilities, config.alignment as f32);
        let mut targets = Matrix::zeros(labels.len(), probabilities.columns());
        let mut disputed = 0;
        for (row, &(image, label)) in labels.iter().enumerate() {
            let target = targets.row_mut(row);
            posterior(label, probabilities.row(image), config.label_noise as f32, target);
            disputed += u32::from(most_probable(target).0 != label);
        }
        let mut confident = confident(&probabilities, config.threshold as f32, config.adaptive);
        if let Some(graph) = graph {
            confident.retain(|&(image, label)| most_probable(graph.row(image)).0 == label);
        }
        Self { labelled: targets, confident, disputed }
    }

    /// Number of images with a pseudo-label.
    pub(super) fn confident(&self) -> usize {
        self.confident.len()
    }
}

/// Draws the batches of an epoch.
pub(super) struct Batches<'a> {
    config: &'a PseudoLabelsConfig,
    pool: Images<'a>,
    labels: &'a [(usize, u8)],
    lesson: &'a Lesson,
    labelled: Cycle,
    unlabelled: Cycle,
}

impl<'a> Batches<'a> {
    pub(super) fn new(
        config: &'a PseudoLabelsConfig,
        pool: Images<'a>,
        labels: &'a [(usize, u8)],
        lesson: &'a Lesson,
    ) -> Self {
        Self {
            config,
            pool,
            labels,
            lesson,
            labelled: Cycle::new(labels.len()),
            unlabelled: Cycle::new(lesson.confident.len()),
        }
    }

    /// Writes the next batch to `workspace`: strong views of labelled images, then of pseudo-labelled ones. The weights of the
    /// former sum to 1, those of the latter to the unlabelled weight times the share of the pool that has a pseudo-label,
    /// as if the others were in the batch with weight 0.
    pub(super) fn next(&mut self, labelled_weight: f64, workspace: &mut Workspace, stream: &mut Stream) -> usize {
        let Self { config, pool, labels, lesson, .. } = *self;
        let labelled = if labelled_weight > 0.0 { config.labelled_batch } else { 0 };
        let unlabelled = if lesson.confident.is_empty() { 0 } else { config.batch };
        let shape = pool.shape();
        workspace.pixels.resize((labelled + unlabelled) * shape.pixels(), 0.0);
        workspace.targets.resize(labelled + unlabelled, lesson.labelled.columns());
        workspace.weights.clear();
        workspace.weights.resize(labelled, (labelled_weight / labelled.max(1) as f64) as f32);
        let share = lesson.confident.len() as f64 / pool.len() as f64;
        let weight = config.unlabelled_weight * share / config.batch as f64;
        workspace.weights.resize(labelled + unlabelled, weight as f32);
        for (place, pixels) in workspace.pixels.chunks_exact_mut(shape.pixels()).enumerate() {
            let target = workspace.targets.row_mut(place);
            let image = if place < labelled {
                let position = self.labelled.next(stream);
                target.copy_from_slice(lesson.labelled.row(position));
                labels[position].0
            } else {
                let (image, label) = lesson.confident[self.unlabelled.next(stream)];
                one_hot(label, target);
                image
            };
            config.strong.write(pool.pixels(image), shape, stream, pixels);
        }
        labelled
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

/// The probabilities `[images, classes]` that a network gives to `images`, or to random views of them.
pub(super) fn probabilities(
    network: &Classifier,
    images: Images<'_>,
    mut view: Option<(&Augmentation, &mut Stream)>,
    workspace: &mut Workspace,
) -> Matrix {
    let shape = images.shape();
    let mut all = Matrix::zeros(images.len(), network.classes());
    for first in (0..images.len()).step_by(EVALUATED) {
        let some = first..(first + EVALUATED).min(images.len());
        workspace.pixels.resize(some.len() * shape.pixels(), 0.0);
        for (image, pixels) in some.clone().zip(workspace.pixels.chunks_exact_mut(shape.pixels())) {
            match &mut view {
                Some((view, stream)) => view.write(images.pixels(image), shape, stream, pixels),
                None => images.write_channels_last(image, pixels),
            }
        }
        network.forward(&workspace.pixels, some.len(), &mut workspace.trace, None);
        let logits = workspace.trace.logits.output.values();
        let place = first * all.columns();
        all.values_mut()[place..place + logits.len()].copy_from_slice(logits);
    }
    softmax(&mut all);
    all
}
