//! Images of mean 0 and deviation 1.

use burn::tensor::Tensor;

use crate::ops::sums::row_sums;

/// Returns each of `images` `[images, height, width, channels]` (bytes divided by 255) minus its mean, divided by its
/// deviation. The deviation is at least `1 / 255 / sqrt(N)` for an image of N values, as in TensorFlow's
/// `per_image_standardization`, which divides bytes by at least `1 / sqrt(N)`.
pub fn standardised(images: Tensor<4>) -> Tensor<4> {
    let [count, height, width, channels] = images.dims();
    let values = height * width * channels;
    let images = images.reshape([count, values]);
    let centred = images.clone() - row_sums(images) / values as f64;
    let variance = row_sums(centred.clone().square()) / values as f64;
    // Clamp before the root, because its gradient at 0 is infinite.
    let deviation = variance.clamp_min(1.0 / 255.0 / 255.0 / values as f64).sqrt();
    (centred / deviation).reshape([count, height, width, channels])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{random, values};
    use burn::tensor::Device;

    #[test]
    fn every_image_has_mean_0_and_deviation_1_and_a_constant_one_stays_finite() {
        let images = Tensor::cat(
            vec![random([2, 5, 7, 3], 1).inner() * 0.2 + 0.5, Tensor::ones([1, 5, 7, 3], &Device::flex())],
            0,
        );
        let found = values(standardised(images));
        for image in found.chunks(105).take(2) {
            let mean = image.iter().sum::<f32>() / 105.0;
            let variance = image.iter().map(|x| (x - mean).powi(2)).sum::<f32>() / 105.0;
            assert!(mean.abs() < 1e-5 && (variance - 1.0).abs() < 1e-4, "{mean} {variance}");
        }
        assert!(found[210..].iter().all(|x| *x == 0.0));
    }
}
