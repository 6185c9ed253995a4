//! The discriminator, which is the student's classifier.

use std::ops::Range;

use rand_distr::{Distribution, StandardNormal};
use speed_nn::adam::{Adam, Moments};
use speed_nn::matrix::Matrix;
use speed_nn::noise::NormalPool;
use speed_nn::weight_norm::{Activation, WeightNormDense, WeightNormGradient};
use speed_random::Stream;

use crate::{Images, StudentConfig};

/// Deviation of the initial weights.
const WEIGHT_DEVIATION: f32 = 0.1;

/// Images classified at a time in [`Discriminator::predict`].
const PREDICT_BATCH: usize = 500;

/// Weight-normalised dense layers with ReLU, Gaussian noise before each, and a last one to the logits of the classes.
///
/// Images are columns of pixels within 0..=1.
#[derive(Clone, Debug, PartialEq)]
pub struct Discriminator {
    layers: Vec<WeightNormDense>,
    input_noise: f32,
    hidden_noise: f32,
}

/// The memory of one forward and backward pass.
#[derive(Clone, Debug, Default)]
pub(crate) struct DiscriminatorTrace {
    /// The input of each layer, its noise already added.
    inputs: Vec<Matrix>,
    /// The products of each layer.
    products: Vec<Matrix>,
    /// The loss's derivative by them.
    by_products: Vec<Matrix>,
    /// Values of the last layer that ran: logits or features.
    pub(crate) output: Matrix,
    /// The loss's derivative, written by the caller for `output`; a backward pass to the images leaves the one by them.
    pub(crate) gradient: Matrix,
    parameters: Vec<WeightNormGradient>,
}

/// The source of Gaussian noise: values, and places in them.
#[derive(Debug)]
pub(crate) struct Noise<'a> {
    pub(crate) pool: &'a NormalPool,
    pub(crate) stream: &'a mut Stream,
}

/// The last layer of a forward pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Depth {
    /// To the last hidden layer, after its ReLU and before its noise: the features that the generator matches.
    Features,
    /// To the logits.
    Logits,
}

impl Discriminator {
    /// Layers of the sizes of `config` with normal weights, scale 1 and bias 0.
    #[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
    pub(crate) fn new(config: &StudentConfig, pixels: usize, classes: usize, stream: &mut Stream) -> Self {
        let mut inputs = pixels;
        let mut layer = |outputs: usize, activation, trained_scale| {
            let weights = Matrix::from_fn(outputs, inputs, || {
                let value: f32 = StandardNormal.sample(stream);
                WEIGHT_DEVIATION * value
            });
            inputs = outputs;
            WeightNormDense::new(weights, activation, trained_scale, 0.0)
        };
        let mut layers: Vec<_> =
            config.discriminator.iter().map(|&units| layer(units, Activation::Relu, false)).collect();
        layers.push(layer(classes, Activation::Linear, true));
        Self { layers, input_noise: config.input_noise as f32, hidden_noise: config.hidden_noise as f32 }
    }

    /// Sets every scale and bias so that each unit has mean 0 and variance 1 over the images in `trace`, from the
    /// first layer to the last (Salimans and Kingma 2016, section 3).
    pub(crate) fn initialize_on(&mut self, trace: &mut DiscriminatorTrace, noise: &mut Noise<'_>) {
        trace.fit(self);
        for index in 0..self.layers.len() {
            self.multiply(index, trace, Some(noise));
            self.layers[index].normalize_on(&trace.products[index]);
            self.activate(index, trace, Depth::Logits);
        }
    }

    /// Runs the images in `trace` through the layers to `trace.output`; with `noise` as in training, without it as in
    /// use.
    pub(crate) fn forward(&self, trace: &mut DiscriminatorTrace, depth: Depth, mut noise: Option<&mut Noise<'_>>) {
        trace.fit(self);
        for index in 0..self.end(depth) {
            self.multiply(index, trace, noise.as_deref_mut());
            self.activate(index, trace, depth);
        }
    }

    /// Computes one layer's noise and matrix product.
    fn multiply(&self, index: usize, trace: &mut DiscriminatorTrace, noise: Option<&mut Noise<'_>>) {
        if let Some(Noise { pool, stream }) = noise {
            pool.add(trace.inputs[index].values_mut(), self.deviation(index), stream);
        }
        self.layers[index].multiply(&mut trace.products[index], trace.inputs[index].view());
    }

    /// Deviation of the noise before layer `index`.
    fn deviation(&self, index: usize) -> f32 {
        if index == 0 { self.input_noise } else { self.hidden_noise }
    }

    /// Returns the places from which the noise of a forward pass of `columns` images would be read, layer by layer.
    pub(crate) fn draw_noise(
        &self,
        depth: Depth,
        columns: usize,
        pool: &NormalPool,
        stream: &mut Stream,
    ) -> Vec<Vec<usize>> {
        let layers = self.layers[..self.end(depth)].iter().enumerate();
        let starts = layers.map(|(index, layer)| match self.deviation(index) {
            0.0 => Vec::new(),
            _ => pool.draw_starts(layer.inputs() * columns, stream),
        });
        starts.collect()
    }

    /// Applies one layer's norm, bias and ReLU, into the next one's input.
    fn activate(&self, index: usize, trace: &mut DiscriminatorTrace, depth: Depth) {
        let last = index + 1 == self.end(depth);
        let to = if last { &mut trace.output } else { &mut trace.inputs[index + 1] };
        self.layers[index].activate(to, &trace.products[index]);
    }

    /// Computes what the parameters' gradient needs, for all images of the last forward pass to the logits, from
    /// `trace.gradient`.
    pub(crate) fn backward(&self, trace: &mut DiscriminatorTrace) {
        for (index, layer) in self.layers.iter().enumerate().rev() {
            let (products, parameters) = (&trace.products[index], &mut trace.parameters[index]);
            layer.backward_activation(&mut trace.gradient, products, 0..products.columns(), parameters);
            std::mem::swap(&mut trace.gradient, &mut trace.by_products[index]);
            if index > 0 {
                layer.backward_input(&mut trace.gradient, trace.by_products[index].view());
            }
        }
    }

    /// Returns the derivative by the images in the columns `examples`, from `trace.gradient` by their features. The
    /// discriminator is frozen here: no gradient of its weights is computed.
    pub(crate) fn backward_to_images(&self, trace: &mut DiscriminatorTrace, examples: Range<usize>) {
        let end = self.end(Depth::Features);
        for (index, layer) in self.layers[..end].iter().enumerate().rev() {
            let (products, parameters) = (&trace.products[index], &mut trace.parameters[index]);
            layer.backward_activation(&mut trace.gradient, products, examples.clone(), parameters);
            std::mem::swap(&mut trace.gradient, &mut trace.by_products[index]);
            layer.backward_input(&mut trace.gradient, trace.by_products[index].view());
        }
    }

    /// Makes one optimiser step with what the backward pass left in `trace`.
    pub(crate) fn update(&mut self, adam: &mut Adam, trace: &mut DiscriminatorTrace, moments: &mut [[Moments; 3]]) {
        let step = adam.begin_step();
        for (index, (layer, moments)) in self.layers.iter_mut().zip(moments).enumerate() {
            let operands = [trace.by_products[index].view(), trace.inputs[index].view()];
            layer.update(step, operands, &mut trace.parameters[index], moments);
        }
    }

    /// Returns the most likely class of every image, without noise.
    ///
    /// # Panics
    /// When the images have not as many pixels as those that this discriminator was made for.
    #[must_use]
    pub fn predict(&self, images: Images<'_>) -> Vec<u8> {
        let (mut trace, mut classes) = (DiscriminatorTrace::default(), Vec::with_capacity(images.len()));
        let indices: Vec<usize> = (0..images.len()).collect();
        for part in indices.chunks(PREDICT_BATCH) {
            images.write(trace.images(images.shape().pixels(), part.len()), 0, part);
            self.forward(&mut trace, Depth::Logits, None);
            let logits = &trace.output;
            classes.extend((0..part.len()).map(|column| {
                let best = (1..logits.rows()).fold(0, |best, class| {
                    if logits.row(class)[column] > logits.row(best)[column] { class } else { best }
                });
                u8::try_from(best).expect("a split has at most 256 classes")
            }));
        }
        classes
    }

    fn end(&self, depth: Depth) -> usize {
        self.layers.len() - usize::from(depth == Depth::Features)
    }

    /// Zero moments for [`update`](Self::update).
    pub(crate) fn moments(&self) -> Vec<[Moments; 3]> {
        self.layers.iter().map(WeightNormDense::moments).collect()
    }

    /// Returns the trained parameters, for averages. Scales that are not trained stay out.
    pub(crate) fn trained(&self) -> Vec<&[f32]> {
        self.layers.iter().flat_map(WeightNormDense::trained).collect()
    }

    /// Returns the same network with other trained parameters, in the order of [`trained`](Self::trained).
    pub(crate) fn with_trained(&self, parameters: &[Vec<f32>]) -> Self {
        let mut other = self.clone();
        for (layer, parameters) in other.layers.iter_mut().zip(parameters.chunks_exact(3)) {
            layer.edit(|arrays| {
                for (array, parameters) in arrays.into_iter().zip(parameters).filter(|(_, from)| !from.is_empty()) {
                    array.copy_from_slice(parameters);
                }
            });
        }
        other
    }

    /// Returns all arrays, for a checkpoint.
    pub(crate) fn state(&self) -> Vec<&[f32]> {
        self.layers.iter().flat_map(WeightNormDense::state).collect()
    }

    /// Reads all arrays in the order of [`state`](Self::state).
    pub(crate) fn restore<E>(&mut self, mut read: impl FnMut(&mut [f32]) -> Result<(), E>) -> Result<(), E> {
        self.layers.iter_mut().try_for_each(|layer| layer.edit(|arrays| arrays.into_iter().try_for_each(&mut read)))
    }
}

impl DiscriminatorTrace {
    /// Returns the matrix to write `columns` images of `pixels` pixels to before a forward pass.
    pub(crate) fn images(&mut self, pixels: usize, columns: usize) -> &mut Matrix {
        if self.inputs.is_empty() {
            self.inputs.push(Matrix::default());
        }
        self.inputs[0].resize(pixels, columns);
        &mut self.inputs[0]
    }

    fn fit(&mut self, network: &Discriminator) {
        let layers = network.layers.len();
        self.inputs.resize_with(layers, Matrix::default);
        self.products.resize_with(layers, Matrix::default);
        self.by_products.resize_with(layers, Matrix::default);
        self.parameters.resize_with(layers, WeightNormGradient::default);
    }
}

#[cfg(test)]
impl DiscriminatorTrace {
    /// Returns the input of each layer, noise included.
    pub(crate) fn inputs(&self) -> &[Matrix] {
        &self.inputs
    }

    /// Gradients in the order of [`Discriminator::state`].
    pub(crate) fn gradients(&self, network: &Discriminator) -> Vec<Vec<f32>> {
        let operands = self.by_products.iter().zip(&self.inputs).map(|(by_products, x)| [by_products.view(), x.view()]);
        let layers = self.parameters.iter().zip(&network.layers).zip(operands);
        layers.flat_map(|((gradient, layer), operands)| gradient.full(layer, operands)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::RngExt;
    use speed_random::Streams;

    const IMAGES: usize = 40;

    fn network(input_noise: f64, hidden_noise: f64) -> Discriminator {
        let config = StudentConfig { discriminator: vec![7, 5], input_noise, hidden_noise, ..StudentConfig::default() };
        Discriminator::new(&config, 6, 3, &mut Streams::new(1).stream("weights", 0))
    }

    fn with_images(trace: &mut DiscriminatorTrace) {
        let mut stream = Streams::new(1).stream("images", 0);
        trace.images(6, IMAGES).values_mut().fill_with(|| stream.random());
    }

    fn run(network: &Discriminator, depth: Depth, noisy: bool) -> Matrix {
        let streams = Streams::new(2);
        let pool = NormalPool::new(1000, &mut streams.stream("pool", 0));
        let mut noise = Noise { pool: &pool, stream: &mut streams.stream("places", 0) };
        let mut trace = DiscriminatorTrace::default();
        with_images(&mut trace);
        network.forward(&mut trace, depth, noisy.then_some(&mut noise));
        trace.output
    }

    #[test]
    fn noise_comes_before_every_layer_and_not_after_the_features() {
        for depth in [Depth::Features, Depth::Logits] {
            let plain = run(&network(0.3, 0.5), depth, false);
            assert_eq!(run(&network(0.0, 0.0), depth, true), plain);
            assert_ne!(run(&network(0.3, 0.0), depth, true), plain);
            assert_ne!(run(&network(0.0, 0.5), depth, true), plain);
        }
        // With a single hidden layer no noise but that of the input is left before the features.
        let config = StudentConfig { discriminator: vec![7], input_noise: 0.0, ..StudentConfig::default() };
        let single = Discriminator::new(&config, 6, 3, &mut Streams::new(1).stream("weights", 0));
        assert_eq!(run(&single, Depth::Features, true), run(&single, Depth::Features, false));
        assert_ne!(run(&single, Depth::Logits, true), run(&single, Depth::Logits, false));
    }

    #[test]
    fn features_are_the_last_hidden_layer() {
        let network = network(0.0, 0.0);
        let features = run(&network, Depth::Features, false);
        assert_eq!([features.rows(), features.columns()], [5, IMAGES]);
        assert!(features.values().iter().all(|&f| f >= 0.0));
        let (mut products, mut logits) = (Matrix::default(), Matrix::default());
        network.layers[2].multiply(&mut products, features.view());
        network.layers[2].activate(&mut logits, &products);
        assert_eq!(run(&network, Depth::Logits, false), logits);
    }

    #[test]
    fn initialisation_gives_every_unit_mean_0_and_variance_1() {
        let mut network = network(0.0, 0.0);
        let pool = NormalPool::new(2, &mut Streams::new(2).stream("pool", 0));
        let mut trace = DiscriminatorTrace::default();
        with_images(&mut trace);
        let mut stream = Streams::new(2).stream("places", 0);
        network.initialize_on(&mut trace, &mut Noise { pool: &pool, stream: &mut stream });
        let logits = run(&network, Depth::Logits, false);
        for unit in 0..3 {
            let row: Vec<f64> = logits.row(unit).iter().map(|&z| f64::from(z)).collect();
            let mean = row.iter().sum::<f64>() / row.len() as f64;
            let variance = row.iter().map(|z| (z - mean).powi(2)).sum::<f64>() / row.len() as f64;
            assert!(mean.abs() < 1e-5 && (variance - 1.0).abs() < 1e-4, "{mean} {variance}");
        }
    }

    #[test]
    fn other_parameters_replace_the_trained_ones_only() {
        let network = network(0.0, 0.0);
        let doubled: Vec<Vec<f32>> =
            network.trained().iter().map(|array| array.iter().map(|p| 2.0 * p + 1.0).collect()).collect();
        let other = network.with_trained(&doubled);
        assert_eq!(other.trained(), doubled.iter().map(Vec::as_slice).collect::<Vec<_>>());
        // Scales of the hidden layers stay: arrays 2 and 5 of the state; that of the last layer is trained.
        assert_eq!((other.state()[2], other.state()[5]), (network.state()[2], network.state()[5]));
        assert_ne!(other.state()[8], network.state()[8]);
    }

    #[test]
    fn predictions_are_the_largest_logits() {
        let shape = speed_data::ImageShape { channels: 1, height: 2, width: 3 };
        let mut stream = Streams::new(3).stream("bytes", 0);
        let count = PREDICT_BATCH + 7;
        let pixels: Vec<u8> = (0..6 * count).map(|_| stream.random()).collect();
        let split = speed_data::Split::new(shape, 3, pixels, vec![0; count]).expect("a split");
        let network = network(0.3, 0.5);
        let classes = network.predict(Images::of(&split));
        assert_eq!(classes.len(), count);
        for i in [0, 1, PREDICT_BATCH - 1, PREDICT_BATCH, count - 1] {
            let mut trace = DiscriminatorTrace::default();
            Images::of(&split).write(trace.images(6, 1), 0, &[i]);
            network.forward(&mut trace, Depth::Logits, None);
            let best = trace.output.values().iter().copied().fold(f32::MIN, f32::max);
            assert_eq!(trace.output.values()[usize::from(classes[i])], best);
        }
        assert!((0..3).all(|class| classes.contains(&class)));
    }
}
