//! ONNX models of other programs that classify images, in tract. Their files are untrusted.

use speed_data::ImageShape;
use tract_onnx::pb::TensorProto;
use tract_onnx::pb::tensor_proto::DataLocation;

use crate::onnx::untrusted::{
    Input, Plan, check_operations, compared, decoded, described, guarded, input, reals, typed,
};
use crate::onnx::{OnnxError, PixelType};

/// The smallest and the largest number of classes of a round.
const CLASSES: [usize; 2] = [2, 256];
/// Number of pictures on which an optimised model is compared with the model as it was written.
const PICTURES: u64 = 4;

/// A model of any program that gives a score for every class of an image. It computes one image at a time, so a score does
/// not depend on other images.
#[derive(Debug)]
pub struct Classifier {
    plan: Plan,
    input: Input,
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
        let model = decoded(bytes)?;
        let graph = model.graph.as_ref().ok_or_else(|| OnnxError::form("a graph", "none"))?;
        let input = input(graph, None)?;
        check_operations(graph)?;
        let is_external = |tensor: &&TensorProto| tensor.data_location == Some(DataLocation::External as i32);
        if let Some(tensor) = graph.initializer.iter().find(is_external) {
            let expected = "the weights in the model's own file, where PyTorch since version 2.9 saves them with torch.onnx.export(..., \
                            external_data=False)";
            return Err(OnnxError::form(expected, format!("those of {} in another file", tensor.name)));
        }
        let ([plain, optimised], classes) = guarded(|| {
            let (typed, output) = typed(&model, &input)?;
            let [min, max] = CLASSES;
            let classes = match reals(output.as_ref()) {
                Some(&[1, classes]) if (min..=max).contains(&classes) => classes,
                _ => return Err(output_fault(&described(output.as_ref()))),
            };
            Ok((Plan::both(typed, &input)?, classes))
        })?;
        let metadata = model.metadata_props.into_iter().map(|entry| (entry.key, entry.value)).collect();
        let shape = input.shape;
        let classifier = |plan| Self { plan, input: input.clone(), classes, metadata: Vec::new() };
        let (plain, optimised) = (classifier(plain), Self { metadata, ..classifier(optimised) });
        let results = [&plain, &optimised].map(|classifier| |image: &[u8]| classifier.scores(image));
        let fault = "computes other scores after its optimisation";
        compared(shape, PICTURES, fault, [&results[0], &results[1]])?;
        Ok(optimised)
    }

    /// Returns the shape of its images.
    pub fn shape(&self) -> ImageShape {
        self.input.shape
    }

    /// Returns its number of classes.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// Returns an entry of its metadata.
    pub fn metadata(&self, key: &str) -> Option<&str> {
        self.metadata.iter().find(|(found, _)| found == key).map(|(_, value)| value.as_str())
    }

    /// Returns the score of every class of an image, whose bytes are ordered channel, row, column.
    ///
    /// # Errors
    /// If the model fails, or a score is not finite.
    pub fn scores(&self, image: &[u8]) -> Result<Vec<f32>, OnnxError> {
        let (shape, scores) = match self.input.pixels {
            PixelType::Uint8 => self.plan.run(image)?,
            PixelType::Float => {
                let reals: Vec<f32> = image.iter().map(|&byte| f32::from(byte) / 255.0).collect();
                self.plan.run(&reals)?
            }
        };
        if shape != [1, self.classes] {
            return Err(output_fault(&format!("{shape:?} for one image")));
        }
        match scores.iter().find(|score| !score.is_finite()) {
            Some(found) => {
                let found = format!("{found}: the model is unusable");
                Err(OnnxError::form("a finite score of every class for this image", found))
            }
            None => Ok(scores),
        }
    }
}

fn output_fault(found: &str) -> OnnxError {
    let [min, max] = CLASSES;
    OnnxError::form(format!("a first output of N x classes, float32, with {min} to {max} classes"), found)
}

#[cfg(test)]
mod tests {
    use prost::Message as _;
    use tract_onnx::pb::tensor_proto::DataType;
    use tract_onnx::pb::tensor_shape_proto::{Dimension, dimension::Value};
    use tract_onnx::pb::type_proto::Value::TensorType;
    use tract_onnx::pb::{AttributeProto, GraphProto, ModelProto, StringStringEntryProto, ValueInfoProto};

    use super::*;
    use crate::onnx::proto::{Builder, batch, integer};

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

    /// The runtime may fuse this Softmax to one that gives nearly the same score to every picture.
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
        assert!(refused(with("RandomNormalLike", vec![])).contains("found the operation RandomNormalLike"));
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
