//! The losses of both networks.
//!
//! With K logits z and an implied logit 0 for "generated", D(x) = Z / (Z + 1) with Z = sum of e^z is the probability
//! that x is real, and ln Z is the log-sum-exp (Salimans et al. 2016, section 5).

use burn::tensor::{Int, Tensor, TensorData};
use speed_nn::ops::activation::Activation;
use speed_nn::ops::bias::bias_activation;
use speed_nn::ops::log_sum_exp::log_sum_exp;
use speed_nn::ops::sums::mean;

/// Returns the discriminator's loss, of shape `[1]`, from logits `[3 n, classes]` of n labelled, n unlabelled and n
/// generated images, in this order:
///
/// `mean(lse - z_y)` over labelled, plus `weight` times `-mean(lse) / 2 + mean(softplus(lse)) / 2` over unlabelled and
/// `mean(softplus(lse)) / 2` over generated images. `labels` are the n labels y.
pub(crate) fn discriminator_loss(logits: Tensor<2>, labels: &[u8], weight: f64) -> Tensor<1> {
    let (n, device) = (labels.len(), logits.device());
    let labels: Vec<i32> = labels.iter().map(|&label| i32::from(label)).collect();
    let labels = Tensor::<2, Int>::from_data(TensorData::new(labels, [n, 1]), &device);
    let own = logits.clone().narrow(0, 0, n).gather(1, labels);
    let lse = log_sum_exp(logits);
    let labelled = mean(lse.clone().narrow(0, 0, n) - own);
    let real = mean(lse.clone().narrow(0, n, n)) * 0.5;
    // The mean over 2 n is half the sum of both means.
    let unsure = mean(bias_activation(lse.narrow(0, n, 2 * n), Tensor::zeros([1], &device), Activation::Softplus));
    labelled + (unsure - real) * weight
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::Device;
    use speed_core::random::Streams;
    use speed_nn::init;

    const LABELS: [u8; 3] = [2, 0, 2];

    fn random(rows: usize, columns: usize, index: u64) -> Tensor<2> {
        init::uniform(
            [rows, columns],
            -2.0,
            2.0,
            &mut Streams::new(1).stream("loss", index),
            &Device::flex().autodiff(),
        )
        .require_grad()
    }

    fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f64> {
        let values: Vec<f32> = tensor.into_data().try_to_vec().expect("f32");
        values.into_iter().map(f64::from).collect()
    }

    /// Computes the loss of the published code in f64, without protection against overflow. `z` holds 9 rows of 4 values.
    fn plain_discriminator(z: &[f64], weight: f64) -> f64 {
        let row = |r: usize| &z[4 * r..4 * r + 4];
        let lse = |r: usize| row(r).iter().map(|z| z.exp()).sum::<f64>().ln();
        let mean = |rows: std::ops::Range<usize>, f: &dyn Fn(usize) -> f64| rows.map(f).sum::<f64>() / 3.0;
        let labelled = -mean(0..3, &|r| row(r)[usize::from(LABELS[r])]) + mean(0..3, &lse);
        let plus = |r: usize| lse(r).exp().ln_1p();
        let unlabelled = -0.5 * mean(3..6, &lse) + 0.5 * mean(3..6, &plus) + 0.5 * mean(6..9, &plus);
        labelled + weight * unlabelled
    }

    /// Compares the gradient with finite differences.
    #[track_caller]
    fn check(at: &Tensor<2>, loss: Tensor<1>, plain: impl Fn(&[f64]) -> f64) {
        let z = values(at.clone().inner());
        assert!((values(loss.clone().inner())[0] - plain(&z)).abs() < 1e-6);
        let gradient = values(at.grad(&loss.backward()).expect("a gradient"));
        for (place, found) in gradient.into_iter().enumerate() {
            let shifted = |by: f64| {
                let mut z = z.clone();
                z[place] += by;
                plain(&z)
            };
            let expected = (shifted(1e-5) - shifted(-1e-5)) / 2e-5;
            assert!((found - expected).abs() < 1e-6, "{place}: {found} is not {expected}");
        }
    }

    #[test]
    fn discriminator_loss_and_gradient_follow_the_formula() {
        for weight in [0.0, 1.0, 0.3] {
            let logits = random(9, 4, 0);
            check(&logits, discriminator_loss(logits.clone(), &LABELS, weight), |z| plain_discriminator(z, weight));
        }
    }

    #[test]
    fn large_logits_stay_finite_and_nan_is_seen() {
        let logits = random(9, 4, 0);
        let loss = discriminator_loss(logits.clone() * 1e4, &LABELS, 1.0);
        assert!(values(loss.clone().inner())[0].is_finite());
        assert!(values(logits.grad(&loss.backward()).expect("a gradient")).iter().all(|g| g.is_finite()));
        let nan = logits.inner().slice_fill([0..1, 0..1], f32::NAN);
        assert!(values(discriminator_loss(nan, &LABELS, 1.0))[0].is_nan());
    }
}
