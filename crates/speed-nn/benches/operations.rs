//! Every operation with its gradient, compared with its body of plain Burn tensors, on one thread, at the sizes of this
//! repository's networks.
//!
//! ```console
//! $ RAYON_NUM_THREADS=1 cargo bench -p speed-nn --bench operations
//! ```
//!
//! `operation` is the kernel, `burn` the body.

use std::time::Duration;

use burn::optim::{AdamConfig, Optimizer};
use burn::tensor::{Device, Tensor, activation};
use criterion::{Criterion, criterion_group, criterion_main};
use speed_core::random::Streams;
use speed_nn::init;
use speed_nn::layers::Dense;
use speed_nn::ops::activation::Activation;
use speed_nn::ops::add_scaled::{add_scaled, add_scaled_in_burn};
use speed_nn::ops::batch_norm::{batch_norm, batch_norm_in_burn};
use speed_nn::ops::bias::{bias_activation, bias_activation_in_burn};
use speed_nn::ops::conv::{Geometry, conv, conv_in_burn, conv_transposed, conv_transposed_in_burn};
use speed_nn::ops::log_sum_exp::{log_softmax, log_sum_exp, log_sum_exp_in_burn};
use speed_nn::ops::lrn::{Window, local_response_norm, local_response_norm_in_burn};
use speed_nn::ops::max_pool::{max_pool_same, max_pool_same_in_burn};
use speed_nn::ops::pooled_conv::{PooledWindows, pooled_conv, pooled_conv_in_burn};
use speed_nn::ops::product::product;
use speed_nn::ops::sums::{column_sums, row_sums};
use speed_nn::ops::weight_norm::{weight_norm_dense, weight_norm_dense_in_burn};
use speed_nn::optim::{Adam, Epsilon, Trained};
use speed_nn::params::number_parameters;

#[global_allocator]
static GLOBAL: speed_nn::allocator::Allocator = speed_nn::allocator::ALLOCATOR;

/// Returns normal values that record gradients, different for each index.
fn random<const D: usize>(shape: [usize; D], index: u64) -> Tensor<D> {
    let device = Device::flex().autodiff();
    init::normal(shape, 1.0, &mut Streams::new(1).stream("bench", index), &device).require_grad()
}

/// Measures two implementations of one output, with the gradients of all inputs.
fn both<const D: usize>(
    criterion: &mut Criterion,
    name: &str,
    operation: impl Fn() -> Tensor<D>,
    burn: impl Fn() -> Tensor<D>,
) {
    let upstream = random(operation().dims(), 9).inner();
    let step = |output: Tensor<D>| (output * Tensor::from_inner(upstream.clone())).sum().backward();
    let mut group = criterion.benchmark_group(name);
    group.bench_function("operation", |bencher| bencher.iter(|| step(operation())));
    group.bench_function("burn", |bencher| bencher.iter(|| step(burn())));
}

fn dense(criterion: &mut Criterion) {
    let (rows, weight, bias) = (&random([300, 1000], 1), &random([1000, 500], 2), &random([500], 3));
    let (left, right) = (|| rows.clone(), || weight.clone());
    both(criterion, "product", || product(left(), right()), || left().matmul(right()));
    let scale = &random([500], 4);
    let parts = || [scale.clone(), bias.clone()];
    both(
        criterion,
        "weight_norm_dense",
        || weight_norm_dense(left(), right(), parts(), Activation::Relu, 0.0),
        || weight_norm_dense_in_burn(left(), right(), parts(), Activation::Relu, 0.0),
    );
    let hidden = &random([300, 500], 5);
    both(criterion, "batch_norm", || batch_norm(hidden.clone(), 1e-6), || batch_norm_in_burn(hidden.clone(), 1e-6));
    both(
        criterion,
        "bias_activation",
        || bias_activation(hidden.clone() * 1.0, bias.clone(), Activation::Softplus),
        || bias_activation_in_burn(hidden.clone() * 1.0, bias.clone(), Activation::Softplus),
    );
    let noise = &random([300, 500], 6).inner();
    let noise = || Tensor::from_inner(noise.clone());
    both(
        criterion,
        "add_scaled",
        || add_scaled(hidden.clone() * 1.0, noise(), 0.5),
        || add_scaled_in_burn(hidden.clone() * 1.0, noise(), 0.5),
    );
}

fn convolutions(criterion: &mut Criterion) {
    let geometry = Geometry::same([14, 14, 64], 5, 1).expect("a geometry");
    let (maps, weight) = (&random([32, 14, 14, 64], 1), &random([1600, 128], 2));
    let (of_maps, of_weight) = (|| maps.clone(), || weight.clone());
    both(
        criterion,
        "conv",
        || conv(of_maps(), of_weight(), geometry),
        || conv_in_burn(of_maps(), of_weight(), geometry),
    );
    let results = &random([32, 14, 14, 128], 3);
    both(
        criterion,
        "conv_transposed",
        || conv_transposed(results.clone(), of_weight(), geometry),
        || conv_transposed_in_burn(results.clone(), of_weight(), geometry),
    );
    let windows = PooledWindows::new(28, 28, 1, 5).expect("a map");
    let (images, kernels, bias) = (&random([128, 28, 28, 1], 4), &random([25, 16], 5), &random([16], 6));
    both(
        criterion,
        "pooled_conv",
        || pooled_conv(images.clone(), kernels.clone(), bias.clone(), windows),
        || pooled_conv_in_burn(images.clone(), kernels.clone(), bias.clone(), windows),
    );
    let window = Window { radius: 4, alpha: 0.001 / 9.0 };
    both(
        criterion,
        "local_response_norm",
        || local_response_norm(of_maps(), window),
        || local_response_norm_in_burn(of_maps(), window),
    );
    both(criterion, "max_pool_same", || max_pool_same(of_maps(), 3, 2), || max_pool_same_in_burn(of_maps(), 3, 2));
}

fn rows(criterion: &mut Criterion) {
    let logits = &random([300, 10], 1);
    both(criterion, "log_sum_exp", || log_sum_exp(logits.clone()), || log_sum_exp_in_burn(logits.clone()));
    both(criterion, "log_softmax", || log_softmax(logits.clone()), || activation::log_softmax(logits.clone(), 1));
    let features = &random([100, 250], 2);
    both(criterion, "row_sums", || row_sums(features.clone()), || features.clone().sum_dim(1));
    both(criterion, "column_sums", || column_sums(features.clone()), || features.clone().sum_dim(0));
}

fn optimisers(criterion: &mut Criterion) {
    let adam = Adam { beta1: 0.9, beta2: 0.999, epsilon: Epsilon::Outside(1e-8) };
    steps(criterion, "operation", adam);
    steps(criterion, "burn", AdamConfig::new().with_epsilon(1e-8).build());
}

fn steps(criterion: &mut Criterion, name: &str, optimizer: impl Optimizer) {
    let layer = Dense::new(random([784, 1000], 1), random([1000], 2), Activation::Linear);
    // Parameters have numbers, by which an optimiser identifies them. The loss costs both optimisers the same.
    let mut trained = Trained::new(number_parameters(layer), optimizer);
    criterion.benchmark_group("adam").bench_function(name, |bencher| {
        bencher.iter(|| {
            let loss = trained.network().half_squared_norm();
            trained.step(1e-3, &loss).expect("a finite loss")
        });
    });
}

criterion_group! {
    name = operations;
    config = Criterion::default().sample_size(10).measurement_time(Duration::from_secs(2));
    targets = dense, convolutions, rows, optimisers
}
criterion_main!(operations);
