//! Small encoders, hostile files, and encoders in front of networks.

use std::fs;

use burn::module::Module;
use burn::tensor::Tensor;
use prost::Message as _;
use tempfile::TempDir;
use tract_onnx::pb::attribute_proto::AttributeType;
use tract_onnx::pb::tensor_proto::{DataLocation, DataType};
use tract_onnx::pb::tensor_shape_proto::{Dimension, dimension};
use tract_onnx::pb::type_proto::Value::TensorType;
use tract_onnx::pb::{AttributeProto, GraphProto, OperatorSetIdProto, StringStringEntryProto, ValueInfoProto};

use super::*;
use crate::onnx::proto::{Builder, batch, integer, integers, single};
use crate::onnx::{Export, Runtime, largest_difference, small_encoder};
use crate::training::Classifier;

const PICTURE: ImageShape = ImageShape { channels: 3, height: 8, width: 8 };

struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.0.path().join(name), bytes).expect("a file");
    }

    fn read(&self, model: &ModelProto, settings: &EncoderSettings) -> Result<Encoder, OnnxError> {
        self.write("model.onnx", model.encode_to_vec());
        Encoder::read(&self.0.path().join("model.onnx"), settings)
    }

    #[track_caller]
    fn refused(&self, model: &ModelProto, settings: &EncoderSettings, words: &[&str]) {
        let text = self.read(model, settings).map(|_| ()).expect_err("refused").to_string();
        assert!(words.iter().all(|words| text.contains(words)), "{words:?} is not in {text}");
    }
}

#[track_caller]
fn refused(model: &ModelProto, words: &[&str]) {
    Folder::new().refused(model, &EncoderSettings::default(), words);
}

fn pooled(pool: TokenPool) -> EncoderSettings {
    EncoderSettings { pool: Some(pool), ..EncoderSettings::default() }
}

/// Returns a model whose nodes make the output `features` from `images`.
fn model(input: ValueInfoProto, operator_set: i64, nodes: impl FnOnce(&mut Builder)) -> ModelProto {
    let mut graph = Builder::default();
    nodes(&mut graph);
    let graph = graph.finish("test", vec![input], vec![batch("features", DataType::Float, &[4])]);
    let import = OperatorSetIdProto { domain: String::new(), version: operator_set };
    ModelProto { ir_version: 8, opset_import: vec![import], graph: Some(graph), ..ModelProto::default() }
}

fn pictures() -> ValueInfoProto {
    batch("images", DataType::Float, &[3, 8, 8])
}

/// Adds four filters of 3 x 3 with stride 2, which make maps N x 4 x 3 x 3.
fn filters(graph: &mut Builder, images: &str) -> String {
    let weights = (0..4 * 27_u16).flat_map(|place| (f32::from(place * 37 % 17) / 8.0 - 1.0).to_le_bytes()).collect();
    graph.constant("weights".to_owned(), DataType::Float, &[4, 3, 3, 3], weights);
    let sides = vec![integers("kernel_shape", &[3, 3]), integers("strides", &[2, 2])];
    graph.node("Conv", vec![images.to_owned(), "weights".to_owned()], sides)
}

fn flat(graph: &mut Builder, value: String) {
    graph.named_node("Flatten", vec![value], vec![integer("axis", 1)], "features".to_owned());
}

fn means(input: ValueInfoProto, operator_set: i64) -> ModelProto {
    model(input, operator_set, |graph| {
        let maps = filters(graph, "images");
        let means = graph.node("GlobalAveragePool", vec![maps], vec![]);
        flat(graph, means);
    })
}

/// The responses of the filters as nine tokens of four values.
fn tokens(input: ValueInfoProto, operator_set: i64) -> ModelProto {
    model(input, operator_set, |graph| {
        let maps = filters(graph, "images");
        let shape = graph.integers(&[0, 4, 9]);
        let rows = graph.node("Reshape", vec![maps, shape], vec![]);
        graph.named_node("Transpose", vec![rows], vec![integers("perm", &[0, 2, 1])], "features".to_owned());
    })
}

fn picture(number: usize, shape: ImageShape) -> Vec<u8> {
    (0..shape.pixels())
        .map(|pixel| ((pixel * (2 * number + 3) * 7 + pixel / 12 * 11 + number * 40) % 256) as u8)
        .collect()
}

#[test]
fn the_small_encoder_gives_bytes_that_depend_on_the_picture() {
    let folder = Folder::new();
    folder.write("small.onnx", small_encoder());
    let path = folder.0.path().join("small.onnx");
    let encoder = Encoder::read(&path, &EncoderSettings::default()).expect("an encoder");
    assert_eq!(encoder.shape(), ImageShape { channels: 3, height: 32, width: 32 });
    assert_eq!(encoder.vectors_shape(), ImageShape { channels: 1, height: 1, width: 384 });
    let vectors = [0, 1].map(|number| encoder.vector(&picture(number, encoder.shape())).expect("a vector"));
    assert_ne!(vectors[0], vectors[1]);
    for vector in &vectors {
        assert!(vector.len() == 384 && vector.contains(&255) && !vector.contains(&0), "{vector:?}");
    }
    let preparation =
        EncoderPreparation { size: [32, 32], mean: vec![0.0; 3], deviation: vec![1.0; 3], pool: None, mirror: false };
    assert_eq!(encoder.preparation(), &preparation);
    let again = Encoder::read(&path, &preparation.settings()).expect("an encoder");
    assert_eq!(again.digest(), encoder.digest());
    let other = EncoderSettings { mean: vec![0.5], deviation: vec![0.5], ..EncoderSettings::default() };
    let other = Encoder::read(&path, &other).expect("an encoder");
    assert_ne!(other.digest(), encoder.digest());
    assert!(encoder.vector(&[7; 10]).expect_err("short").to_string().contains("found 10"));
    // No filter has a response, and no vector a direction.
    let black = encoder.vector(&vec![0; encoder.shape().pixels()]).expect_err("constant").to_string();
    assert!(black.contains("found equal ones: leave the picture out"), "{black}");
}

#[test]
fn vectors_are_the_rounded_directions_of_prepared_pictures() {
    // The features are four channels' means of the picture, of which the last is that of the first, negative.
    let model = model(pictures(), 13, |graph| {
        let means = graph.node("GlobalAveragePool", vec!["images".to_owned()], vec![]);
        let weights = [1.0, 0.0, 0.0, -1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0_f32];
        let weights = graph.numbers(&[3, 4], &weights);
        let rows = graph.node("Flatten", vec![means], vec![integer("axis", 1)]);
        graph.named_node("MatMul", vec![rows, weights], vec![], "features".to_owned());
    });
    let image = [[255; 64], [51; 64], [0; 64]].concat();
    let vector = |settings: &EncoderSettings| {
        let encoder = Folder::new().read(&model, settings).expect("an encoder");
        encoder.vector(&image).expect("a vector")
    };
    assert_eq!(vector(&EncoderSettings::default()), [255, 128 + 25, 128, 1]);
    let (mean, deviation) = (vec![0.0, 0.2, 0.5], vec![1.0, 1.0, 0.5]);
    assert_eq!(vector(&EncoderSettings { mean, deviation, ..EncoderSettings::default() }), [255, 128, 1, 1]);
}

#[test]
fn a_picture_and_its_mirror_image_have_the_same_vector_if_both_are_read() {
    let image = picture(1, PICTURE);
    let mirrored: Vec<u8> = image.chunks_exact(PICTURE.width).flat_map(|row| row.iter().rev().copied()).collect();
    for mirror in [false, true] {
        let settings = EncoderSettings { mirror, ..EncoderSettings::default() };
        let encoder = Folder::new().read(&means(pictures(), 13), &settings).expect("an encoder");
        assert_eq!(encoder.preparation().settings().mirror, mirror);
        let [vector, other] = [&image, &mirrored].map(|image| encoder.vector(image).expect("a vector"));
        assert_eq!(vector == other, mirror);
    }
}

#[test]
fn every_form_of_output_and_input_is_read() {
    let default = EncoderSettings::default();
    let vector = |model: &ModelProto, settings: &EncoderSettings| {
        let encoder = Folder::new().read(model, settings).expect("an encoder");
        assert_eq!((encoder.shape(), encoder.width()), (PICTURE, 4));
        encoder.vector(&picture(1, PICTURE)).expect("a vector")
    };
    let expected = vector(&means(pictures(), 13), &default);
    // Tokens are the places of the maps, so that their mean is that of the maps.
    assert_eq!(vector(&tokens(pictures(), 13), &pooled(TokenPool::Mean)), expected);
    assert_ne!(vector(&tokens(pictures(), 13), &pooled(TokenPool::First)), expected);
    let maps = model(pictures(), 13, |graph| {
        let maps = filters(graph, "images");
        graph.named_node("GlobalAveragePool", vec![maps], vec![], "features".to_owned());
    });
    assert_eq!(vector(&maps, &default), expected);
    assert_eq!(vector(&means(single("images", DataType::Float, &[3, 8, 8]), 13), &default), expected);
    let bytes = model(batch("images", DataType::Uint8, &[3, 8, 8]), 13, |graph| {
        let images = graph.pixels("images".to_owned(), PixelType::Uint8);
        let maps = filters(graph, &images);
        let means = graph.node("GlobalAveragePool", vec![maps], vec![]);
        flat(graph, means);
    });
    assert_eq!(vector(&bytes, &default), expected);
    let half = EncoderSettings { mean: vec![0.5], deviation: vec![0.5], ..default.clone() };
    Folder::new().refused(&bytes, &half, &["leave them out"]);

    // As tools write models without any fixed length.
    let mut open = means(pictures(), 13);
    open_axes(&mut open, &[1, 2, 3]);
    let sized = |size| EncoderSettings { size: Some(size), ..default.clone() };
    assert_eq!(vector(&open, &sized([8, 8])), expected);
    refused(&open, &["found N x axis1 x axis2 x axis3: give the encoder's size"]);
    for wrong in [[7, 8], [8, 4000]] {
        Folder::new().refused(&open, &sized(wrong), &["expected pictures of 8 to 1024 pixels"]);
    }
    Folder::new().refused(&means(pictures(), 13), &sized([9, 9]), &["found the size 9 x 9: leave it out"]);
}

/// Gives axes of the input a name instead of a length.
fn open_axes(model: &mut ModelProto, axes: &[usize]) {
    let input = &mut model.graph.as_mut().expect("a graph").input[0];
    let Some(TensorType(tensor)) = input.r#type.as_mut().and_then(|kind| kind.value.as_mut()) else {
        unreachable!("a tensor")
    };
    for &axis in axes {
        let value = Some(dimension::Value::DimParam(format!("axis{axis}")));
        tensor.shape.as_mut().expect("a shape").dim[axis] = Dimension { value, ..Dimension::default() };
    }
}

#[test]
fn models_that_are_not_encoders_are_refused_with_the_next_step() {
    let wide = |width: usize| {
        model(pictures(), 13, |graph| {
            let means = graph.node("GlobalAveragePool", vec!["images".to_owned()], vec![]);
            let rows = graph.node("Flatten", vec![means], vec![integer("axis", 1)]);
            let weights = graph.numbers(&[3, width], &vec![1.0; 3 * width]);
            graph.named_node("MatMul", vec![rows, weights], vec![], "features".to_owned());
        })
    };
    for width in [1, 8193] {
        refused(&wide(width), &["with D from 2 to 8192, found", "another encoder"]);
    }
    refused(&wide(5), &["expected finite vectors that depend on the picture"]);
    refused(&tokens(pictures(), 13), &["expected a token pool, first or mean", "give a token pool"]);
    Folder::new().refused(&means(pictures(), 13), &pooled(TokenPool::First), &["leave the token pool out"]);
    let maps = model(pictures(), 13, |graph| {
        let maps = filters(graph, "images");
        graph.named_node("Relu", vec![maps], vec![], "features".to_owned());
    });
    refused(&maps, &["expected a first output of N x D"]);
    refused(&means(batch("images", DataType::Double, &[3, 8, 8]), 13), &["found double"]);
    refused(&means(batch("images", DataType::Float, &[2, 8, 8]), 13), &["found N x 2 x 8 x 8"]);

    let with = |operation: &str, attributes: Vec<AttributeProto>| {
        let second = operation == "Div";
        model(pictures(), 13, |graph| {
            let maps = filters(graph, "images");
            let inputs = if second { vec![maps.clone(), maps] } else { vec![maps] };
            let changed = graph.node(operation, inputs, attributes);
            let means = graph.node("GlobalAveragePool", vec![changed], vec![]);
            flat(graph, means);
        })
    };
    let body = AttributeProto {
        name: "body".into(),
        r#type: AttributeType::Graph as i32,
        g: Some(GraphProto::default()),
        ..AttributeProto::default()
    };
    for operation in ["Frobnicate", "RandomNormalLike", "SequenceConstruct", "Loop", "If", "Scan"] {
        let attributes = if ["If", "Scan"].contains(&operation) { vec![body.clone()] } else { vec![] };
        refused(&with(operation, attributes), &[&format!("found the operation {operation}: export")]);
    }
    // Every value is 1.
    refused(&with("Div", vec![]), &["vectors that are constant", "another encoder"]);
    // The square root of a negative number.
    refused(&with("Sqrt", vec![]), &["not numbers"]);
    let large = model(batch("images", DataType::Float, &[3, 1024, 1024]), 13, |graph| {
        let repeats = graph.integers(&[1, 1, 5, 5]);
        let large = graph.node("Tile", vec!["images".to_owned(), repeats], vec![]);
        let means = graph.node("GlobalAveragePool", vec![large], vec![]);
        flat(graph, means);
    });
    refused(&large, &["expected at most 67108864 values"]);
    let missing = Folder::new().0.path().join("none.onnx");
    let error = Encoder::read(&missing, &EncoderSettings::default()).expect_err("no file").to_string();
    assert!(error.starts_with("cannot read ") && error.contains("none.onnx"), "{error}");
}

/// Moves the weights of a model into a file, as PyTorch does.
fn external(model: &mut ModelProto, location: &str, offset: &str, length: Option<&str>) -> Vec<u8> {
    let graph = model.graph.as_mut().expect("a graph");
    let weights = graph.initializer.iter_mut().find(|tensor| tensor.name == "weights").expect("weights");
    let entry = |key: &str, value: &str| StringStringEntryProto { key: key.into(), value: value.into() };
    weights.external_data = vec![entry("location", location), entry("offset", offset)];
    weights.external_data.extend(length.map(|length| entry("length", length)));
    weights.data_location = Some(DataLocation::External as i32);
    std::mem::take(&mut weights.raw_data)
}

#[test]
fn external_weights_come_from_the_directory_of_the_model() {
    let own = Folder::new().read(&means(pictures(), 13), &EncoderSettings::default()).expect("an encoder");
    let folder = Folder::new();
    let mut outside = means(pictures(), 13);
    let bytes = external(&mut outside, "model.onnx.data", "3", Some("432"));
    folder.write("model.onnx.data", [&[1, 2, 3], &bytes[..], &[4]].concat());
    let encoder = folder.read(&outside, &EncoderSettings::default()).expect("an encoder");
    let vector = |encoder: &Encoder| encoder.vector(&picture(3, PICTURE)).expect("a vector");
    assert_eq!(vector(&encoder), vector(&own));
    // Other weights are another encoder, though the model's file is the same.
    folder.write("model.onnx.data", [&[1, 2, 3, 0x40], &bytes[1..], &[4]].concat());
    let other = folder.read(&outside, &EncoderSettings::default()).expect("an encoder");
    assert_ne!(other.digest(), encoder.digest());

    let outer = Folder::new();
    outer.write("secret", &bytes);
    let secret = outer.0.path().join("secret");
    folder.write("model.short", &bytes[1..]);
    folder.write("party.key", &bytes);
    let fails = |location: &str, offset: &str, length: Option<&str>, words: &str| {
        let mut hostile = means(pictures(), 13);
        external(&mut hostile, location, offset, length);
        folder.refused(&hostile, &EncoderSettings::default(), &[words]);
    };
    for location in ["../secret", "..", "", "./short", "a\\short", secret.to_str().expect("a path")] {
        fails(location, "0", Some("432"), "expected a plain file name");
    }
    fails("model.missing", "0", Some("432"), "cannot read");
    let words = "expected external weights in a file whose name begins with \"model\"";
    fails("party.key", "0", Some("432"), words);
    for length in [Some("432"), None] {
        let words = "expected at least 0 + 432 bytes of external weights in model.short, found 431";
        fails("model.short", "0", length, words);
    }
    for (offset, length, words) in [
        ("5", Some("432"), "expected at least 5 + 432 bytes"),
        ("18446744073709551615", None, "expected at least 18446744073709551615 + 432 bytes"),
        ("-1", None, "expected a number of bytes as offset"),
        ("0", Some("1e3"), "expected a number of bytes as length"),
        ("0", Some("433"), "expected 432 bytes of the external weights weights, found 433"),
    ] {
        fails("model.onnx.data", offset, length, words);
    }
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(&secret, folder.0.path().join("model.link")).expect("a link");
        fails("model.link", "0", None, "is a link to another directory: copy");
    }
    // Sizes are limited before memory is taken.
    let mut large = means(pictures(), 13);
    external(&mut large, "model.onnx.data", "0", None);
    large.graph.as_mut().expect("a graph").initializer[0].dims = vec![1 << 20, 1 << 20];
    folder.refused(&large, &EncoderSettings::default(), &["expected at most 1073741824 bytes"]);
    large.graph.as_mut().expect("a graph").initializer[0].dims = vec![i64::MAX, i64::MAX];
    folder.refused(&large, &EncoderSettings::default(), &["expected a type and a shape"]);
}

#[test]
fn the_preparation_beside_the_model_is_read() {
    let mut open = means(pictures(), 13);
    open_axes(&mut open, &[2, 3]);
    let prepared = |config: &str| {
        let folder = Folder::new();
        folder.write("preprocessor_config.json", config);
        let encoder = folder.read(&open, &EncoderSettings::default());
        encoder.map(|encoder| encoder.preparation().clone()).map_err(|error| error.to_string())
    };
    let [mean, deviation] = [[0.485, 0.456, 0.406_f32], [0.229, 0.224, 0.225]];
    let expected = |size: [usize; 2]| EncoderPreparation {
        size,
        mean: mean.into(),
        deviation: deviation.into(),
        pool: None,
        mirror: false,
    };
    let lists = r#""image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]"#;
    for (rest, size) in [
        (r#""size": {"height": 9, "width": 10}, "do_rescale": true, "rescale_factor": 0.00392156862745098"#, [9, 10]),
        (r#""size": {"shortest_edge": 12}, "do_normalize": true"#, [12, 12]),
        (r#""size": 16, "crop_size": null"#, [16, 16]),
        (r#""size": {"shortest_edge": 20}, "crop_size": {"height": 16, "width": 18}"#, [16, 18]),
        (r#""size": {"shortest_edge": 20}, "crop_size": 16, "do_center_crop": false"#, [20, 20]),
    ] {
        let found = prepared(&format!("{{{lists}, {rest}}}"));
        assert_eq!(found, Ok(expected(size)), "{rest}");
    }
    let plain = prepared(r#"{"size": 8, "do_normalize": false}"#).expect("a preparation");
    assert_eq!((plain.mean, plain.deviation), (vec![0.0; 3], vec![1.0; 3]));
    let bytes = prepared(r#"{"size": 8, "do_rescale": false, "image_mean": 127.5, "image_std": [127.5]}"#);
    let bytes = bytes.expect("a preparation");
    assert_eq!((bytes.mean, bytes.deviation), (vec![0.5; 3], vec![0.5; 3]));

    for (config, words) in [
        ("[]".to_owned(), "expected an object in preprocessor_config.json"),
        ("{".to_owned(), "expected JSON"),
        (format!(r#"{{{lists}, "size": {{"longest_edge": 9}}}}"#), "expected size of a number"),
        (format!(r#"{{{lists}, "size": -9}}"#), "expected size of a number"),
        (format!(r#"{{{lists}, "size": 100000}}"#), "expected pictures of 8 to 1024 pixels"),
        (format!(r#"{{{lists}, "size": 8, "do_rescale": "yes"}}"#), "expected do_rescale of true or false"),
        (format!(r#"{{{lists}, "size": 8, "rescale_factor": 1e300}}"#), "expected rescale_factor of finite numbers"),
        (format!(r#"{{{lists}, "size": 8, "rescale_factor": 0}}"#), "expected means of at most"),
        (format!(r#"{{{lists}, "size": 8, "do_flip_channel_order": true}}"#), "found do_flip_channel_order"),
        (r#"{"size": 8, "image_mean": [0.5, 0.5], "image_std": [1, 1]}"#.to_owned(), "expected image_mean of one"),
        (r#"{"size": 8, "image_mean": ["a"], "image_std": [1]}"#.to_owned(), "expected image_mean of finite numbers"),
        (r#"{"size": 8, "image_mean": [0.5], "image_std": [0]}"#.to_owned(), "deviations of 0.0001 to 10000"),
        (r#"{"size": 8, "image_std": [1]}"#.to_owned(), "expected image_mean beside do_normalize"),
        (format!("{{{lists}}}"), "give the encoder's size"),
    ] {
        let text = prepared(&config).expect_err("refused");
        assert!(text.contains(words), "{config}: {text}");
    }
    for (mean, deviation) in [(vec![0.5], vec![]), (vec![f32::NAN], vec![1.0]), (vec![0.0; 3], vec![1.0, -1.0, 1.0])] {
        let settings = EncoderSettings { mean, deviation, ..EncoderSettings::default() };
        Folder::new().refused(&means(pictures(), 13), &settings, &["deviation"]);
    }
}

#[test]
fn damaged_encoders_are_errors_and_not_panics() {
    let folder = Folder::new();
    let path = folder.0.path().join("model.onnx");
    let valid = means(pictures(), 13).encode_to_vec();
    for length in (0..valid.len()).step_by(7) {
        folder.write("model.onnx", &valid[..length]);
        assert!(Encoder::read(&path, &EncoderSettings::default()).is_err(), "{length}");
    }
    for place in (0..valid.len()).step_by(3) {
        let mut changed = valid.clone();
        changed[place] ^= 0x11;
        folder.write("model.onnx", &changed);
        // A change of a weight or of a name may be valid.
        if let Ok(encoder) = Encoder::read(&path, &EncoderSettings::default()) {
            let _ = encoder.vector(&picture(1, encoder.shape()));
        }
    }
}

/// A classifier of vectors: the differences of neighbouring values, after a normalisation.
#[derive(Module, Debug)]
struct Differences {
    #[module(skip)]
    width: usize,
}

impl Classifier for Differences {
    const OFFSET: f32 = -128.0 / 255.0;

    fn logits(&self, images: Tensor<4>) -> Tensor<2> {
        let rows: Tensor<2> = images.flatten(1, 3);
        let rows = rows.clone() / rows.square().sum_dim(1).sqrt();
        rows.clone().narrow(1, 1, self.width - 1) - rows.narrow(1, 0, self.width - 1)
    }
}

#[test]
fn exports_contain_the_encoder_and_its_preparation() {
    let settings = |pool, mirror| {
        let (mean, deviation) = (vec![0.485, 0.456, 0.406], vec![0.229, 0.224, 0.225]);
        EncoderSettings { mean, deviation, pool, mirror, ..EncoderSettings::default() }
    };
    let one = single("images", DataType::Float, &[3, 8, 8]);
    for (model, pool, mirror) in [
        (means(pictures(), 13), None, false),
        (means(pictures(), 18), None, true),
        (means(one, 21), None, true),
        (tokens(pictures(), 17), Some(TokenPool::Mean), false),
        (tokens(pictures(), 18), Some(TokenPool::Mean), true),
        (tokens(pictures(), 19), Some(TokenPool::First), true),
    ] {
        let encoder = Folder::new().read(&model, &settings(pool, mirror)).expect("an encoder");
        let network = Differences { width: encoder.width() };
        let shape = encoder.vectors_shape();
        for pixels in [PixelType::Uint8, PixelType::Float] {
            let export =
                Export { network: &network, shape, encoder: Some(&encoder), pixels, version: "0", metadata: &[] };
            let bytes = export.to_bytes().expect("a model");
            let difference = largest_difference(&export, &bytes, 3).expect("a difference");
            assert!(difference < 1e-4, "{pool:?}: {difference}");
            let logits = Runtime::new(&bytes).expect("a model").logits(&picture(1, PICTURE), PICTURE, pixels);
            assert_eq!(logits.expect("logits").len(), 3);

            // Another preparation is found.
            for other in [EncoderSettings { pool, mirror, ..EncoderSettings::default() }, settings(pool, !mirror)] {
                let other = Folder::new().read(&model, &other).expect("an encoder");
                let other = Export { encoder: Some(&other), ..export };
                assert!(largest_difference(&other, &bytes, 3).expect("a difference") > 1e-2);
            }
        }
    }
}

#[test]
fn encoders_that_do_not_fit_an_export_are_refused() {
    let network = Differences { width: 4 };
    let refused = |operator_set, width| {
        let encoder = Folder::new().read(&means(pictures(), operator_set), &EncoderSettings::default());
        let encoder = encoder.expect("an encoder");
        let shape = ImageShape { width, ..encoder.vectors_shape() };
        let pixels = PixelType::Uint8;
        let export = Export { network: &network, shape, encoder: Some(&encoder), pixels, version: "0", metadata: &[] };
        export.to_bytes().expect_err("refused").to_string()
    };
    for operator_set in [12, 22] {
        let text = refused(operator_set, 4);
        assert!(text.contains(&format!("operator set 13 to 21, found {operator_set}: export")), "{text}");
    }
    let text = refused(13, 5);
    assert!(text.contains("expected a network that reads the encoder's vectors 1x1x4, found 1x1x5"), "{text}");
}
