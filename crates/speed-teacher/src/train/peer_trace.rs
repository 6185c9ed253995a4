//! Twenty steps written down for another implementation, and compared with what it found: scripts/peers/training.

use super::*;
use crate::batch::Batches;
use crate::network::Network;
use crate::schedule::learning_rate;
use crate::{Architecture, Schedule};
use burn::module::{ModuleMapper, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::Tensor;
use rand::RngExt;
use speed_data::ImageShape;
use speed_nn::matrix::on_vectors;
use trace::Trace;

#[path = "../../../../scripts/peers/training/trace.rs"]
mod trace;

const STEPS: usize = 20;

/// Returns the settings of `configs/mnist.toml` or of `configs/mnist-paper.toml`.
fn config(architecture: Architecture, batch: usize) -> TeacherConfig {
    let common = TeacherConfig {
        architecture,
        optimizer: OptimizerKind::Adam,
        learning_rate: 4e-3,
        schedule: Schedule::Cosine,
        decay_epochs: 350,
        batch,
        steps: 300,
        shift: 2,
        average: 0.0,
        validation: 0.0,
    };
    match architecture {
        Architecture::Small => common,
        Architecture::Reference => TeacherConfig {
            optimizer: OptimizerKind::Sgd,
            learning_rate: 0.01,
            schedule: Schedule::Staircase,
            steps: 5000,
            shift: 0,
            ..common
        },
    }
}

/// Runs the first steps of a teacher on images at random and records them; with `every_step`, also the network after each.
fn record(config: &TeacherConfig, shape: ImageShape, classes: u8, every_step: bool) -> Trace {
    const IMAGES: usize = 240;
    let streams = Streams::new(12);
    let mut stream = streams.stream("images", 0);
    let pixels = (0..IMAGES * shape.pixels()).map(|_| stream.random()).collect();
    let labels = (0..IMAGES).map(|i| (i % usize::from(classes)) as u8).collect();
    let data = Split::new(shape, classes.into(), pixels, labels).expect("a split");

    let device = Device::flex().autodiff();
    let mut weights = streams.stream("weights", 0);
    let mut network =
        Network::new(config.architecture, shape, classes.into(), &mut weights, &device).expect("a network");
    network = network.map(&mut LargerKernels);
    let mut optimizer = optimizer(config.optimizer);
    let mut batches = Batches::new(&data, (0..IMAGES).collect(), streams.stream("batches", 0));

    let (mut trace, mut memory) = (Trace::default(), crate::network::Trace::default());
    for (index, (shape, values)) in parameters(&network, None).into_iter().enumerate() {
        trace.input(format!("start/{index}"), &shape, &values);
    }
    for step in 1..=STEPS {
        let (images, labels) = batches.next(config.batch, config.shift, network.offset());
        let (loss, gradients) = network.gradients(&images, &labels, &mut memory, &device).expect("gradients");
        let ImageShape { channels, height, width } = shape;
        trace.input(format!("{step}/images"), &[images.count, height, width, channels], &images.values);
        let labels: Vec<f32> = labels.iter().map(|&label| f32::from(label)).collect();
        trace.input(format!("{step}/labels"), &[labels.len()], &labels);
        trace.result(format!("{step}/loss"), &[1], &[loss]);
        for (index, (shape, values)) in parameters(&network, Some(&gradients)).into_iter().enumerate() {
            trace.result(format!("{step}/gradient/{index}"), &shape, &values);
        }
        network = optimizer.step(learning_rate(config, IMAGES, step - 1), network, gradients);
        let after = match step {
            _ if every_step => format!("{step}/after"),
            STEPS => "end".to_owned(),
            _ => continue,
        };
        for (index, (shape, values)) in parameters(&network, None).into_iter().enumerate() {
            trace.result(format!("{after}/{index}"), &shape, &values);
        }
    }
    trace
}

/// The reference's initial kernels of deviation 1e-4 times 300. As published, the second convolution gives 0.1 plus parts
/// in a million, f32 rounds many neighbours to one value, and which of them a pool takes says nothing about the code.
struct LargerKernels;

impl ModuleMapper for LargerKernels {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        if D == 4 { param.map(|kernels| Tensor::from_inner(kernels.inner() * 300.0).require_grad()) } else { param }
    }
}

/// Shapes and values of all parameters, or of their gradients, in the order of the network.
fn parameters(network: &Network, gradients: Option<&GradientsParams>) -> Vec<(Vec<usize>, Vec<f32>)> {
    struct Visitor<'a> {
        gradients: Option<&'a GradientsParams>,
        arrays: Vec<(Vec<usize>, Vec<f32>)>,
    }
    impl ModuleVisitor for Visitor<'_> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            let tensor = match self.gradients {
                Some(gradients) => gradients.get::<D>(param.id).expect("a gradient of every parameter"),
                None => param.val().inner(),
            };
            self.arrays.push((tensor.dims().to_vec(), tensor.into_data().try_to_vec().expect("f32")));
        }
    }
    let mut visitor = Visitor { gradients, arrays: Vec::new() };
    network.visit(&mut visitor);
    visitor.arrays
}

fn tiny(architecture: Architecture) -> Trace {
    record(&config(architecture, 10), ImageShape { channels: 2, height: 17, width: 16 }, 3, false)
}

#[test]
fn losses_and_gradients_of_twenty_steps_are_those_of_another_implementation() {
    on_vectors(|| {
        tiny(Architecture::Small).assert_agrees(include_str!("../../tests/peers/small.json"));
        tiny(Architecture::Reference).assert_agrees(include_str!("../../tests/peers/reference.json"));
    });
}

#[test]
#[ignore = "writes traces to $SPEED_TRACE, for scripts/peers/training/check"]
fn write_peer_traces() {
    let folder = std::path::PathBuf::from(std::env::var_os("SPEED_TRACE").expect("SPEED_TRACE names a folder"));
    for architecture in [Architecture::Small, Architecture::Reference] {
        let name = architecture.name();
        on_vectors(|| tiny(architecture)).write(&folder.join(format!("{name}-tiny")));
        let shape = ImageShape { channels: 1, height: 28, width: 28 };
        // Convolutions in float64 take their time.
        let batch = if architecture == Architecture::Small { 128 } else { 32 };
        record(&config(architecture, batch), shape, 10, true).write(&folder.join(name));
    }
}
