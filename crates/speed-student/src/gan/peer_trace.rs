//! Twenty steps written down for another implementation, and compared with what it found: scripts/peers/training.
//!
//! A trace has one example a column and weights `[outputs, inputs]`.

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::{Device, Tensor};
use speed_data::{ImageShape, Split};
use speed_random::{Stream, Streams};
use trace::Trace;

use super::Dense;
use super::train::{Batch, Gan, images as images_of, latent};
use crate::{Images, Lesson, Method, StudentConfig};

#[path = "../../../../scripts/peers/training/trace.rs"]
mod trace;

const STEPS: usize = 20;

/// Runs the steps of a training and records them; with `every_step`, also the networks after each.
fn record(config: &StudentConfig, side: usize, classes: u8, every_step: bool) -> Trace {
    let (streams, device) = (Streams::new(11), Device::flex());
    let pool = images(side, classes, &mut streams.stream("images", 0));
    let labelled: Vec<(usize, u8)> = Vec::new();
    let lesson = &Lesson {
        config,
        pool: Images::of(&pool),
        labelled: &labelled,
        test: &pool,
        streams: &streams,
        device: &device,
    };
    let mut training = Gan::<Dense>::new(lesson);

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

/// Images at random.
fn images(side: usize, classes: u8, stream: &mut Stream) -> Split {
    const IMAGES: usize = 500;
    let shape = ImageShape { channels: 1, height: side, width: side };
    let pixels = (0..IMAGES * shape.pixels()).map(|_| rand::RngExt::random(stream)).collect();
    Split::new(shape, classes.into(), pixels, vec![0; IMAGES]).expect("a split")
}

/// Records the images and the noise that scales and biases were initialised on; what they became is in "start".
fn record_initialisation(trace: &mut Trace, lesson: &Lesson<'_>, training: &Gan<Dense>) {
    let mut stream = lesson.streams.stream("initial images", 0);
    let count = lesson.config.initial_images;
    let indices = rand::seq::index::sample(&mut stream, lesson.pool.len(), count).into_vec();
    record_images(trace, "initial/images", lesson, &indices);
    let layers = lesson.config.discriminator.len() + 1;
    record_noise(trace, "initial/noise", vec![noise(lesson, training, layers, count, &mut stream)]);
}

fn record_step(trace: &mut Trace, step: usize, classes: u8, lesson: &Lesson<'_>, training: &mut Gan<Dense>) {
    let (n, hidden) = (lesson.config.batch, lesson.config.discriminator.len());
    let mut stream = lesson.streams.stream("step", step as u64);
    let mut draw = || rand::seq::index::sample(&mut stream, lesson.pool.len(), n).into_vec();
    let (labelled, unlabelled, matched) = (draw(), draw(), draw());
    let labels: Vec<u8> = labelled.iter().map(|&i| (i % usize::from(classes)) as u8).collect();
    let batch = Batch { labelled, labels, unlabelled: &unlabelled, matched: &matched };

    let name = |what: &str| format!("{step}/discriminator/{what}");
    record_images(trace, &name("labelled"), lesson, &batch.labelled);
    trace.input(name("labels"), &[n], &batch.labels.iter().map(|&label| f32::from(label)).collect::<Vec<_>>());
    record_images(trace, &name("unlabelled"), lesson, batch.unlabelled);
    let mut replay = stream.clone();
    record_matrix(trace, &name("latent/0"), true, latent(lesson, n, &mut replay));
    record_noise(trace, &name("noise"), vec![noise(lesson, training, hidden + 1, 3 * n, &mut replay)]);
    // Other implementations have a gradient of scales that are not trained as well.
    let everything = training.discriminator.network().clone().map(&mut Everything);
    let loss = training.discriminator_loss(&everything, lesson, &batch, &mut stream.clone());
    let gradients = GradientsParams::from_grads(loss.backward(), &everything);
    trace.result(name("loss"), &[1], &values(loss.inner()));
    record_arrays(trace, &name("gradient"), false, &everything, Some(&gradients));
    drop((everything, gradients));
    training.discriminator_step(lesson, &batch, &mut stream).expect("a step");
    assert_eq!(stream, replay, "the noise read out is not the noise of the step");

    let name = |what: &str| format!("{step}/generator/{what}");
    record_images(trace, &name("unlabelled"), lesson, batch.matched);
    let mut replay = stream.clone();
    record_matrix(trace, &name("latent/0"), true, latent(lesson, n, &mut replay));
    let both = [(); 2].map(|()| noise(lesson, training, hidden, n, &mut replay));
    record_noise(trace, &name("noise"), both.into());
    let generator = training.generator.network().clone();
    let loss = training.generator_loss(&generator, lesson, &batch, &mut stream.clone());
    let gradients = GradientsParams::from_grads(loss.backward(), &generator);
    trace.result(name("loss"), &[1], &values(loss.inner()));
    record_arrays(trace, &name("gradient"), false, &generator, Some(&gradients));
    drop((generator, gradients));
    training.generator_step(lesson, &batch, &mut stream).expect("a step");
    assert_eq!(stream, replay, "the noise read out is not the noise of the step");
}

/// Trains every parameter.
struct Everything;

impl ModuleMapper for Everything {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        param.set_require_grad(true)
    }
}

fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    speed_nn::device::values(tensor).expect("f32")
}

/// Returns the noise that a forward pass of `rows` images adds before each of the first `layers` layers.
fn noise(
    lesson: &Lesson<'_>,
    training: &Gan<Dense>,
    layers: usize,
    rows: usize,
    stream: &mut Stream,
) -> Vec<Tensor<2>> {
    let config = lesson.config;
    let inputs = std::iter::once(lesson.pool.shape().pixels()).chain(config.discriminator.iter().copied());
    let deviations = std::iter::once(config.input_noise).chain(std::iter::repeat(config.hidden_noise));
    let layers = inputs.zip(deviations).take(layers);
    let zeros = |inputs| Tensor::zeros([rows, inputs], &Device::flex());
    layers.map(|(inputs, sigma)| training.noise.add(zeros(inputs), sigma as f32, stream)).collect()
}

/// Records the noise of passes whose images are parts of one batch.
fn record_noise(trace: &mut Trace, name: &str, passes: Vec<Vec<Tensor<2>>>) {
    for layer in 0..passes[0].len() {
        let parts = passes.iter().map(|pass| pass[layer].clone()).collect();
        record_matrix(trace, &format!("{name}/{layer}"), true, Tensor::cat(parts, 0));
    }
}

fn record_images(trace: &mut Trace, name: &str, lesson: &Lesson<'_>, indices: &[usize]) {
    record_matrix(trace, &format!("{name}/0"), true, images_of::<Dense>(lesson, indices).flatten(1, 3));
}

/// Records a matrix of one example a row as one of an example a column.
fn record_matrix(trace: &mut Trace, name: &str, is_input: bool, matrix: Tensor<2>) {
    let matrix = matrix.transpose();
    let shape = matrix.dims();
    let values = values(matrix);
    if is_input { trace.input(name, &shape, &values) } else { trace.result(name, &shape, &values) }
}

fn record_networks(trace: &mut Trace, name: impl Fn(&str) -> String, is_input: bool, training: &Gan<Dense>) {
    record_arrays(trace, &name("discriminator"), is_input, training.discriminator.network(), None);
    record_arrays(trace, &name("generator"), is_input, training.generator.network(), None);
}

/// Records all parameters, or their gradients, in the order of the network.
fn record_arrays(
    trace: &mut Trace,
    name: &str,
    is_input: bool,
    network: &impl Module,
    gradients: Option<&GradientsParams>,
) {
    struct Visitor<'a> {
        trace: &'a mut Trace,
        name: &'a str,
        is_input: bool,
        gradients: Option<&'a GradientsParams>,
        index: usize,
    }
    impl ModuleVisitor for Visitor<'_> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            let tensor = match self.gradients {
                Some(gradients) => gradients.get::<D>(param.id).expect("a gradient of every parameter"),
                None => param.val().inner(),
            };
            let name = format!("{}/{}", self.name, self.index);
            self.index += 1;
            // An array of one dimension is its own column.
            let columns: usize = if D == 1 { 1 } else { tensor.dims()[1] };
            let rows = tensor.shape().num_elements() / columns;
            let matrix = tensor.reshape([rows, columns]).transpose();
            let shape = if D == 1 { vec![rows] } else { vec![columns, rows] };
            let values = values(matrix);
            if self.is_input {
                self.trace.input(name, &shape, &values);
            } else {
                self.trace.result(name, &shape, &values);
            }
        }
    }
    network.visit(&mut Visitor { trace, name, is_input, gradients, index: 0 });
}

/// Small networks of every kind of layer.
fn tiny() -> StudentConfig {
    StudentConfig {
        batch: 20,
        discriminator: vec![24, 16, 12],
        generator: vec![14, 12],
        latent: 6,
        initial_images: 60,
        ..StudentConfig::default()
    }
}

#[test]
fn losses_and_gradients_of_twenty_steps_are_those_of_another_implementation() {
    record(&tiny(), 6, 4, false).assert_agrees(include_str!("../../tests/peers/student.json"));
}

#[test]
#[ignore = "writes traces to $SPEED_TRACE, for scripts/peers/training/check"]
fn write_peer_traces() {
    let folder = std::path::PathBuf::from(std::env::var_os("SPEED_TRACE").expect("SPEED_TRACE names a folder"));
    record(&tiny(), 6, 4, false).write(&folder.join("student-tiny"));
    record(&StudentConfig::default(), 28, 10, true).write(&folder.join("student"));
}
