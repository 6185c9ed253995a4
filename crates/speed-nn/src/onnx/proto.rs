//! The parts of an ONNX file: nodes, constants and types, as protobuf messages.

use std::collections::{HashMap, HashSet};

use tract_onnx::pb::attribute_proto::AttributeType;
use tract_onnx::pb::tensor_proto::DataType;
use tract_onnx::pb::tensor_shape_proto::{Dimension, dimension};
use tract_onnx::pb::{
    AttributeProto, GraphProto, NodeProto, TensorProto, TensorShapeProto, TypeProto, ValueInfoProto, type_proto,
};

use crate::onnx::PixelType;

/// A graph under construction. Names of values are unique.
#[derive(Debug, Default)]
pub(crate) struct Builder {
    nodes: Vec<NodeProto>,
    constants: Vec<TensorProto>,
    /// The names of unnamed constants, by type, shape and bytes.
    known: HashMap<(i32, Vec<i64>, Vec<u8>), String>,
    /// The set of operations, at least 13; 0 for 13.
    operator_set: i64,
}

impl Builder {
    pub(crate) fn new(operator_set: i64) -> Self {
        Self { operator_set, ..Self::default() }
    }

    pub(crate) fn node(&mut self, kind: &str, inputs: Vec<String>, attributes: Vec<AttributeProto>) -> String {
        let name = format!("{kind}_{}", self.nodes.len());
        self.named_node(kind, inputs, attributes, name.clone());
        name
    }

    pub(crate) fn named_node(
        &mut self,
        kind: &str,
        inputs: Vec<String>,
        attributes: Vec<AttributeProto>,
        output: String,
    ) {
        self.nodes.push(NodeProto {
            input: inputs,
            name: output.clone(),
            output: vec![output],
            op_type: kind.to_owned(),
            attribute: attributes,
            ..NodeProto::default()
        });
    }

    /// Adds a node that reduces an axis to length 1. In later sets of operations the axis is an input, as that of sums is in all.
    pub(crate) fn reduced(&mut self, kind: &str, input: String, axis: usize) -> String {
        if kind == "ReduceSum" || self.operator_set >= 18 {
            let axes = self.integers(&signed(&[axis]));
            return self.node(kind, vec![input, axes], vec![]);
        }
        self.node(kind, vec![input], vec![integers("axes", &[axis])])
    }

    /// Adds the conversion of pixels to numbers of 0 to 1, and returns their name.
    pub(crate) fn pixels(&mut self, images: String, pixels: PixelType) -> String {
        if pixels == PixelType::Float {
            return images;
        }
        let images = self.node("Cast", vec![images], vec![integer("to", DataType::Float as i64)]);
        let white = self.number(255.0);
        self.node("Div", vec![images, white], vec![])
    }

    /// Adds the nodes and constants of another graph, with other names of all values.
    pub(crate) fn embed(&mut self, other: GraphProto, renamed: impl Fn(&str) -> String) {
        self.nodes.extend(other.node.into_iter().map(|node| NodeProto {
            name: renamed(&node.name),
            input: node.input.iter().map(|name| renamed(name)).collect(),
            output: node.output.iter().map(|name| renamed(name)).collect(),
            ..node
        }));
        let renamed = other.initializer.into_iter().map(|tensor| TensorProto { name: renamed(&tensor.name), ..tensor });
        self.constants.extend(renamed);
    }

    pub(crate) fn constant(&mut self, name: String, kind: impl Into<i32>, shape: &[usize], bytes: Vec<u8>) {
        let (data_type, dims) = (kind.into(), signed(shape));
        self.constants.push(TensorProto { name, data_type, dims, raw_data: bytes, ..TensorProto::default() });
    }

    /// Permutes the axes of the constant `name`, and returns the name of the result, whose axis i is axis `axes[i]` of the constant. Returns
    /// `None` if `name` is not a constant. Tools that quantise weights look for them in the file, not behind a node.
    pub(crate) fn transposed(&mut self, name: &str, axes: &[usize]) -> Option<String> {
        let constant = self.constants.iter().find(|constant| constant.name == name)?;
        let old: Vec<usize> = constant.dims.iter().map(|&dim| usize::try_from(dim).unwrap_or(0)).collect();
        let shape: Vec<usize> = axes.iter().map(|&axis| old[axis]).collect();
        let count: usize = shape.iter().product();
        let width = constant.raw_data.len().checked_div(count)?;
        let mut bytes = Vec::with_capacity(constant.raw_data.len());
        for place in 0..count {
            // The index along each axis of the result, the last one running fastest.
            let (mut rest, mut index) = (place, vec![0; old.len()]);
            for (&axis, &length) in axes.iter().zip(&shape).rev() {
                (index[axis], rest) = (rest % length, rest / length);
            }
            let from = index.iter().zip(&old).fold(0, |from, (index, length)| from * length + index);
            bytes.extend_from_slice(&constant.raw_data[from * width..][..width]);
        }
        let (name, kind) = (format!("{name}_transposed_{}", self.constants.len()), constant.data_type);
        self.constant(name.clone(), kind, &shape, bytes);
        Some(name)
    }

    /// Gives the constant `name` another shape, and returns the name of the result; `None` if `name` is not a constant.
    pub(crate) fn reshaped(&mut self, name: &str, shape: &[i64]) -> Option<String> {
        let constant = self.constants.iter().find(|constant| constant.name == name)?.clone();
        let name = format!("{name}_reshaped_{}", self.constants.len());
        self.constants.push(TensorProto { name: name.clone(), dims: shape.to_vec(), ..constant });
        Some(name)
    }

    /// Returns the name of a vector of integers, which many nodes take as an input.
    pub(crate) fn integers(&mut self, values: &[i64]) -> String {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.shared(DataType::Int64, &[values.len()], bytes)
    }

    pub(crate) fn number(&mut self, value: f32) -> String {
        self.shared(DataType::Float, &[], value.to_le_bytes().to_vec())
    }

    pub(crate) fn numbers(&mut self, shape: &[usize], values: &[f32]) -> String {
        self.shared(DataType::Float, shape, values.iter().flat_map(|value| value.to_le_bytes()).collect())
    }

    fn shared(&mut self, kind: DataType, shape: &[usize], bytes: Vec<u8>) -> String {
        let key = (kind as i32, signed(shape), bytes.clone());
        if let Some(name) = self.known.get(&key) {
            return name.clone();
        }
        let name = format!("constant_{}", self.known.len());
        self.known.insert(key, name.clone());
        self.constant(name.clone(), kind, shape, bytes);
        name
    }

    /// Returns the graph, without the constants that no node uses.
    pub(crate) fn finish(
        mut self,
        name: &str,
        inputs: Vec<ValueInfoProto>,
        outputs: Vec<ValueInfoProto>,
    ) -> GraphProto {
        let used: HashSet<&String> = self.nodes.iter().flat_map(|node| &node.input).collect();
        self.constants.retain(|constant| used.contains(&constant.name));
        GraphProto {
            name: name.to_owned(),
            node: self.nodes,
            initializer: self.constants,
            input: inputs,
            output: outputs,
            ..GraphProto::default()
        }
    }
}

/// Returns a tensor with a name, the batch size `N` as first axis, and the other axes.
pub(crate) fn batch(name: &str, kind: DataType, axes: &[usize]) -> ValueInfoProto {
    described(name, kind, dimension::Value::DimParam("N".to_owned()), axes)
}

/// Returns the tensor of one image, with a name and the other axes.
pub(crate) fn single(name: &str, kind: DataType, axes: &[usize]) -> ValueInfoProto {
    described(name, kind, dimension::Value::DimValue(1), axes)
}

fn described(name: &str, kind: DataType, batch: dimension::Value, axes: &[usize]) -> ValueInfoProto {
    let axes = signed(axes).into_iter().map(dimension::Value::DimValue);
    let dim = std::iter::once(batch).chain(axes);
    let dim = dim.map(|value| Dimension { value: Some(value), ..Dimension::default() }).collect();
    let tensor = type_proto::Tensor { elem_type: kind as i32, shape: Some(TensorShapeProto { dim }) };
    let kind = TypeProto { value: Some(type_proto::Value::TensorType(tensor)), ..TypeProto::default() };
    ValueInfoProto { name: name.to_owned(), r#type: Some(kind), ..ValueInfoProto::default() }
}

pub(crate) fn integer(name: &str, value: i64) -> AttributeProto {
    AttributeProto { i: value, ..attribute(name, AttributeType::Int) }
}

pub(crate) fn integers(name: &str, values: &[usize]) -> AttributeProto {
    AttributeProto { ints: signed(values), ..attribute(name, AttributeType::Ints) }
}

pub(crate) fn number(name: &str, value: f32) -> AttributeProto {
    AttributeProto { f: value, ..attribute(name, AttributeType::Float) }
}

fn attribute(name: &str, kind: AttributeType) -> AttributeProto {
    AttributeProto { name: name.to_owned(), r#type: kind as i32, ..AttributeProto::default() }
}

/// Returns lengths as ONNX writes them.
pub(crate) fn signed(lengths: &[usize]) -> Vec<i64> {
    lengths.iter().copied().map(length).collect()
}

/// Returns a length as ONNX writes it. No tensor in memory has a longer axis.
pub(crate) fn length(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}
