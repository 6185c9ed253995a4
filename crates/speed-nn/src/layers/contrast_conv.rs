//! A first layer that responds to contrast only: apart from its bias, it treats light on dark like dark on light.

use burn::module::{Module, Param};
use burn::tensor::Tensor;

use super::standardised;
use crate::ops::pooled_conv::{PooledWindows, pooled_conv};

/// `y = max_pool(|conv(x) + b|)` of grey images `x`, each with mean 0 and deviation 1. Rectification by the absolute
/// value: Jarrett et al., "What is the best multi-stage architecture for object recognition?" (2009).
#[derive(Module, Debug)]
pub struct ContrastConv {
    weight: Param<Tensor<2>>,
    bias: Param<Tensor<1>>,
    #[module(skip)]
    windows: PooledWindows,
}

impl ContrastConv {
    /// Returns a layer with the initial values `weight` `[kernel * kernel, outputs]` and `bias` `[outputs]`. `windows`
    /// are those of one channel.
    pub fn new(windows: PooledWindows, weight: Tensor<2>, bias: Tensor<1>) -> Self {
        Self { weight: Param::from_tensor(weight), bias: Param::from_tensor(bias), windows }
    }

    /// Maps images `[images, height, width, channels]` within 0..=1 to `[images, rows, columns, outputs]`.
    pub fn forward(&self, images: Tensor<4>) -> Tensor<4> {
        let grey = standardised(images.mean_dim(3));
        let (weight, bias) = (self.weight.val(), self.bias.val());
        let [_, outputs] = weight.dims();
        // The greatest absolute value is that of the greatest or the least value: one pass with every kernel and its
        // negative finds both.
        let weight = Tensor::cat(vec![weight.clone(), -weight], 1);
        let bias = Tensor::cat(vec![bias.clone(), -bias], 0);
        let both = pooled_conv(grey, weight, bias, self.windows);
        both.clone().narrow(3, 0, outputs).max_pair(both.narrow(3, outputs, outputs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{random, values};
    use burn::tensor::module;
    use burn::tensor::ops::{ConvOptions, MaxPoolOptions};

    #[test]
    fn it_is_the_pooled_absolute_value_and_negatives_are_alike() {
        let windows = PooledWindows::new(12, 10, 1, 3).expect("a window");
        let (weight, bias) = (random([9, 4], 1).inner(), random([4], 2).inner());
        let images = random([3, 12, 10, 3], 3).inner() * 0.1 + 0.5;
        let layer = ContrastConv::new(windows, weight.clone(), bias.clone());
        let found = layer.forward(images.clone());
        assert_eq!(found.dims(), [3, 5, 4, 4]);

        let grey = standardised(images.clone().mean_dim(3)).permute([0, 3, 1, 2]);
        let kernels = weight.clone().reshape([3, 3, 1, 4]).permute([3, 2, 0, 1]);
        let options = ConvOptions::new([1, 1], [0, 0], [1, 1], 1);
        let convolved = module::conv2d(grey, kernels, Some(bias), options).abs();
        let expected = module::max_pool2d(convolved, MaxPoolOptions::new([2, 2])).permute([0, 2, 3, 1]);
        for (found, expected) in values(found).iter().zip(values(expected)) {
            assert!((found - expected).abs() < 1e-4, "{found} {expected}");
        }

        let layer = ContrastConv::new(windows, weight, Tensor::zeros([4], &images.device()));
        let negatives = values(layer.forward(1.0 - images.clone()));
        for (found, expected) in values(layer.forward(images * 0.3 + 0.2)).iter().zip(negatives) {
            assert!((found - expected).abs() < 1e-4, "{found} {expected}");
        }
    }
}
