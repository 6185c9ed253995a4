//! Both networks and losses written with Burn's tensors, for automatic differentiation: the check on the gradients that
//! the rest of this crate writes out by hand. One example a row here, as Burn has it.

use burn::tensor::{Device, Int, Tensor, TensorData, activation};
use speed_nn::matrix::Matrix;
use speed_nn::noise::NormalPool;
use speed_random::Streams;

use crate::StudentConfig;
use crate::discriminator::{Depth, Discriminator, DiscriminatorTrace, Noise};
use crate::generator::{Generator, GeneratorTrace};
use crate::loss::{discriminator_loss, feature_matching_loss};
use rand::RngExt;

const PIXELS: usize = 6;
const CLASSES: usize = 3;
const N: usize = 4;
const LABELS: [u8; N] = [2, 0, 1, 2];
const WEIGHT: f64 = 0.7;

fn config() -> StudentConfig {
    let none = StudentConfig { input_noise: 0.0, hidden_noise: 0.0, ..StudentConfig::default() };
    StudentConfig { discriminator: vec![8, 7, 5], generator: vec![9, 6], latent: 3, ..none }
}

fn device() -> Device {
    Device::flex().autodiff()
}

fn tensor(values: &[f32], shape: [usize; 2]) -> Tensor<2> {
    Tensor::from_data(TensorData::new(values.to_vec(), shape), &device())
}

/// Columns of examples as rows.
fn rows(matrix: &Matrix) -> Tensor<2> {
    tensor(matrix.values(), [matrix.rows(), matrix.columns()]).transpose()
}

/// Returns the arrays of a layer, weights `[outputs, inputs]` first, as trained tensors.
fn layer(arrays: &[&[f32]]) -> Vec<Tensor<2>> {
    let outputs = arrays[1].len();
    arrays.iter().map(|array| tensor(array, [outputs, array.len() / outputs]).require_grad()).collect()
}

fn discriminator_parameters(network: &Discriminator) -> Vec<Tensor<2>> {
    network.state().chunks_exact(3).flat_map(layer).collect()
}

fn generator_parameters(network: &Generator) -> Vec<Tensor<2>> {
    let state = network.state();
    let (hidden, last) = state.split_at(state.len() - 3);
    hidden.chunks_exact(2).flat_map(layer).chain(layer(last)).collect()
}

fn weight_norm(x: Tensor<2>, [theta, bias, scale]: [&Tensor<2>; 3], epsilon: f64) -> Tensor<2> {
    let norm = (theta.clone().square().sum_dim(1) + epsilon).sqrt();
    x.matmul((theta.clone() * (scale.clone() / norm)).transpose()) + bias.clone().transpose()
}

/// Features and logits.
fn discriminate(x: Tensor<2>, p: &[Tensor<2>]) -> (Tensor<2>, Tensor<2>) {
    let (hidden, last) = p.split_at(p.len() - 3);
    let layers = hidden.chunks_exact(3);
    let features = layers.fold(x, |x, p| activation::relu(weight_norm(x, [&p[0], &p[1], &p[2]], 0.0)));
    (features.clone(), weight_norm(features, [&last[0], &last[1], &last[2]], 0.0))
}

fn generate(z: Tensor<2>, p: &[Tensor<2>]) -> Tensor<2> {
    let (hidden, last) = p.split_at(p.len() - 3);
    let h = hidden.chunks_exact(2).fold(z, |x, p| {
        let product = x.matmul(p[0].clone().transpose());
        let centred = product.clone() - product.mean_dim(0);
        let deviation = (centred.clone().square().mean_dim(0) + 1e-6).sqrt();
        activation::softplus(centred / deviation + p[1].clone().transpose(), 1.0)
    });
    activation::sigmoid(weight_norm(h, [&last[0], &last[1], &last[2]], 1e-6))
}

fn lse(logits: Tensor<2>) -> Tensor<2> {
    logits.exp().sum_dim(1).log()
}

fn loss_of_discriminator(logits: Tensor<2>) -> Tensor<1> {
    let part = |i: usize| logits.clone().narrow(0, i * N, N);
    let labels: Tensor<1, Int> = Tensor::from_data(TensorData::from(LABELS.map(i32::from)), &device());
    let own = part(0).gather(1, labels.unsqueeze_dim::<2>(1));
    let unlabelled = lse(part(1));
    let real = activation::softplus(unlabelled.clone(), 1.0).mean() - unlabelled.mean();
    let generated = activation::softplus(lse(part(2)), 1.0).mean();
    lse(part(0)).mean() - own.mean() + (real + generated) * (0.5 * WEIGHT)
}

struct Setting {
    discriminator: Discriminator,
    generator: Generator,
    pool: NormalPool,
    streams: Streams,
    trace: DiscriminatorTrace,
}

/// Networks with no array at its initial constant, and a batch of images in the trace.
fn setting(columns: usize) -> Setting {
    let streams = Streams::new(8);
    let mut change = streams.stream("change", 0);
    let mut shake = |array: &mut [f32]| {
        array.iter_mut().for_each(|value| *value += change.random::<f32>() - 0.4);
        Ok::<(), std::fmt::Error>(())
    };
    let mut discriminator = Discriminator::new(&config(), PIXELS, CLASSES, &mut streams.stream("discriminator", 0));
    let mut generator = Generator::new(&config(), PIXELS, &mut streams.stream("generator", 0));
    discriminator.restore(&mut shake).expect("shaking does not fail");
    generator.restore(&mut shake).expect("shaking does not fail");
    let mut trace = DiscriminatorTrace::default();
    let mut pixels = streams.stream("pixels", 0);
    trace.images(PIXELS, columns).values_mut().fill_with(|| pixels.random());
    Setting { discriminator, generator, pool: NormalPool::new(2, &mut pixels), streams, trace }
}

#[track_caller]
fn close(found: &[f32], expected: Tensor<2>) {
    let expected: Vec<f32> = expected.into_data().try_to_vec().expect("f32");
    assert_eq!(found.len(), expected.len());
    let largest = expected.iter().fold(0.0_f32, |largest, g| largest.max(g.abs()));
    assert!(largest > 1e-6, "a gradient that says nothing: {largest}");
    for (a, b) in found.iter().zip(expected) {
        assert!((a - b).abs() < 1e-3 * largest, "{a} is not {b} beside {largest}");
    }
}

#[test]
fn the_discriminators_gradient_is_that_of_burn() {
    let Setting { discriminator, pool, streams, mut trace, .. } = setting(3 * N);
    let images = rows(trace.images(PIXELS, 3 * N));
    let mut noise = Noise { pool: &pool, stream: &mut streams.stream("noise", 0) };
    discriminator.forward(&mut trace, Depth::Logits, Some(&mut noise));
    let loss = discriminator_loss(&trace.output, &LABELS, WEIGHT, &mut trace.gradient);
    discriminator.backward(&mut trace);

    let parameters = discriminator_parameters(&discriminator);
    let expected = loss_of_discriminator(discriminate(images, &parameters).1);
    let gradients = expected.backward();
    assert!((loss - f64::from(expected.into_scalar::<f32>())).abs() < 1e-5);
    for (found, parameter) in trace.gradients(&discriminator).iter().zip(&parameters) {
        close(found, parameter.grad(&gradients).expect("a gradient"));
    }
}

#[test]
fn the_generators_gradient_through_the_frozen_discriminator_is_that_of_burn() {
    let Setting { discriminator, generator, pool, streams, mut trace } = setting(2 * N);
    let mut stream = streams.stream("latent", 0);
    let mut generator_trace = GeneratorTrace::default();
    let generated = generator.forward(N, &mut generator_trace, &mut stream);
    let batch = trace.images(PIXELS, 2 * N);
    for pixel in 0..PIXELS {
        batch.row_mut(pixel)[N..].copy_from_slice(generated.row(pixel));
    }
    let real = rows(batch).narrow(0, 0, N);
    let mut noise = Noise { pool: &pool, stream: &mut stream };
    discriminator.forward(&mut trace, Depth::Features, Some(&mut noise));
    let loss = feature_matching_loss(&trace.output, &mut trace.gradient);
    discriminator.backward_to_images(&mut trace, N..2 * N);
    generator.backward(&mut trace.gradient, &mut generator_trace);

    let parameters = generator_parameters(&generator);
    let frozen = discriminator_parameters(&discriminator);
    let images = generate(rows(generator_trace.latent()), &parameters);
    let mean_features = |x: Tensor<2>| discriminate(x, &frozen).0.mean_dim(0);
    let expected = (mean_features(images) - mean_features(real)).square().mean();
    let gradients = expected.backward();
    assert!((loss - f64::from(expected.into_scalar::<f32>())).abs() < 1e-5);
    for (found, parameter) in generator_trace.gradients(&generator).iter().zip(&parameters) {
        close(found, parameter.grad(&gradients).expect("a gradient"));
    }
}
