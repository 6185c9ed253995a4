//! The operations of a network, recorded from its own code.
//!
//! Nothing describes a network a second time: its module moves to Burn's capture device, which records operations instead
//! of computing them. This crate's operations have their plain Burn body there, as on a GPU.

use std::collections::{BTreeMap, HashSet};

use burn::backend::capture::{CaptureBackend, CapturedGraph, CompletedCaptureScope, TensorId};
use burn::backend::ir::{GraphIr, ModuleOperationIr, OperationIr};
use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{Device, Tensor};

/// The recorded operations of a network on a batch of images.
#[derive(Debug)]
#[non_exhaustive]
pub struct Trace {
    /// The operations in order, with the images `[images, height, width, channels]` as the only input, the logits
    /// `[images, classes]` as the only output, and the values of all parameters and constants.
    pub captured: CapturedGraph,
    /// The names of the parameters, for example `hidden.0.weight`.
    pub names: BTreeMap<TensorId, String>,
}

/// Numbers of values in memory while a network computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Activations {
    /// The largest tensor that depends on the images.
    pub tensor: usize,
    /// The largest number of values under the kernel of a convolution, over all its positions on one batch.
    pub patches: usize,
}

impl Trace {
    /// Returns the largest numbers of values that depend on the images.
    pub fn activations(&self) -> Activations {
        let GraphIr { operations, inputs, .. } = &self.captured.graph;
        let known = self.captured.values.keys().copied().filter(|id| !inputs.contains(id));
        // Parameters, and tensors that depend on parameters only.
        let mut constants: HashSet<TensorId> = known.collect();
        let mut largest = Activations { tensor: 0, patches: 0 };
        for operation in operations {
            if operation.inputs().all(|input| constants.contains(&input.id)) {
                // The images have no inputs either.
                let outputs = operation.outputs().map(|output| output.id);
                constants.extend(outputs.filter(|id| !inputs.contains(id)));
                continue;
            }
            for output in operation.outputs() {
                largest.tensor = largest.tensor.max(output.shape.num_elements());
            }
            if let OperationIr::Module(ModuleOperationIr::Conv2d(conv)) = operation {
                let outputs = conv.weight.shape.iter().next().copied().unwrap_or(1).max(1);
                let positions = conv.out.shape.num_elements() / outputs;
                let patch = conv.weight.shape.num_elements() / outputs;
                largest.patches = largest.patches.max(positions.saturating_mul(patch));
            }
        }
        largest
    }
}

/// The reason why a network's operations cannot be recorded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot record the operations of the network: {reason}")]
#[non_exhaustive]
pub struct TraceError {
    /// Burn's message.
    pub reason: String,
}

impl TraceError {
    fn new(reason: impl ToString) -> Self {
        Self { reason: reason.to_string() }
    }
}

/// Records the operations of `logits` on images of shape `[images, height, width, channels]`.
pub(super) fn trace<N: Module>(
    network: &N,
    logits: impl FnOnce(&N, Tensor<4>) -> Tensor<2>,
    shape: [usize; 4],
) -> Result<Trace, TraceError> {
    let images = Tensor::<4>::zeros(shape, &Device::flex());
    let device = Device::capture();
    let mut names = Err(TraceError::new("no operation was recorded"));
    let captured = device.capture_scope(|scope| -> CompletedCaptureScope {
        let network = network.clone().to_device(&device);
        let mut namer = Namer::default();
        network.visit(&mut namer);
        // A tensor from outside of the scope is an input.
        let images = images.to_device(&device);
        let ends = id(&images).and_then(|input| Ok([input, id(&logits(&network, images))?]));
        match ends {
            Ok([input, output]) => {
                names = namer.names;
                scope.complete([input], [output])
            }
            Err(error) => {
                names = Err(error);
                scope.complete([], [])
            }
        }
    });
    let names = names?;
    Ok(Trace { captured: captured.map_err(TraceError::new)?, names })
}

fn id<const D: usize>(tensor: &Tensor<D>) -> Result<TensorId, TraceError> {
    let primitive = tensor.clone().try_into_primitive::<CaptureBackend>();
    primitive.map(|tensor| tensor.id()).map_err(|error| TraceError::new(format!("{error:?}")))
}

/// Collects the names of parameters, up to the first fault.
struct Namer {
    path: Vec<String>,
    names: Result<BTreeMap<TensorId, String>, TraceError>,
}

impl Default for Namer {
    fn default() -> Self {
        Self { path: Vec::new(), names: Ok(BTreeMap::new()) }
    }
}

impl ModuleVisitor for Namer {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let Ok(names) = &mut self.names else { return };
        match id(&param.val()) {
            Ok(id) => {
                names.insert(id, self.path.join("."));
            }
            Err(error) => self.names = Err(error),
        }
    }
}
