//! Files of models: the same bytes for equal models, and refusals of everything else.

use burn::module::Module;
use burn::tensor::Tensor;
use speed_core::random::{Stream, Streams};
use speed_data::digits::{DigitsConfig, generate};
use speed_nn::layers::Dense;
use speed_nn::matrix::Arithmetic;
use speed_nn::onnx::EncoderPreparation;
use speed_nn::ops::activation::Activation;
use speed_nn::training::Classifier;
use speed_student::StudentMethod;
use speed_student::pseudo_labels::Views;
use speed_teacher::{Architecture, TeacherNetwork};

use super::*;
use crate::config::{Config, Source};
use crate::report::EncoderFacts;

fn config(more: &str) -> Config {
    Config::load(&Source::new("test", format!("[student]\nmethod = \"gan\"\n{more}"))).expect("a config")
}

/// Returns a model of untrained weights of a student of images with this shape.
fn model_of(method: StudentMethod, [channels, height, width]: [usize; 3], classes: usize) -> Model {
    let (config, device) = (config(""), Device::flex());
    let network = Network::Student { method, version: method.version(), config: Box::new(config.student.clone()) };
    let shape = ImageShape { channels, height, width };
    let classes = (0..classes).map(|class| class.to_string()).collect();
    let origin = Origin::of_run(&config, "0123456789ab");
    let description = Description::of_run(&config, network, (shape, None), classes, origin);
    let network = description.network(usize::MAX, &device).expect("a network");
    Model::new(description, network, device).unwrap_or_else(|fault| panic!("{method:?}: {fault}"))
}

fn model(method: StudentMethod) -> Model {
    model_of(method, [1, 28, 28], 10)
}

fn refused(bytes: &[u8]) -> String {
    Model::from_bytes(bytes).expect_err("refused").to_string()
}

/// Returns the bytes of the model with another description and a correct checksum.
fn with_description(model: &Model, change: impl FnOnce(&mut Description)) -> Vec<u8> {
    let mut description = model.description.clone();
    change(&mut description);
    file::described_to_bytes(&description, &model.network.tensors().expect("tensors")).expect("bytes")
}

#[test]
fn models_of_every_method_return_from_their_bytes() {
    for method in [StudentMethod::GAN, StudentMethod::PSEUDO_LABELS, StudentMethod::CONV_GAN] {
        let model = model(method);
        let bytes = model.to_bytes().expect("bytes");
        assert_eq!(bytes, model.to_bytes().expect("bytes"), "the same bytes");
        let loaded = Model::from_bytes(&bytes).unwrap_or_else(|error| panic!("{method:?}: {error}"));
        assert_eq!(loaded.description(), model.description());
        assert_eq!(loaded.network.to_record().expect("a record"), model.network.to_record().expect("a record"));
        assert_eq!(loaded.to_bytes().expect("bytes"), bytes);
    }
}

#[test]
fn truncated_and_changed_files_are_refused() {
    let bytes = model(StudentMethod::PSEUDO_LABELS).to_bytes().expect("bytes");
    for end in [0, 5, 8, 100, bytes.len() / 2, bytes.len() - 1] {
        refused(&bytes[..end]);
    }
    refused(&[&bytes[..], &[0]].concat());
    let header = 8 + u64::from_le_bytes(*bytes.first_chunk().expect("a header")) as usize;
    for place in (0..header).step_by(7).chain((header..bytes.len()).step_by(9973)) {
        let mut changed = bytes.clone();
        changed[place] ^= 1;
        // A byte of the padding or of white space may change without effect.
        if let Ok(loaded) = Model::from_bytes(&changed) {
            assert_eq!(loaded.to_bytes().expect("bytes"), bytes, "byte {place}");
        }
    }
    let mut changed = bytes.clone();
    *changed.last_mut().expect("a byte") ^= 1;
    assert!(refused(&changed).contains("checksum"));
}

#[test]
fn foreign_files_are_refused_by_name() {
    assert!(refused(b"no model at all").contains("expected a model of speed"));
    assert!(refused(&[&8_u64.to_le_bytes()[..], b"{}      "].concat()).contains("without its description"));
    let long = [&(1_u64 << 40).to_le_bytes()[..], &vec![b' '; 2 << 20]].concat();
    assert!(refused(&long).contains("header of at most"));
    let model = model(StudentMethod::PSEUDO_LABELS);
    assert!(
        refused(&with_description(&model, |description| description.format = 1))
            .contains("expected model format 3, found 1")
    );
    assert!(refused(&with_description(&model, |description| description.shape[0] = 2)).contains("1 or 3 channels"));
    assert!(refused(&with_description(&model, |description| description.classes.clear())).contains("1 to 256 classes"));
    let version = with_description(&model, |description| {
        if let Network::Student { version, .. } = &mut description.network {
            *version += 1;
        }
    });
    assert!(refused(&version).contains("version"));
    let classes = with_description(&model, |description| description.classes.push("another".into()));
    assert!(refused(&classes).contains("tensors do not fit"), "{}", refused(&classes));
}

#[test]
fn a_description_of_a_larger_network_than_the_tensors_is_refused_before_it_is_built() {
    let model = model(StudentMethod::PSEUDO_LABELS);
    let large = with_description(&model, |description| {
        if let Network::Student { config, .. } = &mut description.network {
            config.pseudo_labels.views = Views::PhotographedDigits;
        }
    });
    assert!(refused(&large).contains("parameters of the network, found"), "{}", refused(&large));
    let large = with_description(&model, |description| {
        if let Network::Student { method, .. } = &mut description.network {
            *method = StudentMethod::GAN;
        }
    });
    assert!(Model::from_bytes(&large).is_err());
}

/// A network of a program, which needs much memory with few weights: the mean of many copies of an image.
#[derive(Module, Debug)]
struct Wide {
    output: Dense,
}

const COPIES: usize = 1024;

impl Classifier for Wide {
    fn logits(&self, images: Tensor<4>) -> Tensor<2> {
        self.output.forward(images.flatten::<2>(1, 3).repeat_dim(1, COPIES).mean_dim(1))
    }
}

impl TeacherNetwork for Wide {
    fn new(_: ImageShape, classes: usize, _: &mut Stream, device: &Device) -> Self {
        let (weight, bias) = (Tensor::zeros([1, classes], device), Tensor::zeros([classes], device));
        Self { output: Dense::new(weight, bias, Activation::Linear) }
    }

    fn least_parameters(_: ImageShape, classes: usize) -> usize {
        classes
    }
}

#[test]
fn a_small_file_of_a_network_that_needs_much_memory_is_refused() {
    let architecture = Architecture::register::<Wide>("wide").expect("a new name");
    let config = config("[teacher]\narchitecture = \"wide\"\n[votes]\nsource = \"truth\"");
    let network = Network::Teacher { version: architecture.version(), config: config.teacher.clone() };
    let shape = ImageShape { channels: 3, height: 256, width: 256 };
    let names = (0..2).map(|class| class.to_string()).collect();
    let description = Description::of_run(&config, network, (shape, None), names, Origin::of_command(1));
    let network = description.network(usize::MAX, &Device::flex()).expect("a network");
    let bytes = file::described_to_bytes(&description, &network.tensors().expect("tensors")).expect("bytes");
    assert!(bytes.len() < 2_000_000, "{} bytes", bytes.len());
    let values = COPIES * shape.pixels();
    assert!(refused(&bytes).contains(&format!("found {values}")), "{}", refused(&bytes));
    assert!(to_bytes(&description, network.as_ref(), None).is_err(), "no one could read it again");
}

#[test]
fn models_of_the_largest_images_are_small_enough() {
    for method in [StudentMethod::PSEUDO_LABELS, StudentMethod::CONV_GAN] {
        let model = model_of(method, [3, 256, 256], 2);
        assert!(model.activations.tensor >= 256 * 256, "{:?}", model.activations);
    }
}

#[test]
fn descriptions_of_impossible_encoders_are_refused() {
    let model = model(StudentMethod::PSEUDO_LABELS);
    let with_encoder = |change: &dyn Fn(&mut ModelEncoder, &mut [usize; 3])| {
        let preparation = EncoderPreparation {
            size: [32, 32],
            mean: vec![0.5; 3],
            deviation: vec![0.25; 3],
            pool: None,
            mirror: false,
        };
        let facts = EncoderFacts { file: "a.onnx".into(), digest: "0f".repeat(32), width: 384, preparation };
        let mut encoder = ModelEncoder { facts, pictures: [3, 32, 32] };
        let bytes = with_description(&model, |description| {
            description.shape = [1, 1, 384];
            change(&mut encoder, &mut description.shape);
            description.encoder = Some(encoder);
        });
        file::described_from_bytes(&bytes).map_or_else(|error| error.to_string(), |_| String::new())
    };
    assert_eq!(with_encoder(&|_, _| {}), "");
    type Change<'a> = &'a dyn Fn(&mut ModelEncoder, &mut [usize; 3]);
    let changes: [(Change<'_>, &str); 8] = [
        (&|_, shape| shape[2] = 383, "vectors of the encoder, 1x1x384, found images of 1x1x383"),
        (&|encoder, _| encoder.facts.digest.truncate(63), "64 hexadecimal digits"),
        (&|encoder, _| encoder.facts.digest.replace_range(0..1, "G"), "64 hexadecimal digits"),
        (&|encoder, _| encoder.facts.file.push('\u{1b}'), "control characters"),
        (&|encoder, _| encoder.facts.preparation.size = [1 << 40, 32], "8 to 1024"),
        (&|encoder, _| encoder.facts.preparation.mean.clear(), "a mean and a deviation"),
        (&|encoder, _| encoder.facts.preparation.deviation[1] = 0.0, "deviations"),
        (&|encoder, _| encoder.pictures = [3, usize::MAX, 2], "pictures of 1 or 3 channels"),
    ];
    for (change, words) in changes {
        let text = with_encoder(change);
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn names_that_could_deceive_a_reader_are_refused() {
    let model = model(StudentMethod::PSEUDO_LABELS);
    for (name, words) in
        [("", "an empty one"), ("1", "\"1\" for class"), ("a\u{1b}[2J", "control"), ("\u{202e}a", "control")]
    {
        let bytes = with_description(&model, |description| description.classes[0] = name.into());
        assert!(refused(&bytes).contains(words), "{name:?}: {}", refused(&bytes));
    }
}

#[test]
fn equal_tensors_under_another_description_have_another_checksum() {
    let model = model(StudentMethod::PSEUDO_LABELS);
    let bytes = model.to_bytes().expect("bytes");
    // White space in the description is a change too. The entry is a text in the header, so its quotes are escaped.
    let word = br#"\"simulation\":"#;
    let place = bytes.windows(word.len()).position(|window| window == word).expect("the origin in the header");
    let value = place + word.len();
    let length = u64::from_le_bytes(*bytes.first_chunk().expect("a length")) + 8;
    let changed = [&length.to_le_bytes(), &bytes[8..value], &[b' '; 8], &bytes[value..]].concat();
    assert!(refused(&changed).contains("checksum"), "{}", refused(&changed));
}

#[test]
fn predictions_do_not_depend_on_threads_and_batches() {
    let model = model(StudentMethod::PSEUDO_LABELS);
    let digits = generate(DigitsConfig { train: 10, test: 230 }, &Streams::new(3)).test;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("digits.npy");
    let header = "{'descr': '|u1', 'fortran_order': False, 'shape': (230, 1, 28, 28), }\n";
    let pixels: Vec<u8> = (0..230).flat_map(|image| digits.pixels(image).to_vec()).collect();
    let file = [b"\x93NUMPY\x01\x00", [header.len() as u8, 0].as_slice(), header.as_bytes(), &pixels].concat();
    std::fs::write(&path, file).expect("a file");
    let inputs = Inputs::find(&[path], &model.preparation()).expect("images");
    assert_eq!(inputs.len(), 230);
    let predict = |threads| {
        let threads = std::num::NonZeroUsize::new(threads).expect("threads");
        Predicting { model: &model, threads, on_batch: &|_| {} }.predict(&inputs).expect("predictions")
    };
    let predictions = predict(1);
    assert_eq!(predictions, predict(3));
    let all: Vec<usize> = (0..230).collect();
    let labels = speed_nn::training::predict(model.network.as_ref(), &digits, &all, &model.device).expect("labels");
    let found: Vec<usize> = predictions.iter().map(|prediction| prediction.class).collect();
    assert_eq!(found, labels.into_iter().map(usize::from).collect::<Vec<_>>());
    assert!(predictions[229].image.ends_with("digits.npy[229]"));
    assert_eq!(model.description().arithmetic, Arithmetic::Fastest);
}
