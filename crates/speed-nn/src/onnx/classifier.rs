//! ONNX models of other programs that classify images, in tract. Their files are untrusted.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Once};

use prost::Message;
use speed_data::ImageShape;
use tract_onnx::pb::tensor_proto::{DataLocation, DataType};
use tract_onnx::pb::tensor_shape_proto::{Dimension, dimension::Value};
use tract_onnx::pb::type_proto::Value::TensorType;
use tract_onnx::pb::{GraphProto, ModelProto, TensorProto, ValueInfoProto};
use tract_onnx::prelude::{
    Datum, DatumType, Framework, InferenceFact, InferenceModelExt, IntoRunnable, IntoTValue, Tensor, TypedModel,
    TypedRunnableModel, tvec,
};

use crate::onnx::error::{CLASSES, MAX_VALUES};
use crate::onnx::{OnnxError, PixelType};

/// Maximum length of a model's file in bytes.
pub const MAX_MODEL: u64 = 1 << 30;
/// Operations whose results are drawn at random, so two votes would differ.
const RANDOM: [&str; 6] =
    ["Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"];

/// Operations that the runtime computes otherwise than the standard says, both as written and optimised: Celu, if its alpha is not 1.
const WRONG: [&str; 1] = ["Celu"];

/// Number of pictures on which an optimised model is compared with the model as it was written.
const PICTURES: u64 = 4;
/// Largest difference of a score, as a fraction of the picture's largest score.
const TOLERANCE: f32 = 0.02;

/// A model of any program that gives a score for every class of an image. It computes one image at a time, so a score does
/// not depend on other images.
#[derive(Debug)]
pub struct Classifier {
    plan: Arc<TypedRunnableModel>,
    shape: ImageShape,
    pixels: PixelType,
    classes: usize,
    metadata: Vec<(String, String)>,
}

impl Classifier {
    /// Reads the bytes of a model: one input N x channels x height x width of uint8, or of float32 from 0 to 1, and as first
    /// output N x classes of float32. The number N is variable or 1.
    ///
    /// Sizes of computed tensors are limited before the model runs. A model of a few bytes can still fill the memory with
    /// its own constants, as tract computes them when it reads the model.
    ///
    /// # Errors
    /// If the model has another form, an operation that tract lacks, or operations that are random or have their own graphs.
    pub fn new(bytes: &[u8]) -> Result<Self, OnnxError> {
        let model = ModelProto::decode(bytes).map_err(|error| OnnxError::Format { reason: error.to_string() })?;
        let graph = model.graph.as_ref().ok_or_else(|| OnnxError::Format { reason: "no graph".to_owned() })?;
        let (shape, pixels) = input(graph)?;
        check_operations(graph)?;
        let is_external = |tensor: &&TensorProto| tensor.data_location == Some(DataLocation::External as i32);
        if let Some(tensor) = graph.initializer.iter().find(is_external) {
            return Err(OnnxError::External { tensor: tensor.name.clone() });
        }
        let (plans, classes) = guarded(|| plans(&model, shape, pixels))?;
        let metadata: Vec<_> = model.metadata_props.into_iter().map(|entry| (entry.key, entry.value)).collect();
        let [plain, optimised] = plans.map(|plan| Self { plan, shape, pixels, classes, metadata: metadata.clone() });
        optimised.expect_scores_of(&plain)?;
        Ok(optimised)
    }

    /// Compares the scores of a few pictures with those of the same model as it was written: the runtime's optimisation fuses operations, and
    /// its fused form of some quantised ones computes something else.
    fn expect_scores_of(&self, plain: &Self) -> Result<(), OnnxError> {
        for picture in 0..PICTURES {
            // Any pictures that differ: the multiplier of a linear congruential generator makes grey levels of all sizes.
            let level = |pixel: u64| ((picture * 7919 + pixel).wrapping_mul(0x5851_f42d_4c95_7f2d) >> 33) as u8;
            let image: Vec<u8> = (0..self.shape.pixels() as u64).map(level).collect();
            // A model may be undefined on such pictures.
            let Ok(expected) = plain.scores(&image) else { continue };
            let found = self.scores(&image)?;
            let largest = expected.iter().fold(0.0_f32, |largest, score| largest.max(score.abs()));
            let differs = |(found, expected): (&f32, &f32)| (found - expected).abs() > TOLERANCE * largest;
            if found.iter().zip(&expected).any(differs) {
                return Err(OnnxError::Optimised { expected, found });
            }
        }
        Ok(())
    }

    /// Returns the shape of its images.
    #[must_use]
    pub fn shape(&self) -> ImageShape {
        self.shape
    }

    /// Returns its number of classes.
    #[must_use]
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// Returns an entry of its metadata.
    #[must_use]
    pub fn metadata(&self, key: &str) -> Option<&str> {
        self.metadata.iter().find(|(found, _)| found == key).map(|(_, value)| value.as_str())
    }

    /// Returns the score of every class of an image, whose bytes are ordered channel, row, column.
    ///
    /// # Errors
    /// If the model fails, or a score is not finite.
    pub fn scores(&self, image: &[u8]) -> Result<Vec<f32>, OnnxError> {
        let ImageShape { channels, height, width } = self.shape;
        let axes = [1, channels, height, width];
        let scores = guarded(|| {
            let image = match self.pixels {
                PixelType::Uint8 => Tensor::from_shape(&axes, image),
                PixelType::Float => {
                    let reals: Vec<f32> = image.iter().map(|&byte| f32::from(byte) / 255.0).collect();
                    Tensor::from_shape(&axes, &reals)
                }
            };
            let outputs = image.and_then(|image| self.plan.run(tvec!(image.into_tvalue()))).map_err(refused)?;
            let scores = outputs.first().ok_or_else(|| output_fault("no output"))?;
            if *scores.shape() != [1, self.classes] {
                return Err(output_fault(&format!("{:?} for one image", scores.shape())));
            }
            let scores = scores.try_as_plain_ram().and_then(|plain| plain.as_slice::<f32>().map(<[f32]>::to_vec));
            scores.map_err(refused)
        })?;
        match scores.iter().find(|score| !score.is_finite()) {
            Some(&found) => Err(OnnxError::Score { found }),
            None => Ok(scores),
        }
    }
}

thread_local! {
    /// Whether this thread runs work of tract.
    static IN_TRACT: Cell<bool> = const { Cell::new(false) };
}

/// Runs work of tract. tract expects valid models in some places, and panics if an untrusted one is not. Such a panic ends
/// here, as an error with its message, and is not printed. Its values are not used again, so no broken state remains.
fn guarded<T>(work: impl FnOnce() -> Result<T, OnnxError>) -> Result<T, OnnxError> {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let print = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !IN_TRACT.get() {
                print(info);
            }
        }));
    });
    IN_TRACT.set(true);
    let done = panic::catch_unwind(AssertUnwindSafe(work));
    IN_TRACT.set(false);
    done.unwrap_or_else(|payload| {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let reason = text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or_default().to_owned();
        Err(OnnxError::Stopped { reason })
    })
}

fn refused(error: impl std::fmt::Display) -> OnnxError {
    OnnxError::Runtime { reason: format!("{error:#}") }
}

fn output_fault(found: &str) -> OnnxError {
    OnnxError::Output { found: found.to_owned() }
}

/// Returns the shape of the images and the type of their pixels.
fn input(graph: &GraphProto) -> Result<(ImageShape, PixelType), OnnxError> {
    let fault = |found: String| OnnxError::Input { found };
    // Older files list the weights as inputs too.
    let is_weight = |input: &&ValueInfoProto| graph.initializer.iter().any(|weight| weight.name == input.name);
    let inputs: Vec<&ValueInfoProto> = graph.input.iter().filter(|input| !is_weight(input)).collect();
    let [input] = inputs[..] else { return Err(fault(format!("{} inputs", inputs.len()))) };
    let Some(TensorType(tensor)) = input.r#type.as_ref().and_then(|kind| kind.value.as_ref()) else {
        return Err(fault("an input without a type".to_owned()));
    };
    let pixels = match DataType::try_from(tensor.elem_type) {
        Ok(DataType::Uint8) => PixelType::Uint8,
        Ok(DataType::Float) => PixelType::Float,
        Ok(other) => return Err(fault(other.as_str_name().to_lowercase())),
        Err(_) => return Err(fault(format!("the type {}", tensor.elem_type))),
    };
    let axes = tensor.shape.as_ref().map_or(&[][..], |shape| &shape.dim);
    let found = || fault(if axes.is_empty() { "no shape".to_owned() } else { written(axes) });
    let length = |axis: &Dimension| match axis.value {
        Some(Value::DimValue(length)) => usize::try_from(length).ok().filter(|length| *length > 0),
        _ => None,
    };
    let [images, channels, height, width] = axes else { return Err(found()) };
    let (Some(channels @ (1 | 3)), Some(height), Some(width)) = (length(channels), length(height), length(width))
    else {
        return Err(found());
    };
    if length(images).is_some_and(|images| images > 1) {
        return Err(found());
    }
    Ok((ImageShape { channels, height, width }, pixels))
}

/// Returns axes as text; a length that is not fixed has its name, or else `?`.
fn written(axes: &[Dimension]) -> String {
    let axis = |axis: &Dimension| match &axis.value {
        Some(Value::DimValue(length)) => length.to_string(),
        Some(Value::DimParam(name)) => name.clone(),
        None => "?".to_owned(),
    };
    axes.iter().map(axis).collect::<Vec<_>>().join(" x ")
}

/// Refuses operations that the runtime lacks, random ones, and those with graphs of their own, which may never end.
fn check_operations(graph: &GraphProto) -> Result<(), OnnxError> {
    let known = tract_onnx::onnx().op_register;
    for node in &graph.node {
        let has_graph = node.attribute.iter().any(|attribute| attribute.g.is_some() || !attribute.graphs.is_empty());
        let name = node.op_type.as_str();
        if has_graph || RANDOM.contains(&name) || WRONG.contains(&name) || !known.0.contains_key(&node.op_type) {
            return Err(OnnxError::Unsupported { operation: node.op_type.clone() });
        }
    }
    Ok(())
}

/// Returns the model for one image, ready to run as it was written and optimised, and its number of classes.
fn plans(
    model: &ModelProto,
    shape: ImageShape,
    pixels: PixelType,
) -> Result<([Arc<TypedRunnableModel>; 2], usize), OnnxError> {
    // The file's own shapes may be wrong, or name a variable N.
    let onnx = tract_onnx::onnx().with_ignore_output_shapes(true).with_ignore_value_info(true);
    let kind = match pixels {
        PixelType::Uint8 => u8::datum_type(),
        PixelType::Float => f32::datum_type(),
    };
    let images = InferenceFact::dt_shape(kind, [1, shape.channels, shape.height, shape.width]);
    let model =
        onnx.model_for_proto_model(model).and_then(|model| model.with_input_fact(0, images)).map_err(refused)?;
    let model = model.into_typed().map_err(refused)?;
    check_values(&model)?;
    let classes = classes(&model)?;
    let plain = model.clone().into_runnable().map_err(refused)?;
    let optimised = model.into_optimized().and_then(IntoRunnable::into_runnable).map_err(refused)?;
    Ok(([plain, optimised], classes))
}

/// Refuses tensors whose size is unknown or too large.
fn check_values(model: &TypedModel) -> Result<(), OnnxError> {
    for node in model.nodes().iter().filter(|node| node.op.name() != "Const") {
        for output in &node.outputs {
            let found = format!("{:?}", output.fact.shape);
            let values = output
                .fact
                .shape
                .as_concrete()
                .map(|axes| axes.iter().try_fold(1_usize, |all, &axis| all.checked_mul(axis)));
            match values {
                None => return Err(OnnxError::Shape { operation: node.op.name().into_owned(), found }),
                Some(Some(values)) if values <= MAX_VALUES => {}
                Some(_) => return Err(OnnxError::Values { operation: node.op.name().into_owned(), found }),
            }
        }
    }
    Ok(())
}

/// Returns the number of classes of the first output.
fn classes(model: &TypedModel) -> Result<usize, OnnxError> {
    let fact = model.output_fact(0).map_err(|_| output_fault("no output"))?;
    let [min, max] = CLASSES;
    match fact.shape.as_concrete() {
        Some(&[1, classes]) if fact.datum_type == DatumType::F32 && (min..=max).contains(&classes) => Ok(classes),
        _ => Err(output_fault(&format!("{:?} of type {:?} for one image", fact.shape, fact.datum_type))),
    }
}

#[cfg(test)]
mod tests {
    use tract_onnx::pb::attribute_proto::AttributeType;
    use tract_onnx::pb::{AttributeProto, StringStringEntryProto};

    use super::*;
    use crate::onnx::proto::{Builder, batch, integer};

    /// Returns the bytes of a model of a graph.
    fn bytes(graph: GraphProto) -> Vec<u8> {
        let classes = StringStringEntryProto { key: "classes".into(), value: "[\"a\"]".into() };
        let model =
            ModelProto { ir_version: 7, graph: Some(graph), metadata_props: vec![classes], ..ModelProto::default() };
        model.encode_to_vec()
    }

    /// Returns a graph with these inputs, whose nodes make the output `scores` from `images`.
    fn graph(inputs: Vec<ValueInfoProto>, nodes: impl FnOnce(&mut Builder)) -> GraphProto {
        let mut builder = Builder::default();
        nodes(&mut builder);
        builder.finish("test", inputs, vec![batch("scores", DataType::Float, &[3])])
    }

    fn images(kind: DataType, axes: &[usize]) -> Vec<ValueInfoProto> {
        vec![batch("images", kind, axes)]
    }

    /// Three weighted sums of four pixels.
    fn sums(builder: &mut Builder, images: String) {
        let weights = [1.0_f32, 0.0, 2.0, 1.0, 0.0, 2.0, 1.0, 0.0, 2.0, 1.0, 1.0, 2.0];
        builder.constant("weights".into(), DataType::Float, &[4, 3], weights.map(f32::to_le_bytes).concat());
        let rows = builder.node("Flatten", vec![images], vec![integer("axis", 1)]);
        builder.named_node("MatMul", vec![rows, "weights".into()], vec![], "scores".into());
    }

    /// The graph of `sums` on grey images of 2 x 2, with an operation before it.
    fn with(operation: &str, attributes: Vec<AttributeProto>) -> GraphProto {
        graph(images(DataType::Float, &[1, 2, 2]), |builder| {
            let changed = builder.node(operation, vec!["images".into()], attributes);
            sums(builder, changed);
        })
    }

    fn refused(graph: GraphProto) -> String {
        Classifier::new(&bytes(graph)).map(|_| ()).expect_err("refused").to_string()
    }

    /// On commit b3db769 the fused form of this Softmax gave nearly the same score to every picture.
    #[test]
    fn a_quantised_softmax_gives_its_scores_or_is_refused() {
        let quantised = graph(images(DataType::Float, &[1, 2, 2]), |builder| {
            let weights = [9.0_f32, 0.0, -9.0, 0.0, 9.0, 0.0, -9.0, 0.0, 9.0, 0.0, -9.0, 0.0];
            builder.constant("weights".into(), DataType::Float, &[4, 3], weights.map(f32::to_le_bytes).concat());
            let mut scale = |name: &str, scale: f32, zero: u8| {
                builder.constant(format!("{name} scale"), DataType::Float, &[], scale.to_le_bytes().to_vec());
                builder.constant(format!("{name} zero"), DataType::Uint8, &[], vec![zero]);
                [format!("{name} scale"), format!("{name} zero")]
            };
            let (logits, shares) = (scale("logits", 0.1, 128), scale("shares", 1.0 / 255.0, 0));
            let with = |first: String, [scale, zero]: &[String; 2]| vec![first, scale.clone(), zero.clone()];
            let rows = builder.node("Flatten", vec!["images".into()], vec![integer("axis", 1)]);
            let sums = builder.node("MatMul", vec![rows, "weights".into()], vec![]);
            let rounded = builder.node("QuantizeLinear", with(sums, &logits), vec![]);
            let sums = builder.node("DequantizeLinear", with(rounded, &logits), vec![]);
            let softmax = builder.node("Softmax", vec![sums], vec![integer("axis", 1)]);
            let rounded = builder.node("QuantizeLinear", with(softmax, &shares), vec![]);
            builder.named_node("DequantizeLinear", with(rounded, &shares), vec![], "scores".into());
        });
        match Classifier::new(&bytes(quantised)) {
            Err(error) => assert!(error.to_string().contains("after its optimisation"), "{error}"),
            Ok(classifier) => {
                for (image, best) in [([255, 0, 0, 0], 0), ([0, 255, 0, 0], 1), ([0, 0, 255, 0], 2)] {
                    let scores = classifier.scores(&image).expect("scores");
                    assert!(scores[best] > 0.98, "{image:?}: {scores:?}");
                }
            }
        }
    }

    #[test]
    fn weights_in_another_file_are_refused_with_the_way_out() {
        let mut external = graph(images(DataType::Float, &[1, 2, 2]), |builder| sums(builder, "images".into()));
        external.initializer[0].data_location = Some(DataLocation::External as i32);
        let error = refused(external);
        assert!(error.contains("weights") && error.contains("external_data=False"), "{error}");
    }

    #[test]
    fn scores_of_bytes_and_of_numbers() {
        let expected = [10.0, 4.0, 20.0].map(|sum| sum / 255.0);
        let float = graph(images(DataType::Float, &[1, 2, 2]), |builder| sums(builder, "images".into()));
        let classifier = Classifier::new(&bytes(float)).expect("a model");
        assert_eq!(classifier.shape(), ImageShape { channels: 1, height: 2, width: 2 });
        assert_eq!((classifier.classes(), classifier.metadata("classes")), (3, Some("[\"a\"]")));
        let found = classifier.scores(&[1, 2, 3, 4]).expect("scores");
        assert!(found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-6), "{found:?}");

        let mut whole = graph(images(DataType::Uint8, &[1, 2, 2]), |builder| {
            let cast = builder.node("Cast", vec!["images".into()], vec![integer("to", DataType::Float as i64)]);
            sums(builder, cast);
        });
        let axis = |length| Dimension { value: Some(Value::DimValue(length)), ..Dimension::default() };
        // Models of one image at a time are common.
        let Some(TensorType(tensor)) = whole.input[0].r#type.as_mut().and_then(|kind| kind.value.as_mut()) else {
            unreachable!("a tensor")
        };
        tensor.shape.as_mut().expect("a shape").dim[0] = axis(1);
        let classifier = Classifier::new(&bytes(whole)).expect("a model");
        assert_eq!(classifier.scores(&[1, 2, 3, 4]).expect("scores"), [10.0, 4.0, 20.0]);
    }

    #[test]
    fn models_that_do_not_read_images_are_refused() {
        let with_inputs = |inputs| refused(graph(inputs, |builder| sums(builder, "images".into())));
        let two = [images(DataType::Float, &[1, 2, 2]), vec![batch("mask", DataType::Float, &[1])]].concat();
        assert!(with_inputs(two).contains("found 2 inputs"));
        assert!(with_inputs(Vec::new()).contains("found 0 inputs"));
        assert!(with_inputs(images(DataType::Float, &[2, 2, 1])).contains("found N x 2 x 2 x 1"));
        assert!(with_inputs(images(DataType::Float, &[4])).contains("found N x 4"));
        assert!(with_inputs(images(DataType::Int64, &[1, 2, 2])).contains("found int64"));
        let large = graph(images(DataType::Float, &[3, 20_000, 20_000]), |builder| {
            let greatest = builder.node("GlobalMaxPool", vec!["images".into()], vec![]);
            builder.named_node("Flatten", vec![greatest], vec![integer("axis", 1)], "scores".into());
        });
        let text = refused(large);
        assert!(text.contains("expected at most 67108864 values") && text.contains("1,3,20000,20000"), "{text}");
        let mut dynamic = images(DataType::Float, &[1, 2, 2]);
        let Some(TensorType(tensor)) = dynamic[0].r#type.as_mut().and_then(|kind| kind.value.as_mut()) else {
            unreachable!("a tensor")
        };
        tensor.shape.as_mut().expect("a shape").dim[2].value = Some(Value::DimParam("height".into()));
        assert!(with_inputs(dynamic).contains("found N x 1 x height x 2"));
    }

    #[test]
    fn operations_and_outputs_that_cannot_vote_are_refused() {
        for operation in ["Frobnicate", "RandomNormalLike"] {
            assert!(refused(with(operation, vec![])).contains(&format!("found the operation {operation}")));
        }
        let body = AttributeProto {
            name: "then_branch".into(),
            r#type: AttributeType::Graph as i32,
            g: Some(GraphProto::default()),
            ..AttributeProto::default()
        };
        assert!(refused(with("If", vec![body])).contains("found the operation If"));
        let one = graph(images(DataType::Float, &[1, 2, 2]), |builder| {
            builder.named_node("GlobalMaxPool", vec!["images".into()], vec![], "scores".into());
        });
        assert!(refused(one).contains("expected a first output of N x classes"));
        let whole = graph(images(DataType::Float, &[1, 2, 2]), |builder| {
            let rows = builder.node("Flatten", vec!["images".into()], vec![integer("axis", 1)]);
            builder.named_node("Cast", vec![rows], vec![integer("to", DataType::Int64 as i64)], "scores".into());
        });
        let text = refused(whole);
        assert!(text.contains("expected a first output of N x classes"), "{text}");
        // Black images only.
        let undefined = graph(images(DataType::Float, &[1, 2, 2]), |builder| {
            let changed = builder.node("Div", vec!["images".into(), "images".into()], vec![]);
            sums(builder, changed);
        });
        let classifier = Classifier::new(&bytes(undefined)).expect("a model");
        assert_eq!(classifier.scores(&[1, 2, 3, 4]).expect("scores"), [4.0, 1.0, 8.0]);
        assert!(classifier.scores(&[0; 4]).expect_err("not a number").to_string().contains("found NaN"));
    }

    #[test]
    fn damaged_models_are_errors_and_not_panics() {
        let valid = bytes(graph(images(DataType::Float, &[1, 2, 2]), |builder| sums(builder, "images".into())));
        // Only a file that ends between its graph and its metadata is a model, without names of classes.
        let cut: Vec<_> = (0..valid.len()).filter_map(|length| Classifier::new(&valid[..length]).ok()).collect();
        assert_eq!((cut.len(), cut[0].metadata("classes")), (1, None));
        for place in 0..valid.len() {
            let mut changed = valid.clone();
            changed[place] ^= 0x11;
            // A change of a weight or of a name may be valid.
            if let Ok(model) = Classifier::new(&changed) {
                let _ = model.scores(&vec![7; model.shape().pixels()]);
            }
        }
        // No node makes the output, which tract does not expect.
        let nowhere = GraphProto { node: Vec::new(), ..with("Relu", vec![]) };
        assert!(refused(nowhere).contains("internal error"));
    }
}
