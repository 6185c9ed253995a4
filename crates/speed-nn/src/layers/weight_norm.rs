//! A dense layer with normalised weights and data-dependent initialisation (Salimans and Kingma, 2016).

use burn::module::{Module, Param};
use burn::tensor::Tensor;

use crate::ops::activation::Activation;
use crate::ops::product::product;
use crate::ops::sums::{column_means, column_sums};
use crate::ops::weight_norm::weight_norm_dense;

/// `y = activation(x theta scale / |theta| + bias)` with the norm of every unit's weights, a column of `theta`.
#[derive(Module, Debug)]
pub struct WeightNormDense {
    theta: Param<Tensor<2>>,
    bias: Param<Tensor<1>>,
    scale: Param<Tensor<1>>,
    #[module(skip)]
    activation: Activation,
    #[module(skip)]
    norm_epsilon: f32,
    #[module(skip)]
    deviation: f32,
}

/// The options of a [`WeightNormDense`] layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WeightNorm {
    /// The activation function.
    pub activation: Activation,
    /// Whether the scale is trained.
    pub trained_scale: bool,
    /// The number added to the squared norm: Salimans' code has 1e-6 in the generator and 0 elsewhere.
    pub norm_epsilon: f32,
    /// The deviation of every unit before the activation, after the initialisation on data.
    pub deviation: f32,
}

impl WeightNormDense {
    /// Returns a layer with weights `theta` `[inputs, outputs]`, scale 1 and bias 0.
    pub fn new(theta: Tensor<2>, kind: WeightNorm) -> Self {
        let ([_, outputs], device) = (theta.dims(), theta.device());
        let WeightNorm { activation, trained_scale, norm_epsilon, deviation } = kind;
        Self {
            theta: Param::from_tensor(theta),
            scale: Param::from_tensor(Tensor::ones([outputs], &device)).set_require_grad(trained_scale),
            bias: Param::from_tensor(Tensor::zeros([outputs], &device)),
            activation,
            norm_epsilon,
            deviation,
        }
    }

    /// Maps rows `[n, inputs]` to rows `[n, outputs]`.
    pub fn forward(&self, rows: Tensor<2>) -> Tensor<2> {
        let parts = [self.scale.val(), self.bias.val()];
        weight_norm_dense(rows, self.theta.val(), parts, self.activation, self.norm_epsilon)
    }

    /// Sets scale and bias so that over `rows` `[n, inputs]` every output before the activation has mean 0 and the
    /// requested deviation. A constant unit only gets mean 0.
    #[must_use]
    pub fn normalized_on(self, rows: Tensor<2>) -> Self {
        let theta = self.theta.val().inner();
        let norm = (column_sums(theta.clone().square()) + self.norm_epsilon).sqrt();
        let [scale, bias] = normalised([self.scale, self.bias], product(rows, theta), norm, self.deviation);
        Self { scale, bias, ..self }
    }
}

/// Returns scale and bias with which units have mean 0 and this deviation, from `products` `[n, units]` of the current
/// weights and their norms `[1, units]`. A constant unit only gets mean 0.
pub(super) fn normalised(
    [scale, bias]: [Param<Tensor<1>>; 2],
    products: Tensor<2>,
    norm: Tensor<2>,
    deviation: f32,
) -> [Param<Tensor<1>>; 2] {
    let mean = column_means(products.clone());
    let variance = column_means((products - mean.clone()).square());
    // The rounding error of a constant unit is not a variance.
    let varies = variance.clone().greater(mean.clone().square() * 1e-12);
    let factor = variance.ones_like().mask_where(varies, variance.sqrt().recip()) * deviation;
    let replace = |param: Param<Tensor<1>>, value: Tensor<2>| {
        let is_trained = param.is_require_grad();
        param.map(|old| {
            let value: Tensor<1> = value.squeeze_dim(0);
            if old.device().is_autodiff() { Tensor::from_inner(value).set_require_grad(is_trained) } else { value }
        })
    };
    [replace(scale, factor.clone() * norm), replace(bias, mean.neg() * factor)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{random, values};
    use burn::tensor::Device;

    const KIND: WeightNorm =
        WeightNorm { activation: Activation::Linear, trained_scale: true, norm_epsilon: 1e-3, deviation: 1.0 };

    #[test]
    fn data_dependent_initialisation_gives_mean_0_and_variance_1() {
        let layer = WeightNormDense::new(random([6, 4], 0), KIND);
        let rows = random([500, 6], 1).inner();
        let layer = layer.normalized_on(rows.clone());
        assert_eq!(layer.num_params(), 6 * 4 + 4 + 4);
        let found = values(layer.valid().forward(rows));
        for unit in 0..4 {
            let column: Vec<f64> = found.iter().skip(unit).step_by(4).map(|&y| f64::from(y)).collect();
            let mean = column.iter().sum::<f64>() / 500.0;
            let variance = column.iter().map(|y| (y - mean).powi(2)).sum::<f64>() / 500.0;
            assert!(mean.abs() < 1e-5 && (variance - 1.0).abs() < 1e-4, "unit {unit}: {mean} {variance}");
        }
    }

    #[test]
    fn a_unit_that_does_not_vary_stays_finite() {
        let layer = WeightNormDense::new(random([6, 4], 0), KIND);
        let rows = Tensor::ones([3, 6], &Device::flex());
        let found = values(layer.normalized_on(rows.clone()).valid().forward(rows));
        assert!(found.iter().all(|y| y.abs() < 1e-5), "{found:?}");
    }
}
