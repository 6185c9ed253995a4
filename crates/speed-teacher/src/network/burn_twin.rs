//! Helpers of the networks' tests: the loss in Burn, and comparisons with its values and gradients.

use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::{Device, Int, Tensor, TensorData, activation};

/// Returns the mean cross-entropy in nats, shape `[1]`.
pub(super) fn cross_entropy(logits: Tensor<2>, labels: &[u8], device: &Device) -> Tensor<1> {
    let labels: Vec<i32> = labels.iter().map(|&label| i32::from(label)).collect();
    let labels: Tensor<2, Int> = Tensor::from_data(TensorData::new(labels, [logits.dims()[0], 1]), device);
    activation::log_softmax(logits, 1).gather(1, labels).mean().neg()
}

pub(super) fn read<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_to_vec().expect("f32")
}

/// Relative to the greatest: sums of thousands of products in another order.
#[track_caller]
pub(super) fn assert_close(found: &[f32], expected: &[f32], what: &str) {
    assert_eq!(found.len(), expected.len());
    let scale = expected.iter().fold(0.0_f32, |scale, e| scale.max(e.abs()));
    assert!(scale > 0.0, "{what} is zero");
    for (f, e) in found.iter().zip(expected) {
        assert!((f - e).abs() <= 1e-4 * scale, "{what}: {f} and {e}");
    }
}

/// Compares the gradients of every parameter of a network.
pub(super) fn assert_gradients_agree(network: &impl Module, found: &GradientsParams, expected: &GradientsParams) {
    struct Visitor<'a>([&'a GradientsParams; 2]);
    impl ModuleVisitor for Visitor<'_> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            let [found, expected] = self.0.map(|g| read(g.get::<D>(param.id).expect("a gradient of every parameter")));
            assert_close(&found, &expected, &format!("gradient of parameter {}", param.id));
        }
    }
    network.visit(&mut Visitor([found, expected]));
}
