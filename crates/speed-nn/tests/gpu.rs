//! A GPU gives the processor's results: values and gradients of every operation, and a few steps of a training.
//!
//! Without a GPU these tests report that and pass, unless `SPEED_REQUIRE_GPU` is set.
#![cfg(feature = "wgpu")]

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use speed_core::random::Streams;
use speed_nn::device::{self, DeviceKind};
use speed_nn::init;
use speed_nn::layers::{Conv, Dense, standardised};
use speed_nn::ops::activation::Activation;
use speed_nn::ops::add_scaled::add_scaled;
use speed_nn::ops::batch_norm::batch_norm;
use speed_nn::ops::bias::bias_activation;
use speed_nn::ops::conv::{Geometry, conv, conv_transposed};
use speed_nn::ops::log_sum_exp::{log_softmax, log_sum_exp};
use speed_nn::ops::lrn::{Window, local_response_norm};
use speed_nn::ops::max_pool::max_pool_same;
use speed_nn::ops::pooled_conv::{PooledWindows, pooled_conv};
use speed_nn::ops::product::product;
use speed_nn::ops::sums::{column_sums, row_sums, total};
use speed_nn::ops::weight_norm::weight_norm_dense;
use speed_nn::optim::{Adam, Epsilon, Trained};

#[expect(clippy::print_stderr, reason = "a skipped test reports it")]
fn gpu() -> Option<Device> {
    match device::open(DeviceKind::Wgpu) {
        Ok(gpu) => Some(gpu.device),
        Err(error) if std::env::var_os("SPEED_REQUIRE_GPU").is_none() => {
            eprintln!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Returns the same normal values on any device.
fn input<const D: usize>(shape: [usize; D], index: u64, device: &Device) -> Tensor<D> {
    init::normal(shape, 1.0, &mut Streams::new(1).stream("gpu", index), device)
}

/// Compares values to a ten-thousandth of the largest, because sums of some hundred terms are in another order.
#[track_caller]
fn assert_close(found: &[f32], expected: &[f32]) {
    assert_eq!(found.len(), expected.len());
    let largest = expected.iter().fold(0.0, |largest: f32, value| largest.max(value.abs()));
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() <= 1e-4 * largest, "{found} is not {expected}");
    }
}

/// Checks the values, and the gradient with respect to the input, of an operation on an input of this shape.
#[track_caller]
fn agree<const D: usize, const O: usize>(
    gpu: &Device,
    shape: [usize; D],
    compute: impl Fn(Tensor<D>, &Device) -> Tensor<O>,
) {
    let run = |device: &Device| {
        let device = &device.clone().autodiff();
        let leaf = input(shape, 0, device).require_grad();
        let output = compute(leaf.clone(), device);
        let gradients = (output.clone() * input(output.dims(), 99, device)).sum().backward();
        let gradient = leaf.grad(&gradients).expect("a gradient");
        [device::values(output.inner()), device::values(gradient)].map(|values| values.expect("values"))
    };
    for (found, expected) in run(gpu).iter().zip(&run(&Device::flex())) {
        assert_close(found, expected);
    }
}

#[test]
fn operations_on_maps() {
    let Some(gpu) = &gpu() else { return };
    let maps = [3, 9, 8, 4];
    for geometry in [Geometry::same([9, 8, 4], 3, 2), Geometry::same([9, 8, 4], 5, 1), Geometry::valid([9, 8, 4], 3)] {
        let geometry = geometry.expect("a window");
        let ([rows, columns], weight) = (geometry.results(), [geometry.patch_len(), 6]);
        let results = [3, rows, columns, 6];
        agree(gpu, maps, |x, device| conv(x, input(weight, 1, device), geometry));
        agree(gpu, weight, |w, device| conv(input(maps, 1, device), w, geometry));
        agree(gpu, results, |y, device| conv_transposed(y, input(weight, 1, device), geometry));
        agree(gpu, weight, |w, device| conv_transposed(input(results, 1, device), w, geometry));
    }
    let windows = PooledWindows::new(9, 8, 4, 3).expect("a window");
    let weight = [windows.patch_len(), 6];
    agree(gpu, maps, |x, device| pooled_conv(x, input(weight, 1, device), input([6], 2, device), windows));
    agree(gpu, weight, |w, device| pooled_conv(input(maps, 1, device), w, input([6], 2, device), windows));
    agree(gpu, [6], |bias, device| pooled_conv(input(maps, 1, device), input(weight, 2, device), bias, windows));
    agree(gpu, maps, |x, _| local_response_norm(x, Window { radius: 2, alpha: 0.1 }));
    agree(gpu, maps, |x, _| max_pool_same(x, 3, 2));
    agree(gpu, maps, |x, _| standardised(x));
}

#[test]
fn operations_on_rows() {
    let Some(gpu) = &gpu() else { return };
    let rows = [7, 5];
    for activation in [
        Activation::Linear,
        Activation::Relu,
        Activation::LeakyRelu(0.2),
        Activation::Softplus,
        Activation::Sigmoid,
        Activation::Tanh,
    ] {
        agree(gpu, rows, |x, device| bias_activation(x, input([5], 1, device), activation));
        let dense = |x, theta, device: &Device| {
            weight_norm_dense(x, theta, [input([6], 2, device), input([6], 3, device)], activation, 1e-3)
        };
        agree(gpu, rows, |x, device| dense(x, input([5, 6], 1, device), device));
        agree(gpu, [5, 6], |theta, device| dense(input(rows, 1, device), theta, device));
    }
    agree(gpu, rows, |x, device| add_scaled(x, input(rows, 1, device), 0.3));
    agree(gpu, rows, |x, _| batch_norm(x, 1e-6));
    agree(gpu, rows, |x, _| log_softmax(x));
    agree(gpu, rows, |x, _| log_sum_exp(x));
    agree(gpu, rows, |x, _| row_sums(x));
    agree(gpu, rows, |x, _| column_sums(x));
    agree(gpu, rows, |x, _| total(x));
    agree(gpu, rows, |x, device| product(x, input([5, 9], 1, device)));
    agree(gpu, [5, 9], |w, device| product(input(rows, 1, device), w));
}

#[derive(Module, Debug)]
struct Network {
    convolution: Conv,
    output: Dense,
}

/// Compares the losses of twenty steps, which reduce the first loss to less than a fifth.
#[test]
fn a_training() {
    let Some(gpu) = gpu() else { return };
    let losses = |device: Device| -> Vec<f32> {
        let with_gradients = &device.clone().autodiff();
        let geometry = Geometry::same([8, 8, 1], 3, 2).expect("a map");
        let streams = Streams::new(1);
        let weight = |shape, index| init::normal(shape, 0.3, &mut streams.stream("weights", index), with_gradients);
        let zeros = |count| Tensor::zeros([count], with_gradients);
        let network = Network {
            convolution: Conv::new(geometry, weight([9, 16], 1), zeros(16), Activation::Relu),
            output: Dense::new(weight([256, 3], 2), zeros(3), Activation::Linear),
        };
        let mut network = Trained::new(network, Adam { beta1: 0.9, beta2: 0.999, epsilon: Epsilon::Outside(1e-8) });
        let images = input([20, 8, 8, 1], 3, &device);
        let step = |_| {
            let Network { convolution, output } = network.network();
            let logits = output.forward(convolution.forward(images.clone()).flatten(1, 3));
            let loss = total(logits.square()) / 60.0;
            network.step(0.003, &loss).expect("a finite loss") as f32
        };
        (0..20).map(step).collect()
    };
    let expected = losses(Device::flex());
    assert!(expected[19] < 0.2 * expected[0], "{expected:?}");
    assert_close(&losses(gpu), &expected);
}
