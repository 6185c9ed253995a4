//! The ONNX model of every network computes the network's logits, in another program's runtime.

use std::path::Path;

use burn::tensor::Device;
use prost::Message as _;
use rand::{Rng, RngExt};
use speed_core::random::{Stream, Streams};
use speed_data::ImageShape;
use speed_nn::device::values;
use speed_nn::matrix::Arithmetic;
use speed_nn::onnx::{Export, PixelType, Runtime, largest_difference};
use speed_nn::training::{AnyClassifier, NamedTensors, Pixels, greatest};
use speed_student::pseudo_labels::Views;
use speed_student::{StudentConfig, StudentMethod};
use speed_teacher::Architecture;
use tract_onnx::pb::ModelProto;

const CLASSES: usize = 7;

/// Returns the network with random parameters of the usual sizes, so that no layer is without effect.
fn randomised(network: &dyn AnyClassifier, stream: &mut Stream) -> Box<dyn AnyClassifier> {
    let mut tensors: NamedTensors = network.tensors().expect("tensors");
    for tensor in tensors.values_mut() {
        let inputs = if tensor.shape.len() > 1 { tensor.shape[0] } else { 4 };
        let limit = (6.0 / inputs as f32).sqrt();
        tensor.values.iter_mut().for_each(|value| *value = stream.random_range(-limit..limit));
    }
    network.with_tensors(tensors).expect("the network's own tensors")
}

/// Checks that no weight is behind a node that only reorders it, where tools that quantise models do not look, and that all are used.
fn check_weights(name: &str, bytes: &[u8]) {
    let graph = ModelProto::decode(bytes).expect("a model").graph.expect("a graph");
    for node in &graph.node {
        let is_weight = graph.initializer.iter().any(|weight| weight.name == node.input[0]);
        assert!(!is_weight || !matches!(&*node.op_type, "Transpose" | "Reshape"), "{name}: {}", node.name);
    }
    for weight in &graph.initializer {
        assert!(graph.node.iter().any(|node| node.input.contains(&weight.name)), "{name}: {}", weight.name);
    }
}

/// Compares the logits of a network's model with the network's, for random images.
fn check(name: &str, network: &dyn AnyClassifier, shape: ImageShape, count: usize, stream: &mut Stream) {
    let network = randomised(network, stream);
    let mut images = vec![0; count * shape.pixels()];
    stream.fill_bytes(&mut images);
    let mut batch = Pixels::with_capacity(shape, count);
    images.chunks_exact(shape.pixels()).for_each(|image| batch.push(image, network.offset()));
    let expected = values(network.logits(batch.into_tensor(&Device::flex()))).expect("logits");
    let largest = expected.iter().fold(1.0_f32, |largest, logit| largest.max(logit.abs()));

    for pixels in [PixelType::Uint8, PixelType::Float] {
        let export = Export { network: network.as_ref(), shape, encoder: None, pixels, version: "0", metadata: &[] };
        let bytes = export.to_bytes().unwrap_or_else(|error| panic!("{name} of {shape}: {error}"));
        assert_eq!(bytes, export.to_bytes().expect("bytes"), "{name}: the same bytes");
        check_weights(name, &bytes);
        let runtime = Runtime::new(&bytes).unwrap_or_else(|error| panic!("{name} of {shape}: {error}"));
        for count in [1, count] {
            let found = runtime.logits(&images[..count * shape.pixels()], shape, pixels);
            let found = found.unwrap_or_else(|error| panic!("{name} of {shape}, {count} images: {error}"));
            assert_eq!(found.len(), count * CLASSES, "{name} of {shape}");
            for (found, expected) in found.iter().zip(&expected) {
                assert!(
                    (found - expected).abs() <= 1e-4 * largest,
                    "{name} of {shape}: {found} {expected} of {largest}"
                );
            }
            let classes = |logits: &[f32]| logits.chunks_exact(CLASSES).map(greatest).collect::<Vec<u8>>();
            assert_eq!(classes(&found), classes(&expected[..found.len()]), "{name} of {shape}");
        }
        // The comparison before an export finds another network.
        assert!(largest_difference(&export, &bytes, 4).expect("a difference") <= 1e-4);
        let other = Export { network: randomised(network.as_ref(), stream).as_ref(), ..export }.to_bytes();
        assert!(largest_difference(&export, &other.expect("bytes"), 4).expect("a difference") > 1e-2);
    }
}

fn shape(channels: usize, height: usize, width: usize) -> ImageShape {
    ImageShape { channels, height, width }
}

#[test]
fn models_of_teachers_compute_their_logits() {
    let _arithmetic = Arithmetic::Portable.hold().expect("the only arithmetic in use");
    let mut stream = Streams::new(11).stream("test", 0);
    // Fewer images for the large networks.
    for (architecture, count) in [
        (Architecture::SMALL, 40),
        (Architecture::SMALL_CONTRAST, 40),
        (Architecture::REFERENCE, 5),
        (Architecture::DEEPER, 2),
    ] {
        for shape in [shape(1, 28, 28), shape(3, 19, 26)] {
            let network = architecture.classifier(shape, CLASSES, usize::MAX, &Device::flex()).expect("a network");
            check(&format!("{architecture:?}"), network.as_ref(), shape, count, &mut stream);
        }
    }
}

#[test]
fn models_of_students_compute_their_logits() {
    let _arithmetic = Arithmetic::Portable.hold().expect("the only arithmetic in use");
    let mut stream = Streams::new(12).stream("test", 0);
    let mut contrast = StudentConfig::default();
    contrast.pseudo_labels.views = Views::PhotographedDigits;
    for (method, config, count) in [
        (StudentMethod::GAN, StudentConfig::default(), 40),
        (StudentMethod::CONV_GAN, StudentConfig::default(), 3),
        (StudentMethod::PSEUDO_LABELS, StudentConfig::default(), 40),
        (StudentMethod::PSEUDO_LABELS, contrast, 40),
    ] {
        for shape in [shape(1, 28, 28), shape(3, 25, 34)] {
            let network = method.network(&config, shape, CLASSES, usize::MAX, &Device::flex()).expect("a network");
            let name = format!("{method:?}, {:?}", config.pseudo_labels.views);
            check(&name, network.as_ref(), shape, count, &mut stream);
        }
    }
}

/// The pixels of a picture, as scripts/peers/onnx/small-models computes them.
fn picture(number: usize) -> Vec<u8> {
    let pixels = 3 * 12 * 12;
    (0..pixels).map(|pixel| ((pixel * (2 * number + 3) * 7 + pixel / 12 * 11 + number * 40) % 256) as u8).collect()
}

/// Models that the runtime refuses, with words of the refusal. All others must have the scores of onnxruntime, also after an update of the runtime.
const REFUSED: [(&str, &str); 2] =
    [("celu", "Celu"), ("quantised-probabilities", "computes other scores after its optimisation")];

#[test]
fn small_models_have_the_scores_of_onnxruntime() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/models");
    let text = std::fs::read_to_string(folder.join("scores.json")).expect("scores of scripts/peers/onnx/small-models");
    let all: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let all = all["scores"].as_object().expect("models");
    assert_eq!(all.len(), 17);
    let mut wrong = Vec::new();
    for (name, expected) in all {
        let bytes = std::fs::read(folder.join(format!("{name}.onnx"))).expect("a model");
        let model = match speed_nn::onnx::Classifier::new(&bytes) {
            Ok(model) => model,
            Err(error) => {
                let is_known = REFUSED.iter().any(|(known, words)| known == name && error.to_string().contains(words));
                if !is_known {
                    wrong.push(format!("{name}: {error}"));
                }
                continue;
            }
        };
        if REFUSED.iter().any(|(known, _)| known == name) {
            wrong.push(format!("{name}: not refused"));
        }
        for (number, expected) in expected.as_array().expect("pictures").iter().enumerate() {
            let expected: Vec<f32> = serde_json::from_value(expected.clone()).expect("scores");
            let found = model.scores(&picture(number)).expect("scores");
            let largest = expected.iter().fold(0.0_f32, |largest, score| largest.max(score.abs()));
            let difference =
                found.iter().zip(&expected).map(|(found, expected)| (found - expected).abs()).fold(0.0, f32::max);
            // Quantised values that lie between two steps may be rounded to either.
            let tolerance =
                if ["integers", "quantised", "dynamic"].iter().any(|kind| name.contains(kind)) { 5e-3 } else { 1e-4 };
            if found.len() != expected.len() || difference > tolerance * largest {
                wrong.push(format!("{name}, picture {number}: {found:?}, onnxruntime {expected:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
