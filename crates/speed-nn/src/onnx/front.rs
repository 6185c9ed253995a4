//! An encoder in front of an exported network.

use std::collections::HashSet;

use tract_onnx::pb::tensor_proto::DataType;
use tract_onnx::pb::{GraphProto, ModelProto, NodeProto, OperatorSetIdProto};

use crate::onnx::proto::{Builder, integer, length};
use crate::onnx::{Encoder, OnnxError, PixelType, TokenPool};

/// The name of an encoder's vectors in a graph, with values of 0 to 1.
pub(crate) const VECTORS: &str = "encoder_vectors";
/// The name of a model's input, `[N, channels, height, width]`.
pub const IMAGES: &str = "images";
/// Stands before every name of the encoder's own graph.
const PREFIX: &str = "encoder/";
/// Stands before every name of the encoder's graph for mirror images.
const MIRRORED: &str = "mirror/";
/// The sets of operations in which the network's nodes are written.
const OPERATOR_SETS: std::ops::RangeInclusive<i64> = 13..=21;

/// Returns the set of operations of an encoder.
pub(crate) fn operator_set(model: &ModelProto) -> Result<i64, OnnxError> {
    let is_own = |import: &&OperatorSetIdProto| matches!(import.domain.as_str(), "" | "ai.onnx");
    let found = model.opset_import.iter().find(is_own).map_or(0, |import| import.version);
    if OPERATOR_SETS.contains(&found) {
        return Ok(found);
    }
    let [first, last] = [OPERATOR_SETS.start(), OPERATOR_SETS.end()];
    let found = format!("{found}: export the encoder again with one of these, as PyTorch does with opset_version=18");
    Err(OnnxError::form(format!("an encoder of ONNX's operator set {first} to {last}"), found))
}

/// A graph without its weights, and their names.
struct Weightless {
    nodes: GraphProto,
    weights: HashSet<String>,
}

impl Weightless {
    fn of(graph: &GraphProto) -> Self {
        let (constants, nodes): (Vec<&NodeProto>, Vec<&NodeProto>) =
            graph.node.iter().partition(|node| node.op_type == "Constant");
        let stored = graph.initializer.iter().map(|tensor| &tensor.name);
        let weights = stored.chain(constants.into_iter().flat_map(|node| &node.output)).cloned().collect();
        let (node, output) = (nodes.into_iter().cloned().collect(), graph.output.clone());
        Self { nodes: GraphProto { node, output, ..GraphProto::default() }, weights }
    }
}

impl Encoder {
    /// Adds the preparation of the images, the encoder's nodes, and the bytes of its vectors. Returns the name of the vectors
    /// as images N x 1 x 1 x D, with values of 0 to 1.
    pub(crate) fn add_to(&self, graph: &mut Builder, pixels: PixelType) -> String {
        let (model, input) = self.parts();
        let mut images = IMAGES.to_owned();
        match (pixels, input.pixels) {
            (PixelType::Uint8, PixelType::Uint8) => {}
            (PixelType::Float, PixelType::Uint8) => {
                let white = graph.number(255.0);
                images = graph.node("Mul", vec![images, white], vec![]);
                images = graph.node("Round", vec![images], vec![]);
                images = graph.node("Cast", vec![images], vec![integer("to", DataType::Uint8 as i64)]);
            }
            (_, PixelType::Float) => images = self.prepared(graph, images, pixels),
        }
        let own = model.graph.clone().unwrap_or_default();
        let prefixed = |name: &str| if name.is_empty() { String::new() } else { format!("{PREFIX}{name}") };
        // The mirror image has nodes of its own, and the same weights.
        let mirrored = self.preparation().mirror.then(|| Weightless::of(&own));
        let mut vectors = self.embed(graph, own, images.clone(), prefixed);
        if let Some(Weightless { nodes, weights }) = mirrored {
            let columns: Vec<i64> = (0..length(self.shape().width)).rev().collect();
            let columns = graph.integers(&columns);
            let images = graph.node("Gather", vec![images, columns], vec![integer("axis", 3)]);
            let renamed = |name: &str| match name {
                name if name.is_empty() || weights.contains(name) => prefixed(name),
                name => format!("{MIRRORED}{name}"),
            };
            let others = self.embed(graph, nodes, images, renamed);
            vectors = graph.node("Add", vec![vectors, others], vec![]);
        }
        let sizes = graph.node("Abs", vec![vectors.clone()], vec![]);
        let largest = graph.reduced("ReduceMax", sizes, 1);
        let mut vectors = graph.node("Div", vec![vectors, largest], vec![]);
        let [half, zero, white] = [127.0, 128.0, 255.0].map(|number| graph.number(number));
        vectors = graph.node("Mul", vec![vectors, half], vec![]);
        // Halves become even, as in `Encoder::vector`.
        vectors = graph.node("Round", vec![vectors], vec![]);
        vectors = graph.node("Add", vec![vectors, zero], vec![]);
        vectors = graph.node("Div", vec![vectors, white], vec![]);
        let shape = graph.integers(&[-1, 1, 1, self.width() as i64]);
        graph.named_node("Reshape", vec![vectors, shape], vec![], VECTORS.to_owned());
        VECTORS.to_owned()
    }

    /// Adds the encoder's nodes for prepared images. Returns the name of their features, N x D.
    fn embed(&self, graph: &mut Builder, own: GraphProto, images: String, renamed: impl Fn(&str) -> String) -> String {
        let (_, input) = self.parts();
        graph.named_node("Identity", vec![images], vec![], renamed(&input.name));
        let mut vectors = own.output.first().map_or_else(String::new, |output| renamed(&output.name));
        graph.embed(own, renamed);
        match self.preparation().pool {
            None => {}
            Some(TokenPool::First) => {
                let [start, end, axes] = [[0], [1], [1]].map(|value| graph.integers(&value));
                vectors = graph.node("Slice", vec![vectors, start, end, axes], vec![]);
            }
            Some(TokenPool::Mean) => vectors = graph.reduced("ReduceMean", vectors, 1),
        }
        graph.node("Flatten", vec![vectors], vec![integer("axis", 1)])
    }

    fn prepared(&self, graph: &mut Builder, images: String, pixels: PixelType) -> String {
        let preparation = self.preparation();
        let mut images = graph.pixels(images, pixels);
        for (kind, values, neutral) in [("Sub", &preparation.mean, 0.0), ("Div", &preparation.deviation, 1.0)] {
            if values.iter().any(|value| *value != neutral) {
                let channels = graph.numbers(&[values.len(), 1, 1], values);
                images = graph.node(kind, vec![images, channels], vec![]);
            }
        }
        images
    }
}
