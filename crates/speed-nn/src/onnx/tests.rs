//! Operations, and networks that ONNX cannot express.

use burn::module::Module;
use burn::tensor::{Tensor, activation};
use speed_data::ImageShape;

use super::*;
use crate::training::Classifier;

const SHAPE: ImageShape = ImageShape { channels: 3, height: 4, width: 5 };

/// A network without parameters, by the name of its operation.
#[derive(Module, Debug)]
struct Network {
    #[module(skip)]
    operation: &'static str,
}

impl Classifier for Network {
    const OFFSET: f32 = -0.25;

    fn logits(&self, images: Tensor<4>) -> Tensor<2> {
        let [count, height, width, channels] = images.dims();
        let rows = images.clone().reshape([count, height * width * channels]);
        let maps = images.clone().permute([0, 3, 1, 2]);
        match self.operation {
            "exp" => rows.exp().log(),
            "softplus" => activation::softplus(rows, 1.0),
            "softmax" => activation::softmax(rows, 1),
            "log-softmax" => activation::log_softmax(rows, 1),
            "tanh" => activation::tanh(rows.clone()) / (activation::sigmoid(rows) + 1.0).sqrt(),
            "leaky" => activation::leaky_relu(rows, 0.2).recip().clamp(-3.0, 3.0),
            "clamp" => rows.clone().clamp_min(-0.1) - rows.clamp_max(0.3).abs().neg() * 3.0,
            "powers" => rows.clone().powf_scalar(2.0) + rows.powi_scalar(3),
            // Reductions, slices and sums of maps whose axes are permuted.
            "channels" => (maps.clone().mean_dim(1) + maps.clone().max_dim(1) - maps.min_dim(1)).flatten(1, 3),
            "columns" => images.sum_dim(2).narrow(3, 1, 2).flatten(1, 3),
            "pad" => images.pad([(1, 0), (0, 2)], 0.5).permute([0, 2, 1, 3]).flatten(1, 3),
            "concatenation" => Tensor::cat(vec![images.clone(), images * 2.0], 3).flatten(1, 3),
            "comparison" => rows.clone().mask_where(rows.clone().greater_elem(0.1), rows * 2.0),
            "constants" => rows.clone() + Tensor::ones([1, height * width * channels], &rows.device()),
            // Both axes depend on the number of images.
            "product" => rows.clone().matmul(rows.transpose()),
            "cumulative" => rows.cumsum(1),
            // A sum over the images, divided by their number: a constant in the trace.
            "batch-mean" => rows.clone() + rows.sum_dim(0) / count as f64,
            "reversed" => rows.narrow(0, 1, count - 1),
            other => unreachable!("{other}"),
        }
    }
}

fn export(network: &Network) -> Export<'_> {
    Export { network, shape: SHAPE, encoder: None, pixels: PixelType::Uint8, version: "0", metadata: &[] }
}

#[test]
fn operations_compute_the_same_in_onnx() {
    for operation in [
        "exp",
        "softplus",
        "softmax",
        "log-softmax",
        "tanh",
        "leaky",
        "clamp",
        "powers",
        "channels",
        "columns",
        "pad",
        "concatenation",
        "comparison",
        "constants",
    ] {
        let network = Network { operation };
        let bytes = export(&network).to_bytes().unwrap_or_else(|error| panic!("{operation}: {error}"));
        let difference = largest_difference(&export(&network), &bytes, 7);
        let difference = difference.unwrap_or_else(|error| panic!("{operation}: {error}"));
        assert!(difference < 1e-5, "{operation}: {difference}");
    }
}

#[test]
fn networks_without_a_form_in_onnx_are_refused_by_name() {
    let refused = |operation| export(&Network { operation }).to_bytes().expect_err("refused").to_string();
    assert!(refused("cumulative").contains("CumSum"), "{}", refused("cumulative"));
    assert!(refused("product").contains("expected logits of shape N x classes"), "{}", refused("product"));
    assert!(refused("reversed").contains("Slice"), "{}", refused("reversed"));
}

#[test]
fn a_dependence_on_the_number_of_images_is_found_by_the_comparison() {
    let network = Network { operation: "batch-mean" };
    let bytes = export(&network).to_bytes().expect("a model");
    assert!(largest_difference(&export(&network), &bytes, 5).expect("a difference") > 1e-3);
}

#[test]
fn other_bytes_are_refused_by_the_runtime() {
    for bytes in [&b""[..], b"no model of any kind"] {
        assert!(matches!(Runtime::new(bytes), Err(OnnxError::Runtime { .. })), "{bytes:?}");
    }
}
