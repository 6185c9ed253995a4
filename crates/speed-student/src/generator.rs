//! The generator of images.

use rand::RngExt;
use speed_nn::adam::{Adam, Moments};
use speed_nn::batch_norm::{BatchNormDense, BatchNormTrace};
use speed_nn::math::sigmoid;
use speed_nn::matrix::Matrix;
use speed_nn::weight_norm::{Activation, WeightNormDense, WeightNormGradient};
use speed_random::Stream;

use crate::StudentConfig;

/// The number that Salimans' code adds to the squared norm of the generator's output layer's weights.
pub const NORM_EPSILON: f32 = 1e-6;

/// Uniform noise within 0..1 through dense layers with batch norm and softplus, then a dense layer with normalised
/// weights and trained scale, and a logistic function: pixels within 0..=1.
#[derive(Clone, Debug, PartialEq)]
pub struct Generator {
    latent: usize,
    hidden: Vec<BatchNormDense>,
    output: WeightNormDense,
}

/// The memory of one forward and backward pass.
#[derive(Clone, Debug, Default)]
pub(crate) struct GeneratorTrace {
    /// The latent vectors and the output of each hidden layer.
    activations: Vec<Matrix>,
    hidden: Vec<BatchNormTrace>,
    products: Matrix,
    /// Generated images, one a column.
    images: Matrix,
    /// The loss's derivative by the products of the output layer.
    by_products: Matrix,
    by_input: Matrix,
    output: WeightNormGradient,
}

impl Generator {
    /// Layers of the sizes of `config` with Glorot-uniform weights.
    pub(crate) fn new(config: &StudentConfig, pixels: usize, stream: &mut Stream) -> Self {
        let mut inputs = config.latent;
        let mut weights = |outputs: usize| {
            let limit = (6.0 / (inputs + outputs) as f32).sqrt();
            let matrix = Matrix::from_fn(outputs, inputs, || limit * (2.0 * stream.random::<f32>() - 1.0));
            inputs = outputs;
            matrix
        };
        let hidden = config.generator.iter().map(|&units| BatchNormDense::new(weights(units))).collect();
        let output = WeightNormDense::new(weights(pixels), Activation::Linear, true, NORM_EPSILON);
        Self { latent: config.latent, hidden, output }
    }

    /// Generates `count` images `[pixels, count]` from latent vectors drawn from `stream`.
    pub(crate) fn forward<'t>(&self, count: usize, trace: &'t mut GeneratorTrace, stream: &mut Stream) -> &'t Matrix {
        trace.activations.resize_with(self.hidden.len() + 1, Matrix::default);
        trace.hidden.resize_with(self.hidden.len(), BatchNormTrace::default);
        trace.activations[0].resize(self.latent, count);
        draw_latent(trace.activations[0].values_mut(), stream);
        for (index, layer) in self.hidden.iter().enumerate() {
            let [input, output] = &mut trace.activations[index..index + 2] else {
                unreachable!("a range of two is two")
            };
            layer.forward(output, input.view(), &mut trace.hidden[index]);
        }
        self.output.multiply(&mut trace.products, trace.activations[self.hidden.len()].view());
        self.output.activate(&mut trace.images, &trace.products);
        trace.images.values_mut().iter_mut().for_each(|y| *y = sigmoid(*y));
        &trace.images
    }

    /// Computes what the parameters' gradient needs, for the last forward pass, from the derivative by its images.
    ///
    /// `by_images` `[pixels, count]` is used as memory and holds nothing of use afterwards.
    pub(crate) fn backward(&self, by_images: &mut Matrix, trace: &mut GeneratorTrace) {
        for (g, &y) in by_images.values_mut().iter_mut().zip(trace.images.values()) {
            *g *= y * (1.0 - y);
        }
        self.output.backward_activation(by_images, &trace.products, 0..trace.products.columns(), &mut trace.output);
        std::mem::swap(by_images, &mut trace.by_products);
        self.output.backward_input(&mut trace.by_input, trace.by_products.view());
        for (index, (layer, layer_trace)) in self.hidden.iter().zip(&mut trace.hidden).enumerate().rev() {
            layer.backward(&mut trace.by_input, layer_trace, index > 0);
        }
    }

    /// Makes one optimiser step with what the backward pass left in `trace`.
    pub(crate) fn update(&mut self, adam: &mut Adam, trace: &mut GeneratorTrace, moments: &mut GeneratorMoments) {
        let step = adam.begin_step();
        for (index, (layer, moments)) in self.hidden.iter_mut().zip(&mut moments.hidden).enumerate() {
            layer.update(step, trace.activations[index].view(), &mut trace.hidden[index], moments);
        }
        let operands = [trace.by_products.view(), trace.activations[self.hidden.len()].view()];
        self.output.update(step, operands, &mut trace.output, &mut moments.output);
    }

    /// Zero moments for [`update`](Self::update).
    pub(crate) fn moments(&self) -> GeneratorMoments {
        let hidden = self.hidden.iter().map(BatchNormDense::moments).collect();
        GeneratorMoments { hidden, output: self.output.moments() }
    }

    /// Returns all arrays, for a checkpoint.
    pub(crate) fn state(&self) -> Vec<&[f32]> {
        self.hidden.iter().flat_map(BatchNormDense::state).chain(self.output.state()).collect()
    }

    /// Reads all arrays in the order of [`state`](Self::state).
    pub(crate) fn restore<E>(&mut self, mut read: impl FnMut(&mut [f32]) -> Result<(), E>) -> Result<(), E> {
        self.hidden.iter_mut().flat_map(BatchNormDense::state_mut).try_for_each(&mut read)?;
        self.output.edit(|arrays| arrays.into_iter().try_for_each(&mut read))
    }
}

/// Fills latent vectors.
pub(crate) fn draw_latent(values: &mut [f32], stream: &mut Stream) {
    values.fill_with(|| stream.random());
}

/// Adam's moments of a [`Generator`].
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct GeneratorMoments {
    hidden: Vec<[Moments; 2]>,
    output: [Moments; 3],
}

impl GeneratorMoments {
    pub(crate) fn all(&self) -> impl Iterator<Item = &Moments> {
        self.hidden.iter().flatten().chain(&self.output)
    }

    pub(crate) fn all_mut(&mut self) -> impl Iterator<Item = &mut Moments> {
        self.hidden.iter_mut().flatten().chain(&mut self.output)
    }
}

#[cfg(test)]
impl GeneratorTrace {
    /// Returns the latent vectors of the last forward pass.
    pub(crate) fn latent(&self) -> &Matrix {
        &self.activations[0]
    }

    /// Gradients in the order of [`Generator::state`].
    pub(crate) fn gradients(&self, generator: &Generator) -> Vec<Vec<f32>> {
        let hidden = self.hidden.iter().zip(&self.activations).flat_map(|(trace, x)| trace.gradients(x.view()));
        let operands = [self.by_products.view(), self.activations[self.hidden.len()].view()];
        hidden.chain(self.output.full(&generator.output, operands)).collect()
    }
}
