//! The recorded tensors as values of an ONNX graph.
//!
//! Networks here order maps as image, row, column, channel; ONNX has the channel second. Every recorded convolution is
//! therefore between two permutations. A permutation is kept aside until an operation needs its result: most operations
//! apply to the tensor before it, and two permutations cancel.

use std::collections::{BTreeMap, HashMap, HashSet};

use burn::backend::ir::{TensorId, TensorIr};
use burn::tensor::DType;
use tract_onnx::pb::tensor_proto::DataType;

use crate::onnx::OnnxError;
use crate::onnx::proto::{Builder, integers};
use crate::training::Trace;

/// A recorded tensor: a value of the graph, perhaps with permuted axes.
#[derive(Clone, Debug)]
pub(crate) struct Value {
    pub(crate) name: String,
    /// Axis i of the tensor is axis `axes[i]` of the value; `None` for the same order.
    pub(crate) axes: Option<Vec<usize>>,
}

/// The values of all tensors so far.
#[derive(Debug)]
pub(crate) struct Values<'a> {
    trace: &'a Trace,
    known: HashMap<TensorId, Value>,
    /// Names of permuted values that are in the graph.
    permuted: BTreeMap<(String, Vec<usize>), String>,
    /// Tensors that do not depend on the images.
    constants: HashSet<TensorId>,
}

impl<'a> Values<'a> {
    /// Begins with the images, a value `[images, channels, height, width]`.
    pub(crate) fn new(trace: &'a Trace, images: TensorId, name: String) -> Self {
        let value = Value { name, axes: Some(vec![0, 2, 3, 1]) };
        let constants = trace.captured.values.keys().copied().filter(|&id| id != images).collect();
        Self { trace, known: HashMap::from([(images, value)]), permuted: BTreeMap::new(), constants }
    }

    pub(crate) fn set(&mut self, inputs: &[&TensorIr], out: &TensorIr, value: Value) {
        if inputs.iter().all(|input| self.is_constant(input)) {
            self.constants.insert(out.id);
        }
        self.known.insert(out.id, value);
    }

    /// Returns whether a tensor does not depend on the images.
    pub(crate) fn is_constant(&self, tensor: &TensorIr) -> bool {
        self.constants.contains(&tensor.id)
    }

    /// Returns the value of a tensor, which may be in another order.
    pub(crate) fn value(&mut self, tensor: &TensorIr, graph: &mut Builder) -> Result<Value, OnnxError> {
        if let Some(value) = self.known.get(&tensor.id) {
            return Ok(value.clone());
        }
        let unknown = || OnnxError::form("operations on earlier results only", tensor.id.to_string());
        let data = self.trace.captured.values.get(&tensor.id).ok_or_else(unknown)?;
        let kind = match data.dtype() {
            DType::F32 => DataType::Float,
            DType::I32 => DataType::Int32,
            DType::I64 => DataType::Int64,
            found => {
                let expected = "constants of 32-bit floating-point numbers or integers";
                return Err(OnnxError::form(expected, format!("{found:?}")));
            }
        };
        let name = self.trace.names.get(&tensor.id).cloned();
        let name = name.unwrap_or_else(|| format!("value_{}", self.known.len()));
        graph.constant(name.clone(), kind, data.shape(), data.bytes().to_vec());
        let value = Value { name, axes: None };
        self.known.insert(tensor.id, value.clone());
        Ok(value)
    }

    pub(crate) fn name(&mut self, tensor: &TensorIr, graph: &mut Builder) -> Result<String, OnnxError> {
        Ok(match self.value(tensor, graph)? {
            Value { name, axes: None } => name,
            Value { name, axes: Some(axes) } => self.transpose(name, axes, graph),
        })
    }

    /// Returns whether a tensor's values in the order of a value with these axes need no permutation when the graph runs.
    pub(crate) fn fits(&mut self, axes: &[usize], tensor: &TensorIr, graph: &mut Builder) -> Result<bool, OnnxError> {
        let own = self.value(tensor, graph)?.axes;
        let is_constant = || own.is_none() && self.is_constant(tensor) && tensor.shape.num_dims() == axes.len();
        Ok(own.as_deref() == Some(axes) || is_constant())
    }

    /// Returns the name of a tensor that [`fits`](Self::fits) these axes, in the order of their value.
    pub(crate) fn before(
        &mut self,
        axes: &[usize],
        tensor: &TensorIr,
        graph: &mut Builder,
    ) -> Result<String, OnnxError> {
        Ok(match self.value(tensor, graph)? {
            Value { name, axes: None } => self.transpose(name, inverse(axes), graph),
            Value { name, axes: Some(_) } => name,
        })
    }

    /// Permutes the axes of a tensor: axis i of the result is axis `axes[i]` of `input`.
    pub(crate) fn permute(
        &mut self,
        input: &TensorIr,
        axes: &[usize],
        out: &TensorIr,
        graph: &mut Builder,
    ) -> Result<(), OnnxError> {
        let Value { name, axes: before } = self.value(input, graph)?;
        let axes: Vec<usize> = axes.iter().map(|&axis| before.as_ref().map_or(axis, |before| before[axis])).collect();
        let same = axes.iter().enumerate().all(|(place, &axis)| place == axis);
        self.set(&[input], out, Value { name, axes: (!same).then_some(axes) });
        Ok(())
    }

    fn transpose(&mut self, name: String, axes: Vec<usize>, graph: &mut Builder) -> String {
        if let Some(known) = self.permuted.get(&(name.clone(), axes.clone())) {
            return known.clone();
        }
        let transposed = graph
            .transposed(&name, &axes)
            .unwrap_or_else(|| graph.node("Transpose", vec![name.clone()], vec![integers("perm", &axes)]));
        self.permuted.insert((name, axes), transposed.clone());
        transposed
    }
}

/// Returns the permutation that undoes another.
fn inverse(axes: &[usize]) -> Vec<usize> {
    let mut inverse = vec![0; axes.len()];
    axes.iter().enumerate().for_each(|(place, &axis)| inverse[axis] = place);
    inverse
}
