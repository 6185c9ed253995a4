//! An encoder of random filters.

use prost::Message;
use rand::RngExt;
use speed_core::random::Streams;
use tract_onnx::pb::tensor_proto::DataType;
use tract_onnx::pb::{ModelProto, OperatorSetIdProto};

use crate::onnx::proto::{Builder, batch, integer, integers};

const FILTERS: usize = 24;
const SIDE: usize = 5;
const PICTURE: usize = 32;
/// Height and width of the cells of a picture, over which a filter's responses are averaged.
const CELL: usize = 8;

/// Returns the bytes of a small encoder of pictures of 3 x 32 x 32, for people without an encoder and for tests: 24 fixed
/// random filters, whose responses are averaged over 16 parts of a picture. A trained encoder tells photographs apart far
/// better.
pub fn small_encoder() -> Vec<u8> {
    let mut stream = Streams::new(0).stream("filters of the small encoder", 0);
    let mut graph = Builder::default();
    let values = 3 * SIDE * SIDE;
    let filters = (0..FILTERS).flat_map(|_| {
        // Sixteenths, so that the sum of a filter is exact. A filter without a mean responds to edges and not to brightness.
        let mut filter: Vec<f32> = (0..values).map(|_| f32::from(stream.random_range(-8_i8..=8)) / 16.0).collect();
        let mean = filter.iter().sum::<f32>() / values as f32;
        filter.iter_mut().for_each(|value| *value -= mean);
        filter
    });
    let filters = filters.flat_map(f32::to_le_bytes).collect();
    graph.constant("filters".to_owned(), DataType::Float, &[FILTERS, 3, SIDE, SIDE], filters);
    let sides = [SIDE, SIDE];
    let attributes = vec![integers("kernel_shape", &sides), integers("pads", &[SIDE / 2; 4])];
    let maps = graph.node("Conv", vec!["images".to_owned(), "filters".to_owned()], attributes);
    let maps = graph.node("Relu", vec![maps], vec![]);
    let cells = vec![integers("kernel_shape", &[CELL; 2]), integers("strides", &[CELL; 2])];
    let means = graph.node("AveragePool", vec![maps], cells);
    graph.named_node("Flatten", vec![means], vec![integer("axis", 1)], "features".to_owned());
    let cells = (PICTURE / CELL) * (PICTURE / CELL);
    let input = batch("images", DataType::Float, &[3, PICTURE, PICTURE]);
    let output = batch("features", DataType::Float, &[FILTERS * cells]);
    let model = ModelProto {
        ir_version: 7,
        opset_import: vec![OperatorSetIdProto { domain: String::new(), version: 13 }],
        producer_name: "speed".to_owned(),
        graph: Some(graph.finish("small encoder", vec![input], vec![output])),
        ..ModelProto::default()
    };
    model.encode_to_vec()
}
