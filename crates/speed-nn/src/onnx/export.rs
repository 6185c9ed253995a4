//! From a network to the bytes of a model.

use burn::backend::ir::OperationIr;
use burn::tensor::Device;
use prost::Message;
use rand::Rng;
use speed_core::random::Streams;
use speed_data::ImageShape;
use tract_onnx::pb::tensor_proto::DataType;
use tract_onnx::pb::{ModelProto, OperatorSetIdProto, StringStringEntryProto};

use crate::device::values;
use crate::onnx::front::{IMAGES, VECTORS, operator_set};
use crate::onnx::lower::Lowering;
use crate::onnx::proto::{Builder, batch, integer, single};
use crate::onnx::runtime::{PixelType, Runtime};
use crate::onnx::shapes::{Length, Shapes};
use crate::onnx::{Encoder, OnnxError};
use crate::training::{AnyClassifier, Pixels};

/// The name of the first output, `[N, classes]`: a softmax of the logits.
pub const PROBABILITIES: &str = "probabilities";
/// The name of the second output, `[N, classes]`.
pub const LOGITS: &str = "logits";

/// The version of ONNX's file format.
const IR_VERSION: i64 = 7;
/// The set of operations, which runtimes of the year 2020 and later have.
const OPERATOR_SET: i64 = 13;
/// The two numbers of images of the traces.
const RECORDED: [usize; 2] = [2, 3];

/// A network that leaves as an ONNX model.
#[derive(Clone, Copy)]
pub struct Export<'a> {
    /// The network.
    pub network: &'a dyn AnyClassifier,
    /// The shape of its images; of the encoder's vectors if there is an encoder.
    pub shape: ImageShape,
    /// The encoder in front of the network, which then reads its vectors.
    pub encoder: Option<&'a Encoder>,
    /// The type of the model's pixels.
    pub pixels: PixelType,
    /// The version of the program that makes the model.
    pub version: &'a str,
    /// Entries of the model's metadata, by key.
    pub metadata: &'a [(&'a str, String)],
}

impl Export<'_> {
    /// Returns the bytes of the model. Its input is [`IMAGES`], with the preparation of the pixels in the graph, and its outputs
    /// are [`PROBABILITIES`] and [`LOGITS`]. Equal networks give equal bytes. Behind an encoder, the input is the encoder's
    /// pictures, and the number of images is 1 if that of the encoder is.
    ///
    /// # Errors
    /// If the network's operations have no form in ONNX, or the encoder does not fit the network.
    pub fn to_bytes(&self) -> Result<Vec<u8>, OnnxError> {
        let ImageShape { channels, height, width } = self.shape;
        let [trace, other] = RECORDED.map(|images| self.network.trace([images, height, width, channels]));
        let (trace, other) = (trace?, other?);
        let shapes = Shapes::new(&trace, &other)?;
        let front = Front::of(self)?;
        let mut graph = Builder::new(front.operator_set);
        let images = self.prepared(&mut graph);
        let mut lowering = Lowering::new(graph, &trace, &shapes, images);
        let operations = &trace.captured.graph.operations;
        operations.iter().try_for_each(|operation| lowering.operation(operation))?;

        let output = trace.captured.graph.outputs[0];
        let last = operations.iter().flat_map(OperationIr::nodes).find(|tensor| tensor.id == output);
        let last = last.ok_or_else(|| OnnxError::form("operations on earlier results only", output.to_string()))?;
        let [Length::Batch, Length::Fixed(classes)] = shapes.of(last)[..] else {
            return Err(OnnxError::logits(last.shape.to_string()));
        };
        let last = lowering.name(last)?;
        let mut graph = lowering.graph;
        graph.named_node("Identity", vec![last], vec![], LOGITS.to_owned());
        graph.named_node("Softmax", vec![LOGITS.to_owned()], vec![integer("axis", 1)], PROBABILITIES.to_owned());

        let kind = match self.pixels {
            PixelType::Uint8 => DataType::Uint8,
            PixelType::Float => DataType::Float,
        };
        let batch = if front.is_variable { batch } else { single };
        let outputs = [PROBABILITIES, LOGITS].map(|name| batch(name, DataType::Float, &[classes]));
        let ImageShape { channels, height, width } = self.images();
        let graph = graph.finish("speed", vec![batch(IMAGES, kind, &[channels, height, width])], outputs.into());
        let entry = |(key, value): &(&str, String)| StringStringEntryProto { key: (*key).into(), value: value.clone() };
        let model = ModelProto {
            ir_version: front.ir_version,
            opset_import: front.imports,
            producer_name: "speed".to_owned(),
            producer_version: self.version.to_owned(),
            graph: Some(graph),
            metadata_props: self.metadata.iter().map(entry).collect(),
            ..ModelProto::default()
        };
        Ok(model.encode_to_vec())
    }

    /// Returns the shape of the model's images.
    fn images(&self) -> ImageShape {
        self.encoder.map_or(self.shape, Encoder::shape)
    }

    /// Adds the preparation of the images, and returns the name of the prepared ones.
    fn prepared(&self, graph: &mut Builder) -> String {
        let mut images = match self.encoder {
            None => graph.pixels(IMAGES.to_owned(), self.pixels),
            Some(encoder) => encoder.add_to(graph, self.pixels),
        };
        if self.network.offset() != 0.0 {
            let offset = graph.number(self.network.offset());
            images = graph.node("Add", vec![images, offset], vec![]);
        }
        images
    }
}

/// The parts of a model that an encoder determines.
struct Front {
    is_variable: bool,
    ir_version: i64,
    operator_set: i64,
    imports: Vec<OperatorSetIdProto>,
}

impl Front {
    fn of(export: &Export<'_>) -> Result<Self, OnnxError> {
        let own = OperatorSetIdProto { domain: String::new(), version: OPERATOR_SET };
        let Some(encoder) = export.encoder else {
            let (ir_version, operator_set) = (IR_VERSION, OPERATOR_SET);
            return Ok(Self { is_variable: true, ir_version, operator_set, imports: vec![own] });
        };
        if export.shape != encoder.vectors_shape() {
            let expected = format!("a network that reads the encoder's vectors {}", encoder.vectors_shape());
            return Err(OnnxError::form(expected, format!("{}: use the encoder of its training", export.shape)));
        }
        let (model, input) = encoder.parts();
        let (ir_version, imports) = (model.ir_version.max(IR_VERSION), model.opset_import.clone());
        Ok(Self { is_variable: input.is_variable, ir_version, operator_set: operator_set(model)?, imports })
    }
}

speed_core::debug_as!(Export<'_>, this => "Export {{ shape: {}, pixels: {:?}, .. }}", this.shape, this.pixels);

/// Returns the largest difference between the logits of a model and of its network, as a fraction of the largest logit, or of 1
/// if that is greater. It is taken over `images` images of random bytes. The bytes of an encoder's vectors are compared,
/// too; a byte may differ by 1, because it is rounded.
///
/// # Errors
/// If the model does not run, or the device fails.
pub fn largest_difference(export: &Export<'_>, bytes: &[u8], images: usize) -> Result<f32, OnnxError> {
    let Export { network, shape, pixels, .. } = *export;
    let size = export.images();
    let mut random = vec![0; images * size.pixels()];
    Streams::new(0).stream("images of an exported model", 0).fill_bytes(&mut random);
    let (found, random) = match export.encoder {
        None => (Runtime::new(bytes)?.logits(&random, size, pixels)?, random),
        Some(encoder) => {
            let (logits, vectors) = with_vectors(export, bytes, &random)?;
            let expected: Result<Vec<_>, _> =
                random.chunks_exact(size.pixels()).map(|image| encoder.vector(image)).collect();
            let expected = expected?.concat();
            let steps: Vec<u8> =
                vectors.iter().zip(&expected).map(|(found, expected)| found.abs_diff(*expected)).collect();
            let differing = steps.iter().filter(|steps| **steps > 0).count();
            if vectors.len() != expected.len()
                || steps.iter().any(|steps| *steps > 1)
                || differing > 1 + steps.len() / 50
            {
                return Ok(1.0);
            }
            (logits, vectors)
        }
    };

    let mut batch = Pixels::with_capacity(shape, images);
    random.chunks_exact(shape.pixels()).for_each(|image| batch.push(image, network.offset()));
    let expected = values(network.logits(batch.into_tensor(&Device::flex())))?;
    if found.len() != expected.len() {
        return Err(OnnxError::logits(format!("{} instead of {} values", found.len(), expected.len())));
    }
    let largest = expected.iter().fold(1.0_f32, |largest, logit| largest.max(logit.abs()));
    // NaN counts as a large difference.
    let difference = found.iter().zip(&expected).map(|(found, expected)| (found - expected).abs());
    let keep = |largest: f32, found: f32| if found > largest || found.is_nan() { found } else { largest };
    Ok(difference.fold(0.0, keep) / largest)
}

/// Returns the logits of an export's model, and the bytes of its encoder's vectors.
fn with_vectors(export: &Export<'_>, bytes: &[u8], images: &[u8]) -> Result<(Vec<f32>, Vec<u8>), OnnxError> {
    let mut model = ModelProto::decode(bytes).map_err(OnnxError::refused)?;
    let output = batch(VECTORS, DataType::Float, &[1, 1, export.shape.width]);
    model.graph.get_or_insert_default().output.push(output);
    let runtime = Runtime::of(&model)?;
    let size = export.images();
    let is_variable = export.encoder.is_none_or(|encoder| encoder.parts().1.is_variable);
    let together = if is_variable { images.len() } else { size.pixels() };
    let (mut logits, mut vectors) = (Vec::new(), Vec::new());
    for images in images.chunks(together.max(1)) {
        let [some, of_images] = runtime.outputs([1, 2], images, size, export.pixels)?;
        logits.extend(some);
        vectors.extend(of_images);
    }
    Ok((logits, vectors.iter().map(|value| (value * 255.0).round() as u8).collect()))
}
