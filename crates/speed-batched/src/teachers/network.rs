//! The small teacher's network, for all teachers at once, and its loss.
//!
//! Maps are `[teachers * images, rows, columns, channels]`, weights `[teachers, inputs, outputs]`, a bias `[teachers, 1,
//! outputs]`. Convolutions are products with the patches under the kernel: on a GPU Burn's grouped convolution would launch
//! one computation a teacher for the gradient of the weights.

use burn::tensor::{Tensor, activation};
use speed_teacher::training::KERNEL;

/// Logits `[teachers, images, classes]` of images `[teachers * images, height, width, channels]`.
pub(super) fn logits(images: Tensor<4>, arrays: &[Tensor<3>]) -> Tensor<3> {
    let [teachers, _, _] = arrays[0].dims();
    let maps = pooled_conv(images, &arrays[0], &arrays[1]);
    let maps = pooled_conv(maps, &arrays[2], &arrays[3]);
    let [_, inputs, _] = arrays[4].dims();
    let flat = maps.reshape([teachers as i64, -1, inputs as i64]);
    let hidden = activation::relu(flat.matmul(arrays[4].clone()) + arrays[5].clone());
    hidden.matmul(arrays[6].clone()) + arrays[7].clone()
}

/// `relu(max_pool(conv(maps)) + bias)`: no padding, 2x2 pooling that drops an odd last row or column. Of equal values in a
/// pooling window the first one gets the gradient, as on the processor.
fn pooled_conv(maps: Tensor<4>, weight: &Tensor<3>, bias: &Tensor<3>) -> Tensor<4> {
    let [images, height, width, _] = maps.dims();
    let [teachers, patch, outputs] = weight.dims();
    let [rows, columns] = [height, width].map(pooled);
    let windows = (0..KERNEL * KERNEL).map(|place| {
        let (y, x) = (place / KERNEL, place % KERNEL);
        maps.clone().slice([0..images, y..y + 2 * rows, x..x + 2 * columns])
    });
    let patches = Tensor::cat(windows.collect(), 3).reshape([teachers as i64, -1, patch as i64]);
    let convolved = patches.matmul(weight.clone()).reshape([images * rows, 2, columns, 2 * outputs]);
    let part = |y: usize, x: usize| convolved.clone().narrow(1, y, 1).narrow(3, x * outputs, outputs);
    let greatest = [(0, 1), (1, 0), (1, 1)].into_iter().fold(part(0, 0), |best, (y, x)| {
        let value = part(y, x);
        best.clone().mask_where(value.clone().greater(best), value)
    });
    let greatest = greatest.reshape([teachers as i64, -1, outputs as i64]);
    activation::relu(greatest + bias.clone()).reshape([images, rows, columns, outputs])
}

/// Rows of a map of `size` rows behind convolution and pooling.
fn pooled(size: usize) -> usize {
    let convolved = size - KERNEL + 1;
    convolved / 2
}

/// Values of the largest array of a step of one teacher with batches of `batch` images.
pub(super) fn largest_array(batch: usize, size: [usize; 2], shapes: [[usize; 2]; 2]) -> usize {
    let mut size = size;
    let layers = shapes.map(|[patch, outputs]| {
        size = size.map(pooled);
        4 * size[0] * size[1] * patch.max(outputs)
    });
    batch * layers[0].max(layers[1])
}

/// Returns the mean cross-entropies `[teachers, 1, 1]` of logits `[teachers, images, classes]` in nats; `labels` of the same shape
/// are 1 at the label and 0 elsewhere.
pub(super) fn cross_entropy(logits: &Tensor<3>, labels: Tensor<3>) -> Tensor<3> {
    (activation::log_softmax(logits.clone(), 2) * labels).sum_dim(2).mean_dim(1).neg()
}
