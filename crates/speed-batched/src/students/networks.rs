//! Both networks of the student, for all students at once, and their losses.
//!
//! Parameters come as the arrays of [`Training::arrays`](speed_student::training::Training::arrays), `[students, rows,
//! columns]` each, activations as `[students, units, batch]`. Nothing here mixes two students.

use burn::tensor::{Tensor, activation};
use speed_nn::batch_norm;
use speed_student::training::NORM_EPSILON;

/// Images `[students, pixels, batch]` within 0..=1 from latent vectors `[students, latent, batch]`.
pub(super) fn generate(latent: Tensor<3>, arrays: &[Tensor<3>]) -> Tensor<3> {
    let (hidden, last) = arrays.split_at(arrays.len() - 3);
    let hidden = hidden.chunks_exact(2).fold(latent, |x, layer| batch_norm_dense(x, &layer[0], &layer[1]));
    activation::sigmoid(weight_norm_dense(hidden, last, NORM_EPSILON))
}

/// Returns the discriminator's hidden layers, with `noise[i]`, where there is one, added to the input of layer i.
pub(super) fn features(images: Tensor<3>, arrays: &[Tensor<3>], noise: &[Option<Tensor<3>>]) -> Tensor<3> {
    let hidden = arrays[..arrays.len() - 3].chunks_exact(3);
    hidden.zip(noise).fold(images, |x, (layer, noise)| activation::relu(weight_norm_dense(add(x, noise), layer, 0.0)))
}

/// Returns the discriminator's logits `[students, classes, batch]`.
pub(super) fn logits(images: Tensor<3>, arrays: &[Tensor<3>], noise: &[Option<Tensor<3>>]) -> Tensor<3> {
    let hidden = features(images, arrays, noise);
    let last = noise.last().map_or(&None, |noise| noise);
    weight_norm_dense(add(hidden, last), &arrays[arrays.len() - 3..], 0.0)
}

fn add(x: Tensor<3>, noise: &Option<Tensor<3>>) -> Tensor<3> {
    match noise {
        Some(noise) => x + noise.clone(),
        None => x,
    }
}

/// `scale / |theta| * (theta x) + bias`, with `[theta, bias, scale]` and the norm of every unit's weights.
fn weight_norm_dense(x: Tensor<3>, layer: &[Tensor<3>], epsilon: f32) -> Tensor<3> {
    let [theta, bias, scale] = [&layer[0], &layer[1], &layer[2]].map(Clone::clone);
    let norm = (theta.clone().square().sum_dim(2) + epsilon).sqrt();
    theta.matmul(x) * (scale / norm) + bias
}

/// `softplus((w x - mean) / deviation + shift)`, mean and deviation over the batch.
fn batch_norm_dense(x: Tensor<3>, weight: &Tensor<3>, shift: &Tensor<3>) -> Tensor<3> {
    let products = weight.clone().matmul(x);
    let centred = products.clone() - products.mean_dim(2);
    let deviation = (centred.clone().square().mean_dim(2) + batch_norm::EPSILON).sqrt();
    softplus(centred / deviation + shift.clone())
}

/// Returns the discriminator's loss `[students, 1, 1]`, from logits `[students, classes, 3 n]` of n labelled, n unlabelled and n
/// generated images; `labels` `[students, classes, n]` are 1 at the label and 0 elsewhere.
///
/// The formula is at `discriminator_loss` of `speed-student`.
pub(super) fn discriminator_loss(logits: &Tensor<3>, labels: Tensor<3>, weight: f64) -> Tensor<3> {
    let n = labels.dims()[2];
    let part = |i: usize| logits.clone().narrow(2, i * n, n);
    let [labelled, unlabelled, generated] = [0, 1, 2].map(|i| log_sum_exp(part(i)));
    let own = (part(0) * labels).sum_dim(1);
    let real = softplus(unlabelled.clone()) - unlabelled;
    (labelled - own).mean_dim(2) + (real + softplus(generated)).mean_dim(2) * (0.5 * weight)
}

/// Returns the generator's loss `[students, 1, 1]`: the mean over units of the squared difference of the batch means of the
/// features `[students, units, n]`.
pub(super) fn feature_matching_loss(real: Tensor<3>, generated: Tensor<3>) -> Tensor<3> {
    (generated.mean_dim(2) - real.mean_dim(2)).square().mean_dim(1)
}

/// ln of the sum over classes of e^z.
fn log_sum_exp(z: Tensor<3>) -> Tensor<3> {
    let largest = z.clone().detach().max_dim(1);
    (z - largest.clone()).exp().sum_dim(1).log() + largest
}

fn softplus(x: Tensor<3>) -> Tensor<3> {
    activation::softplus(x, 1.0)
}
