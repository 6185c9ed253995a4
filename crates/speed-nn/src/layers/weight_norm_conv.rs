//! Convolutions with normalised weights and data-dependent initialisation (Salimans and Kingma, 2016).

use burn::module::{Module, Param};
use burn::tensor::Tensor;

use super::WeightNorm;
use super::weight_norm::normalised;
use crate::ops::bias::bias_activation;
use crate::ops::conv::{Geometry, conv, conv_transposed};
use crate::ops::sums::{column_sums, row_sums};

/// The layer `y = activation(conv(x, theta scale / |theta|) + bias)` of feature maps `[images, height, width, channels]`.
/// `|theta|` is the Euclidean norm of the weights of each output.
#[derive(Module, Debug)]
pub struct WeightNormConv {
    weights: Weights,
}

/// The transposed convolution `y = activation(conv_transposed(x, theta scale / |theta|) + bias)`, which enlarges feature
/// maps. `|theta|` is the Euclidean norm of the weights of each channel of `y`.
#[derive(Module, Debug)]
pub struct WeightNormConvTransposed {
    weights: Weights,
}

/// The parameters of either layer. Each unit has a scale and a bias: a unit is an output of a convolution, or a channel of
/// the result of a transposed convolution.
#[derive(Module, Debug)]
struct Weights {
    theta: Param<Tensor<2>>,
    bias: Param<Tensor<1>>,
    scale: Param<Tensor<1>>,
    #[module(skip)]
    geometry: Geometry,
    #[module(skip)]
    kind: WeightNorm,
}

impl Weights {
    fn new(geometry: Geometry, theta: Tensor<2>, units: usize, kind: WeightNorm) -> Self {
        let device = theta.device();
        let scale = Param::from_tensor(Tensor::ones([units], &device)).set_require_grad(kind.trained_scale);
        let bias = Param::from_tensor(Tensor::zeros([units], &device));
        Self { theta: Param::from_tensor(theta), bias, scale, geometry, kind }
    }

    /// Divides the scale `[1, units]` by the norms of the units' weights, given their squares `[1, units]`.
    fn factor(&self, squares: Tensor<2>) -> Tensor<2> {
        self.scale.val().unsqueeze_dim::<2>(0) / (squares + self.kind.norm_epsilon).sqrt()
    }

    fn activated(&self, products: Tensor<4>) -> Tensor<4> {
        bias_activation(products, self.bias.val(), self.kind.activation)
    }

    /// Sets scale and bias so that `products`, the results with the current `theta`, get mean 0 and the standard deviation
    /// of the layer's kind. `squares` are the squared norms of the units' weights.
    fn normalized(self, products: Tensor<4>, squares: Tensor<2>) -> Self {
        let units = squares.dims()[1];
        let count = products.shape().num_elements() / units;
        let lengths = (squares + self.kind.norm_epsilon).sqrt();
        let parameters = [self.scale, self.bias];
        let [scale, bias] = normalised(parameters, products.reshape([count, units]), lengths, self.kind.deviation);
        Self { scale, bias, ..self }
    }
}

impl WeightNormConv {
    /// Returns a layer with weights `theta` `[kernel * kernel * channels, outputs]`, scale 1 and bias 0.
    pub fn new(geometry: Geometry, theta: Tensor<2>, kind: WeightNorm) -> Self {
        let outputs = theta.dims()[1];
        Self { weights: Weights::new(geometry, theta, outputs, kind) }
    }

    /// Maps `[images, height, width, channels]` to `[images, rows, columns, outputs]`.
    pub fn forward(&self, maps: Tensor<4>) -> Tensor<4> {
        let theta = self.weights.theta.val();
        let factor = self.weights.factor(column_sums(theta.clone().square()));
        self.weights.activated(conv(maps, theta * factor, self.weights.geometry))
    }

    /// Sets scale and bias so that over `maps` every output before the activation has mean 0 and the requested
    /// deviation. A constant output only gets mean 0.
    #[must_use]
    pub fn normalized_on(self, maps: Tensor<4>) -> Self {
        let theta = self.weights.theta.val().inner();
        let products = conv(maps, theta.clone(), self.weights.geometry);
        Self { weights: self.weights.normalized(products, column_sums(theta.square())) }
    }
}

impl WeightNormConvTransposed {
    /// Returns a layer with weights `theta` `[kernel * kernel * channels, inputs]` for maps of `channels` channels,
    /// scale 1 and bias 0.
    pub fn new(geometry: Geometry, theta: Tensor<2>, kind: WeightNorm) -> Self {
        Self { weights: Weights::new(geometry, theta, geometry.map()[2], kind) }
    }

    /// Maps `[images, rows, columns, inputs]` to `[images, height, width, channels]`.
    pub fn forward(&self, results: Tensor<4>) -> Tensor<4> {
        let (theta, [kernels, channels, inputs]) = (self.weights.theta.val(), self.sizes());
        let factor = self.weights.factor(self.squares(theta.clone()));
        let theta = theta.reshape([kernels, channels, inputs]) * factor.reshape([1, channels, 1]);
        let theta = theta.reshape([kernels * channels, inputs]);
        self.weights.activated(conv_transposed(results, theta, self.weights.geometry))
    }

    /// Sets scale and bias so that over `results` every channel before the activation has mean 0 and the requested
    /// deviation. A constant channel only gets mean 0.
    #[must_use]
    pub fn normalized_on(self, results: Tensor<4>) -> Self {
        let theta = self.weights.theta.val().inner();
        let products = conv_transposed(results, theta.clone(), self.weights.geometry);
        let squares = self.squares(theta);
        Self { weights: self.weights.normalized(products, squares) }
    }

    /// Returns the number of kernel positions, of channels of the maps, and of inputs.
    fn sizes(&self) -> [usize; 3] {
        let (channels, inputs) = (self.weights.geometry.map()[2], self.weights.theta.val().dims()[1]);
        [self.weights.geometry.patch_len() / channels, channels, inputs]
    }

    /// Returns the sums of squares `[1, channels]` of weights.
    fn squares(&self, theta: Tensor<2>) -> Tensor<2> {
        let [kernels, channels, _] = self.sizes();
        column_sums(row_sums(theta.square()).reshape([kernels, channels]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::activation::Activation;
    use crate::test_support::{random, values};

    const KIND: WeightNorm =
        WeightNorm { activation: Activation::Linear, trained_scale: true, norm_epsilon: 0.0, deviation: 0.1 };

    /// Checks that every channel of `[.., channels]` has mean 0 and deviation 0.1.
    #[track_caller]
    fn check(found: &[f32], channels: usize) {
        for channel in 0..channels {
            let values: Vec<f64> = found.iter().skip(channel).step_by(channels).map(|&y| f64::from(y)).collect();
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            let variance = values.iter().map(|y| (y - mean).powi(2)).sum::<f64>() / values.len() as f64;
            assert!(mean.abs() < 1e-5 && (variance - 0.01).abs() < 1e-5, "channel {channel}: {mean} {variance}");
        }
    }

    #[test]
    fn initialisation_on_data_gives_mean_and_deviation_both_ways() {
        let geometry = Geometry::same([7, 6, 3], 5, 2).expect("a map");
        let [rows, columns] = geometry.results();
        let theta = random([geometry.patch_len(), 4], 1);
        let maps = random([9, 7, 6, 3], 2).inner();
        let layer = WeightNormConv::new(geometry, theta.clone(), KIND).normalized_on(maps.clone());
        let found = layer.valid().forward(maps);
        assert_eq!(found.dims(), [9, rows, columns, 4]);
        check(&values(found), 4);

        let results = random([9, rows, columns, 4], 3).inner();
        let layer = WeightNormConvTransposed::new(geometry, theta, KIND).normalized_on(results.clone());
        let found = layer.valid().forward(results);
        assert_eq!(found.dims(), [9, 7, 6, 3]);
        check(&values(found), 3);
    }
}
