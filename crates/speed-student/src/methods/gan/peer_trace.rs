//! Records twenty steps, which scripts/peers/training compares with another implementation.

use burn::module::{Module, ModuleMapper, Param};
use burn::optim::GradientsParams;
use burn::tensor::{Device, Tensor};
use rand::RngExt;
use speed_core::random::{Stream, Streams};
use speed_data::{ImageShape, Split};
pub(super) use trace::Trace;
use trace::values;

use super::GanTraining;
use super::networks::Networks;
use super::train::{Batch, images, latent};
use crate::test_support::Data;
use crate::{Lesson, StudentConfig};

#[path = "../../../../../scripts/peers/training/trace.rs"]
mod trace;

const STEPS: usize = 20;

/// Networks whose random draws can be recorded.
pub(super) trait Traced: Networks {
    /// Reads from `stream`, and records, the draws of the discriminator in passes of these numbers of images.
    /// `has_logits` is true if the passes continue to the logits.
    fn record_draws(
        trace: &mut Trace,
        name: &str,
        training: &GanTraining<Self>,
        lesson: &Lesson<'_>,
        passes: &[usize],
        has_logits: bool,
        stream: &mut Stream,
    ) where
        Self: Sized;
}

/// Runs the steps of a training on random images and records them; with `every_step`, also the networks after each
/// step.
pub(super) fn record<N: Traced>(config: &StudentConfig, shape: ImageShape, classes: u8, every_step: bool) -> Trace {
    let (streams, device, count) = (Streams::new(11), Device::flex(), config.gan.initial_images.max(150));
    let mut stream = streams.stream("images", 0);
    let pixels = (0..count * shape.pixels()).map(|_| stream.random()).collect();
    let pool = Split::new(shape, classes.into(), pixels, vec![0; count]).expect("a split");
    let data = Data { test: pool.clone(), labelled: Vec::new(), pool };
    let lesson = &data.lesson(config, &streams, &device);
    let mut training = GanTraining::<N>::new(lesson);

    let mut trace = Trace::default();
    record_initialisation(&mut trace, lesson, &training);
    record_networks(&mut trace, |network| format!("start/{network}"), true, &training);
    for step in 1..=STEPS {
        record_step(&mut trace, step, classes, lesson, &mut training);
        if every_step {
            record_networks(&mut trace, |network| format!("{step}/{network}/after"), false, &training);
        }
    }
    if !every_step {
        record_networks(&mut trace, |network| format!("end/{network}"), false, &training);
    }
    trace
}

/// Records the inputs of the initialisation of scales and biases; its results are in "start".
fn record_initialisation<N: Traced>(trace: &mut Trace, lesson: &Lesson<'_>, training: &GanTraining<N>) {
    let mut stream = lesson.streams.stream("initial images", 0);
    let count = lesson.config.gan.initial_images;
    let indices = rand::seq::index::sample(&mut stream, lesson.pool.len(), count).into_vec();
    input(trace, "initial/images", images::<N>(lesson, &indices));
    N::record_draws(trace, "initial", training, lesson, &[count], true, &mut stream);
    let mut stream = lesson.streams.stream("initial latent", 0);
    input(trace, "initial/latent", latent(lesson, lesson.config.gan.batch, &mut stream));
}

fn record_step<N: Traced>(
    trace: &mut Trace,
    step: usize,
    classes: u8,
    lesson: &Lesson<'_>,
    training: &mut GanTraining<N>,
) {
    let n = lesson.config.gan.batch;
    let mut stream = lesson.streams.stream("step", step as u64);
    let mut draw = || rand::seq::index::sample(&mut stream, lesson.pool.len(), n).into_vec();
    let (labelled, unlabelled, matched) = (draw(), draw(), draw());
    let labels: Vec<u8> = labelled.iter().map(|&i| (i % usize::from(classes)) as u8).collect();
    let batch = Batch { labelled, labels, unlabelled: &unlabelled, matched: &matched };

    let name = format!("{step}/discriminator");
    input(trace, &format!("{name}/labelled"), images::<N>(lesson, &batch.labelled));
    let numbers: Vec<f32> = batch.labels.iter().map(|&label| f32::from(label)).collect();
    trace.input(format!("{name}/labels"), &[n], &numbers);
    input(trace, &format!("{name}/unlabelled"), images::<N>(lesson, batch.unlabelled));
    let mut replay = stream.clone();
    input(trace, &format!("{name}/latent"), latent(lesson, n, &mut replay));
    N::record_draws(trace, &name, training, lesson, &[3 * n], true, &mut replay);
    // Other implementations also compute gradients of scales that are not trained.
    let everything = training.discriminator.network().clone().map(&mut Everything);
    let loss = training.discriminator_loss(&everything, lesson, &batch, &mut stream.clone());
    record_result(trace, &name, &everything, loss);
    let loss = training.discriminator_loss(training.discriminator.network(), lesson, &batch, &mut stream);
    training.discriminator.step(N::learning_rate(lesson.config), &loss).expect("a step");
    assert_eq!(stream, replay, "the recorded draws differ from the draws of the step");

    let name = format!("{step}/generator");
    input(trace, &format!("{name}/unlabelled"), images::<N>(lesson, batch.matched));
    let mut replay = stream.clone();
    input(trace, &format!("{name}/latent"), latent(lesson, n, &mut replay));
    N::record_draws(trace, &name, training, lesson, &[n, n], false, &mut replay);
    let generator = training.generator.network().clone();
    let loss = training.generator_loss(&generator, lesson, &batch, &mut stream.clone());
    record_result(trace, &name, &generator, loss);
    let loss = training.generator_loss(training.generator.network(), lesson, &batch, &mut stream);
    training.generator.step(N::learning_rate(lesson.config), &loss).expect("a step");
    assert_eq!(stream, replay, "the recorded draws differ from the draws of the step");
}

struct Everything;

impl ModuleMapper for Everything {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        param.set_require_grad(true)
    }
}

fn input<const D: usize>(trace: &mut Trace, name: &str, tensor: Tensor<D>) {
    trace.input(name, &tensor.dims(), &values(tensor));
}

/// Records the draws of every layer in passes whose images are parts of one batch.
pub(super) fn record_layers<const D: usize>(trace: &mut Trace, name: &str, passes: Vec<Vec<Tensor<D>>>) {
    for layer in 0..passes[0].len() {
        let parts = passes.iter().map(|pass| pass[layer].clone()).collect();
        input(trace, &format!("{name}/{layer}"), Tensor::cat(parts, 0));
    }
}

fn record_result(trace: &mut Trace, name: &str, network: &impl Module, loss: Tensor<1>) {
    let gradients = GradientsParams::from_grads(loss.backward(), network);
    trace.result(format!("{name}/loss"), &[1], &values(loss.inner()));
    trace.network(&format!("{name}/gradient"), false, network, Some(&gradients), |_, array| array);
}

fn record_networks<N: Networks>(
    trace: &mut Trace,
    name: impl Fn(&str) -> String,
    is_input: bool,
    training: &GanTraining<N>,
) {
    trace.network(&name("discriminator"), is_input, training.discriminator.network(), None, |_, array| array);
    trace.network(&name("generator"), is_input, training.generator.network(), None, |_, array| array);
}
