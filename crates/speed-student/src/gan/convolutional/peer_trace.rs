//! Twenty steps written down for another implementation, and compared with what it found: scripts/peers/training.
//!
//! Images, maps and parameters have the shapes that they have here.

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::{Device, Tensor};
use rand::RngExt;
use speed_data::{ImageShape, Split};
use speed_nn::dropout::dropout;
use speed_nn::matrix::on_vectors;
use speed_random::{Stream, Streams};
use trace::Trace;

use super::{Convolutional, ConvolutionalConfig, geometries};
use crate::gan::Gan;
use crate::gan::train::{Batch, images, latent};
use crate::{Images, Lesson, Method, StudentConfig};

#[path = "../../../../../scripts/peers/training/trace.rs"]
mod trace;

const STEPS: usize = 20;

type ConvGan = Gan<Convolutional>;

/// Runs the steps of a training and records them; with `every_step`, also the networks after each.
fn record(config: &StudentConfig, shape: ImageShape, classes: u8, every_step: bool) -> Trace {
    const IMAGES: usize = 150;
    let (streams, device) = (Streams::new(13), Device::flex());
    let mut stream = streams.stream("images", 0);
    let pixels = (0..IMAGES * shape.pixels()).map(|_| stream.random()).collect();
    let pool = Split::new(shape, classes.into(), pixels, vec![0; IMAGES]).expect("a split");
    let (labelled, streams) = (Vec::new(), &streams);
    let lesson =
        &Lesson { config, pool: Images::of(&pool), labelled: &labelled, test: &pool, streams, device: &device };
    let mut training = ConvGan::new(lesson);

    let mut trace = Trace::default();
    record_initialisation(&mut trace, lesson);
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

/// Records what scales and biases were initialised on; what they became is in "start".
fn record_initialisation(trace: &mut Trace, lesson: &Lesson<'_>) {
    let mut stream = lesson.streams.stream("initial images", 0);
    let count = lesson.config.initial_images;
    let indices = rand::seq::index::sample(&mut stream, lesson.pool.len(), count).into_vec();
    input(trace, "initial/images/0", images::<Convolutional>(lesson, &indices));
    record_masks(trace, "initial", lesson, &[count], &mut stream);
    let mut stream = lesson.streams.stream("initial latent", 0);
    input(trace, "initial/latent/0", latent(lesson, lesson.config.batch, &mut stream));
}

fn record_step(trace: &mut Trace, step: usize, classes: u8, lesson: &Lesson<'_>, training: &mut ConvGan) {
    let n = lesson.config.batch;
    let mut stream = lesson.streams.stream("step", step as u64);
    let mut draw = || rand::seq::index::sample(&mut stream, lesson.pool.len(), n).into_vec();
    let (labelled, unlabelled, matched) = (draw(), draw(), draw());
    let labels: Vec<u8> = labelled.iter().map(|&i| (i % usize::from(classes)) as u8).collect();
    let batch = Batch { labelled, labels, unlabelled: &unlabelled, matched: &matched };

    let name = format!("{step}/discriminator");
    input(trace, &format!("{name}/labelled/0"), images::<Convolutional>(lesson, &batch.labelled));
    let numbers: Vec<f32> = batch.labels.iter().map(|&label| f32::from(label)).collect();
    trace.input(format!("{name}/labels"), &[n], &numbers);
    input(trace, &format!("{name}/unlabelled/0"), images::<Convolutional>(lesson, batch.unlabelled));
    let mut replay = stream.clone();
    input(trace, &format!("{name}/latent/0"), latent(lesson, n, &mut replay));
    record_masks(trace, &name, lesson, &[3 * n], &mut replay);
    // Other implementations have a gradient of scales that are not trained as well.
    let everything = training.discriminator.network().clone().map(&mut Everything);
    let loss = training.discriminator_loss(&everything, lesson, &batch, &mut stream.clone());
    record_result(trace, &name, &everything, loss);
    training.discriminator_step(lesson, &batch, &mut stream).expect("a step");
    assert_eq!(stream, replay, "what was read out is not what the step drew");

    let name = format!("{step}/generator");
    input(trace, &format!("{name}/unlabelled/0"), images::<Convolutional>(lesson, batch.matched));
    let mut replay = stream.clone();
    input(trace, &format!("{name}/latent/0"), latent(lesson, n, &mut replay));
    record_masks(trace, &name, lesson, &[n, n], &mut replay);
    let generator = training.generator.network().clone();
    let loss = training.generator_loss(&generator, lesson, &batch, &mut stream.clone());
    record_result(trace, &name, &generator, loss);
    training.generator_step(lesson, &batch, &mut stream).expect("a step");
    assert_eq!(stream, replay, "what was read out is not what the step drew");
}

/// Records the factors of dropout of passes whose images are parts of one batch.
fn record_masks(trace: &mut Trace, name: &str, lesson: &Lesson<'_>, passes: &[usize], stream: &mut Stream) {
    let settings = &lesson.config.convolutional;
    let geometries = geometries(settings, lesson.pool.shape()).expect("large enough");
    let inputs: Vec<[usize; 3]> = geometries.iter().step_by(3).map(|(geometry, _)| geometry.map()).collect();
    let mut masks: Vec<Vec<Tensor<4>>> = vec![Vec::new(); inputs.len()];
    for &count in passes {
        for (index, [height, width, channels]) in inputs.iter().copied().enumerate() {
            let ones = Tensor::<4>::ones([count, height, width, channels], lesson.device);
            let rate = if index == 0 { settings.input_dropout } else { settings.dropout };
            masks[index].push(dropout(ones, rate as f32, stream));
        }
    }
    for (index, parts) in masks.into_iter().enumerate() {
        input(trace, &format!("{name}/mask/{index}"), Tensor::cat(parts, 0));
    }
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

fn input<const D: usize>(trace: &mut Trace, name: &str, tensor: Tensor<D>) {
    trace.input(name, &tensor.dims(), &values(tensor));
}

/// Records a loss, and its gradient by all parameters.
fn record_result(trace: &mut Trace, name: &str, network: &impl Module, loss: Tensor<1>) {
    let gradients = GradientsParams::from_grads(loss.backward(), network);
    trace.result(format!("{name}/loss"), &[1], &values(loss.inner()));
    record_arrays(trace, &format!("{name}/gradient"), false, network, Some(&gradients));
}

fn record_networks(trace: &mut Trace, name: impl Fn(&str) -> String, is_input: bool, training: &ConvGan) {
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
            let (name, shape) = (format!("{}/{}", self.name, self.index), tensor.dims());
            self.index += 1;
            if self.is_input {
                self.trace.input(name, &shape, &values(tensor));
            } else {
                self.trace.result(name, &shape, &values(tensor));
            }
        }
    }
    network.visit(&mut Visitor { trace, name, is_input, gradients, index: 0 });
}

/// Small networks of every kind of layer.
fn tiny() -> Trace {
    let convolutional = ConvolutionalConfig { channels: vec![6, 8], generator: vec![10, 8, 6], ..Default::default() };
    let config = StudentConfig {
        batch: 12,
        latent: 6,
        initial_images: 60,
        learning_rate: 3e-4,
        convolutional,
        ..StudentConfig::default()
    };
    record(&config, ImageShape { channels: 3, height: 14, width: 12 }, 4, false)
}

#[test]
fn losses_and_gradients_of_twenty_steps_are_those_of_another_implementation() {
    on_vectors(tiny).assert_agrees(include_str!("../../../tests/peers/conv-student.json"));
}

#[test]
#[ignore = "writes traces to $SPEED_TRACE, for scripts/peers/training/check"]
fn write_peer_traces() {
    let folder = std::path::PathBuf::from(std::env::var_os("SPEED_TRACE").expect("SPEED_TRACE names a folder"));
    on_vectors(tiny).write(&folder.join("conv-student-tiny"));
    // The paper's networks; convolutions in float64 take their time.
    let config = StudentConfig { batch: 10, initial_images: 50, learning_rate: 3e-4, ..StudentConfig::default() };
    let shape = ImageShape { channels: 3, height: 32, width: 32 };
    record(&config, shape, 10, true).write(&folder.join("conv-student"));
}
