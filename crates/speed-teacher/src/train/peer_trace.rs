//! Records twenty steps for another implementation, and compares them with its results: scripts/peers/training.

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use speed_data::ImageShape;
use speed_nn::matrix::{Arithmetic, on_vectors};
use trace::Trace;

use super::*;
use crate::architectures::{DeeperNetwork, ReferenceNetwork, SmallNetwork};
use crate::{ClassWeights, Schedule};

#[path = "../../../../scripts/peers/training/trace.rs"]
mod trace;

const STEPS: usize = 20;

/// Rows and columns of the kernels, which other implementations store as four dimensions.
const KERNEL: usize = 5;

/// Returns the settings of `configs/mnist.toml`, of `configs/mnist-paper.toml` or of `configs/svhn-paper.toml`.
fn config(architecture: Architecture, batch: usize) -> TeacherConfig {
    let common = TeacherConfig {
        architecture,
        optimizer: OptimizerKind::Adam,
        learning_rate: 4e-3,
        schedule: Schedule::Cosine,
        batch,
        steps: 300,
        shift: 2,
        average: 0.0,
        validation: 0.0,
        class_weights: ClassWeights::None,
        unknown: crate::Unknown::default(),
    };
    if architecture == Architecture::SMALL {
        return common;
    }
    TeacherConfig {
        optimizer: OptimizerKind::Sgd,
        learning_rate: if architecture == Architecture::DEEPER { 0.08 } else { 0.01 },
        schedule: Schedule::Staircase,
        steps: 5000,
        shift: 0,
        ..common
    }
}

/// Runs the first steps of a teacher on random images and records them; with `every_step`, also the network after each
/// step.
fn record<N: TeacherNetwork>(config: &TeacherConfig, shape: ImageShape, classes: u8, every_step: bool) -> Trace {
    match config.optimizer {
        OptimizerKind::Adam => record_with::<N, _>(ADAM, config, shape, classes, every_step),
        OptimizerKind::Sgd => record_with::<N, _>(SgdConfig::new().build(), config, shape, classes, every_step),
    }
}

fn record_with<N: TeacherNetwork, O: Optimizer>(
    optimizer: O,
    config: &TeacherConfig,
    shape: ImageShape,
    classes: u8,
    every_step: bool,
) -> Trace {
    const IMAGES: usize = 240;
    // With this seed, the networks for CI stay away from kinks.
    let streams = Streams::new(14);
    let mut stream = streams.stream("images", 0);
    let pixels = (0..IMAGES * shape.pixels()).map(|_| stream.random()).collect();
    let labels = (0..IMAGES).map(|i| (i % usize::from(classes)) as u8).collect();
    let data = Split::new(shape, classes.into(), pixels, labels).expect("a split");

    let device = Device::flex();
    let network = initial::<N>(&data, &streams, &device).map(&mut LargerKernels(config.architecture));
    let mut trained = Trained::new(network, optimizer);
    let mut batches = Batches::new(config, &data, &(0..IMAGES).collect::<Vec<_>>(), &streams);

    let mut trace = Trace::default();
    let read = |network: &N, gradients: Option<&GradientsParams>| parameters(network, config.architecture, gradients);
    for (index, (shape, values)) in read(trained.network(), None).into_iter().enumerate() {
        trace.input(format!("start/{index}"), &shape, &values);
    }
    for step in 1..=STEPS {
        let (images, labels) = batches.next(N::OFFSET);
        let images = images.into_tensor(&device);
        let loss = loss(trained.network(), images.clone(), &labels, None);
        let gradients = GradientsParams::from_grads(loss.backward(), trained.network());
        trace.input(format!("{step}/images"), &images.dims(), &values(images.clone()));
        let numbers: Vec<f32> = labels.iter().map(|&label| f32::from(label)).collect();
        trace.input(format!("{step}/labels"), &[numbers.len()], &numbers);
        trace.result(format!("{step}/loss"), &[1], &values(loss.clone().inner()));
        for (index, (shape, values)) in read(trained.network(), Some(&gradients)).into_iter().enumerate() {
            trace.result(format!("{step}/gradient/{index}"), &shape, &values);
        }
        drop(gradients);
        let loss = super::loss(trained.network(), images, &labels, None);
        trained.step(learning_rate(config, IMAGES, step - 1), &loss).expect("a step");
        let after = match step {
            _ if every_step => format!("{step}/after"),
            STEPS => "end".to_owned(),
            _ => continue,
        };
        for (index, (shape, values)) in read(trained.network(), None).into_iter().enumerate() {
            trace.result(format!("{after}/{index}"), &shape, &values);
        }
    }
    trace
}

fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_to_vec().expect("f32")
}

/// Returns whether parameter `index` of the reference is the weight of a convolution.
fn is_kernel(architecture: Architecture, index: usize) -> bool {
    architecture == Architecture::REFERENCE && [0, 2].contains(&index)
}

/// A mapper that multiplies the reference's second kernels, of deviation 1e-4, by 100. With the published kernels,
/// outputs are 0.1 plus a few ten-thousandths, so f32 rounds many neighbours to one value, and the pool's choice among
/// them is not meaningful.
struct LargerKernels(Architecture);

/// Parameters are numbered from 1.
const SECOND_KERNELS: u64 = 3;

impl ModuleMapper for LargerKernels {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        if self.0 != Architecture::REFERENCE || param.id.val() != SECOND_KERNELS {
            return param;
        }
        param.map(|kernels| Tensor::from_inner(kernels.inner() * 100.0).require_grad())
    }
}

/// Returns shapes and values of all parameters, or of their gradients, in the order of the network. Kernels have the
/// layout of the other implementations, `[outputs, inputs, rows, columns]`.
fn parameters(
    network: &impl Module,
    architecture: Architecture,
    gradients: Option<&GradientsParams>,
) -> Vec<(Vec<usize>, Vec<f32>)> {
    struct Visitor<'a> {
        architecture: Architecture,
        gradients: Option<&'a GradientsParams>,
        arrays: Vec<(Vec<usize>, Vec<f32>)>,
    }
    impl ModuleVisitor for Visitor<'_> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            let tensor = match self.gradients {
                Some(gradients) => gradients.get::<D>(param.id).expect("a gradient of every parameter"),
                None => param.val().inner(),
            };
            self.arrays.push(if is_kernel(self.architecture, self.arrays.len()) {
                let [inputs, outputs] = [0, 1].map(|side| tensor.dims()[side]);
                let kernels = tensor.reshape([KERNEL, KERNEL, inputs / KERNEL / KERNEL, outputs]).permute([3, 2, 0, 1]);
                (kernels.dims().to_vec(), values(kernels))
            } else {
                (tensor.dims().to_vec(), values(tensor))
            });
        }
    }
    let mut visitor = Visitor { architecture, gradients, arrays: Vec::new() };
    network.visit(&mut visitor);
    visitor.arrays
}

fn tiny<N: TeacherNetwork>(architecture: Architecture) -> Trace {
    record::<N>(&config(architecture, 10), ImageShape { channels: 2, height: 17, width: 16 }, 3, false)
}

/// Uses portable arithmetic, which has no minimal filtering of 5x5 kernels: that leaves rounding errors in gradients that are
/// exactly zero, and Adam's first step for these has full length. No other test here holds an arithmetic.
fn small() -> Trace {
    let _arithmetic = Arithmetic::Portable.hold().expect("the only arithmetic in use");
    tiny::<SmallNetwork>(Architecture::SMALL)
}

#[test]
fn losses_and_gradients_of_twenty_steps_are_those_of_another_implementation() {
    on_vectors(|| {
        small().assert_agrees(include_str!("../../tests/peers/small.json"));
        tiny::<ReferenceNetwork>(Architecture::REFERENCE)
            .assert_agrees(include_str!("../../tests/peers/reference.json"));
        tiny::<DeeperNetwork>(Architecture::DEEPER).assert_agrees(include_str!("../../tests/peers/deeper.json"));
    });
}

#[test]
#[ignore = "writes traces to $SPEED_TRACE, for scripts/peers/training/check"]
fn write_peer_traces() {
    let folder = std::path::PathBuf::from(std::env::var_os("SPEED_TRACE").expect("SPEED_TRACE names a folder"));
    let shape = ImageShape { channels: 1, height: 28, width: 28 };
    small().write(&folder.join("small-tiny"));
    record::<SmallNetwork>(&config(Architecture::SMALL, 128), shape, 10, true).write(&folder.join("small"));
    on_vectors(|| tiny::<ReferenceNetwork>(Architecture::REFERENCE)).write(&folder.join("reference-tiny"));
    on_vectors(|| tiny::<DeeperNetwork>(Architecture::DEEPER)).write(&folder.join("deeper-tiny"));
    // Convolutions in float64 are slow.
    record::<ReferenceNetwork>(&config(Architecture::REFERENCE, 32), shape, 10, true).write(&folder.join("reference"));
    let shape = ImageShape { channels: 3, height: 32, width: 32 };
    record::<DeeperNetwork>(&config(Architecture::DEEPER, 16), shape, 10, true).write(&folder.join("deeper"));
}
