//! Records twenty steps for another implementation, and compares them with its results: scripts/peers/training.

use burn::module::{ModuleMapper, Param};
use burn::optim::GradientsParams;
use speed_data::ImageShape;
use speed_nn::matrix::{Arithmetic, on_vectors};
use trace::{Array, Trace, values};

use super::*;
use crate::Schedule;
use crate::architectures::{DeeperNetwork, ReferenceNetwork, SmallNetwork};

#[path = "../../../../scripts/peers/training/trace.rs"]
mod trace;

const STEPS: usize = 20;

/// Rows and columns of the kernels, which other implementations store as four dimensions.
const KERNEL: usize = 5;

/// Returns the settings of `configs/mnist.toml`, of `configs/mnist-paper.toml` or of `configs/svhn-paper.toml`.
fn config(architecture: Architecture, batch: usize) -> TeacherConfig {
    let common = TeacherConfig { architecture, batch, ..TeacherConfig::SMALL };
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
    let layout = if config.architecture == Architecture::REFERENCE { kernels_last } else { |_, array| array };
    trace.network("start", true, trained.network(), None, layout);
    for step in 1..=STEPS {
        let (images, labels) = batches.next(N::OFFSET);
        let images = images.into_tensor(&device);
        let loss = loss(trained.network(), images.clone(), &labels, None);
        let gradients = GradientsParams::from_grads(loss.backward(), trained.network());
        trace.input(format!("{step}/images"), &images.dims(), &values(images.clone()));
        let numbers: Vec<f32> = labels.iter().map(|&label| f32::from(label)).collect();
        trace.input(format!("{step}/labels"), &[numbers.len()], &numbers);
        trace.result(format!("{step}/loss"), &[1], &values(loss.clone().inner()));
        trace.network(&format!("{step}/gradient"), false, trained.network(), Some(&gradients), layout);
        drop(gradients);
        let loss = super::loss(trained.network(), images, &labels, None);
        trained.step(config.rate_at(IMAGES, step - 1), &loss).expect("a step");
        let after = match step {
            _ if every_step => format!("{step}/after"),
            STEPS => "end".to_owned(),
            _ => continue,
        };
        trace.network(&after, false, trained.network(), None, layout);
    }
    trace
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

/// Returns the reference's kernels in the layout of the other implementations, `[outputs, inputs, rows, columns]`.
fn kernels_last(index: usize, (shape, values): Array) -> Array {
    if ![0, 2].contains(&index) {
        return (shape, values);
    }
    let (places, outputs) = (KERNEL * KERNEL, shape[1]);
    let inputs = shape[0] / places;
    let at = |output, input| (0..places).map(move |place| (place * inputs + input) * outputs + output);
    let order = (0..outputs).flat_map(|output| (0..inputs).flat_map(move |input| at(output, input)));
    (vec![outputs, inputs, KERNEL, KERNEL], order.map(|place| values[place]).collect())
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
