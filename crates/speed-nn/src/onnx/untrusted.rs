//! Models of other programs, whose files are untrusted: their checks, and their plans in tract.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Once};

use prost::Message;
use speed_data::ImageShape;
use tract_onnx::pb::tensor_proto::DataType;
use tract_onnx::pb::tensor_shape_proto::{Dimension, dimension::Value};
use tract_onnx::pb::type_proto::Value::TensorType;
use tract_onnx::pb::{GraphProto, ModelProto, ValueInfoProto};
use tract_onnx::prelude::{
    Datum, DatumType, Framework, InferenceFact, InferenceModelExt, IntoRunnable, IntoTValue, Tensor, TractResult,
    TypedFact, TypedModel, TypedRunnableModel, tvec,
};

use crate::onnx::{OnnxError, PixelType, convolution};

/// Maximum length of a model in bytes, with its external weights.
pub const MAX_MODEL: u64 = 1 << 30;
/// Maximum number of values of a tensor that a model computes for one image: 256 MiB.
const MAX_VALUES: usize = 1 << 26;
/// Operations whose results are drawn at random, so two votes would differ.
const RANDOM: [&str; 6] =
    ["Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"];

/// Operations that the runtime computes otherwise than the standard says, both as written and optimised: Celu, if its alpha is not 1.
const WRONG: [&str; 1] = ["Celu"];

/// Largest difference of a result between a model as it was written and its optimised form, as a fraction of the picture's
/// largest result.
const TOLERANCE: f32 = 0.02;

/// The largest number of results in an error's text.
const SHOWN: usize = 256;

/// The images that a model reads.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    pub(crate) name: String,
    pub(crate) shape: ImageShape,
    pub(crate) pixels: PixelType,
    /// Whether the number of images is variable, else it is 1.
    pub(crate) is_variable: bool,
}

/// A model for one image, ready to run. Several threads may run it at a time.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    plan: Arc<TypedRunnableModel>,
    axes: [usize; 4],
}

pub(crate) fn decoded(bytes: &[u8]) -> Result<ModelProto, OnnxError> {
    let other =
        |reason: &str| OnnxError::form("a model in ONNX's format", format!("other or truncated bytes: {reason}"));
    let model = ModelProto::decode(bytes).map_err(|error| other(&error.to_string()))?;
    if model.graph.is_some() { Ok(model) } else { Err(other("no graph")) }
}

/// Returns the input of a graph. `size` is the height and width of the images if the graph leaves them open; without it
/// they must be fixed.
pub(crate) fn input(graph: &GraphProto, size: Option<[usize; 2]>) -> Result<Input, OnnxError> {
    let expected = "one input of N x channels x height x width, uint8 or float32, with N variable or 1, 1 or 3 channels, and a fixed height \
                    and width";
    let fault = |found: String| OnnxError::form(expected, found);
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
        Some(Value::DimValue(length)) => Some(usize::try_from(length).unwrap_or(0)),
        _ => None,
    };
    let [images, channels, height, width] = axes else { return Err(found()) };
    // Tools that export models without sizes leave the number of channels open too.
    let channels = length(channels).or(size.map(|_| 3));
    let [height, width] = match (length(height), length(width), size) {
        (Some(height), Some(width), _) => [height, width],
        (height, width, Some(size)) => [height.unwrap_or(size[0]), width.unwrap_or(size[1])],
        _ => return Err(found()),
    };
    match (length(images), channels) {
        (images @ (None | Some(1)), Some(channels @ (1 | 3))) if height > 0 && width > 0 => {
            let shape = ImageShape { channels, height, width };
            Ok(Input { name: input.name.clone(), shape, pixels, is_variable: images.is_none() })
        }
        _ => Err(found()),
    }
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
pub(crate) fn check_operations(graph: &GraphProto) -> Result<(), OnnxError> {
    let known = tract_onnx::onnx().op_register;
    for node in &graph.node {
        let has_graph = node.attribute.iter().any(|attribute| attribute.g.is_some() || !attribute.graphs.is_empty());
        let name = node.op_type.as_str();
        if has_graph || RANDOM.contains(&name) || WRONG.contains(&name) || !known.0.contains_key(&node.op_type) {
            let expected = "operations of the runtime tract, without randomness, loops and branches";
            return Err(OnnxError::form(expected, format!("the operation {name}")));
        }
    }
    Ok(())
}

/// Returns a model for one image, and the first output's type and shape if there is an output.
pub(crate) fn typed(model: &ModelProto, input: &Input) -> Result<(TypedModel, Option<TypedFact>), OnnxError> {
    // The file's own shapes may be wrong, or name a variable N.
    let onnx = tract_onnx::onnx().with_ignore_output_shapes(true).with_ignore_value_info(true);
    let kind = match input.pixels {
        PixelType::Uint8 => u8::datum_type(),
        PixelType::Float => f32::datum_type(),
    };
    let images = InferenceFact::dt_shape(kind, axes(input.shape));
    let model = onnx.model_for_proto_model(model).and_then(|model| model.with_input_fact(0, images)?.into_typed());
    let model = model.map_err(OnnxError::refused)?;
    check_values(&model)?;
    let output = model.output_fact(0).ok().cloned();
    Ok((model, output))
}

fn axes(ImageShape { channels, height, width }: ImageShape) -> [usize; 4] {
    [1, channels, height, width]
}

/// Refuses tensors whose size is unknown or too large.
fn check_values(model: &TypedModel) -> Result<(), OnnxError> {
    for node in model.nodes().iter().filter(|node| node.op.name() != "Const") {
        for output in &node.outputs {
            let found = || format!("{:?} in the operation {}", output.fact.shape, node.op.name());
            let values = output
                .fact
                .shape
                .as_concrete()
                .map(|axes| axes.iter().try_fold(1_usize, |all, &axis| all.checked_mul(axis)));
            match values {
                None => return Err(OnnxError::form("shapes that depend on N only", found())),
                Some(Some(values)) if values <= MAX_VALUES => {}
                Some(_) => {
                    let expected = format!("at most {MAX_VALUES} values in each tensor for one image");
                    return Err(OnnxError::form(expected, found()));
                }
            }
        }
    }
    Ok(())
}

impl Plan {
    /// Returns the plan of a model as it was written, and of its optimised form, which has convolutions of this program.
    pub(crate) fn both(model: TypedModel, input: &Input) -> Result<[Self; 2], OnnxError> {
        let plan = |model: TractResult<TypedModel>| -> Result<Self, OnnxError> {
            let plan = model.and_then(IntoRunnable::into_runnable).map_err(OnnxError::refused)?;
            Ok(Self { plan, axes: axes(input.shape) })
        };
        let mut changed = model.clone();
        let optimised = convolution::replace(&mut changed).and_then(|()| changed.into_optimized());
        Ok([plan(Ok(model))?, plan(optimised)?])
    }

    /// Returns the shape and the values of the first output for the pixels of an image.
    pub(crate) fn run<T: Datum + Copy>(&self, pixels: &[T]) -> Result<(Vec<usize>, Vec<f32>), OnnxError> {
        guarded(|| {
            let outputs =
                Tensor::from_shape(&self.axes, pixels).and_then(|image| self.plan.run(tvec!(image.into_tvalue())));
            let outputs = outputs.map_err(OnnxError::refused)?;
            let first = outputs.first().ok_or_else(|| OnnxError::form("an output", "none"))?;
            let values = first.try_as_plain_ram().and_then(|plain| plain.as_slice::<f32>().map(<[f32]>::to_vec));
            Ok((first.shape().to_vec(), values.map_err(OnnxError::refused)?))
        })
    }
}

/// Returns a model's results for a picture.
type Results<'a> = dyn Fn(&[u8]) -> Result<Vec<f32>, OnnxError> + 'a;

/// Compares the results of an optimised model for a few pictures with those of the same model as it was written: the
/// runtime's optimisation fuses operations, and its fused form of some quantised ones computes something else. The convolutions
/// of the optimised model are this program's, and those of the other the runtime's.
/// Returns the results that are defined.
pub(crate) fn compared(
    shape: ImageShape,
    pictures: u64,
    fault: &'static str,
    results: [&Results<'_>; 2],
) -> Result<Vec<Vec<f32>>, OnnxError> {
    let [plain, optimised] = results;
    let mut all = Vec::new();
    for picture in 0..pictures {
        // Any pictures that differ: the multiplier of a linear congruential generator makes grey levels of all sizes.
        let level = |pixel: u64| ((picture * 7919 + pixel).wrapping_mul(0x5851_f42d_4c95_7f2d) >> 33) as u8;
        let image: Vec<u8> = (0..shape.pixels() as u64).map(level).collect();
        // A model may be undefined on such pictures.
        let Ok(expected) = plain(&image) else { continue };
        let found = optimised(&image)?;
        let largest = expected.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
        let differs = |(found, expected): (&f32, &f32)| (found - expected).abs() > TOLERANCE * largest;
        if found.iter().zip(&expected).any(differs) {
            // An encoder's vectors are long.
            let [expected, found] = [&expected, &found].map(|values| &values[..values.len().min(SHOWN)]);
            let reason = format!(
                "expected {expected:?}, found {found:?}; export the model without the operations that quantise its last layer"
            );
            return Err(OnnxError::Runtime { fault, reason });
        }
        all.push(found);
    }
    Ok(all)
}

/// Returns the shape of an output of 32-bit floating-point numbers.
pub(crate) fn reals(output: Option<&TypedFact>) -> Option<&[usize]> {
    output.filter(|fact| fact.datum_type == DatumType::F32).and_then(|fact| fact.shape.as_concrete())
}

/// Returns the shape and the type of an output as text.
pub(crate) fn described(output: Option<&TypedFact>) -> String {
    let describe = |fact: &TypedFact| format!("{:?} of type {:?} for one image", fact.shape, fact.datum_type);
    output.map_or_else(|| "no output".to_owned(), describe)
}

thread_local! {
    /// Whether this thread runs work of tract.
    static IN_TRACT: Cell<bool> = const { Cell::new(false) };
}

/// Runs work of tract. tract expects valid models in some places, and panics if an untrusted one is not. Such a panic ends
/// here, as an error with its message, and is not printed. Its values are not used again, so no broken state remains.
pub(crate) fn guarded<T>(work: impl FnOnce() -> Result<T, OnnxError>) -> Result<T, OnnxError> {
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
        let fault = "stopped with an internal error, so the model is damaged or tract cannot run it";
        Err(OnnxError::Runtime { fault, reason })
    })
}
