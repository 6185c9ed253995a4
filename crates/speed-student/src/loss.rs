//! The losses of both networks, with their gradients.
//!
//! With K logits z and an implied logit 0 for "generated", D(x) = Z / (Z + 1) with Z = sum of e^z is the probability
//! that x is real, and ln Z is the log-sum-exp (Salimans et al. 2016, section 5).

use speed_nn::math::sum;
use speed_nn::matrix::Matrix;

/// Returns the discriminator's loss, from logits `[classes, 3 n]` of n labelled, n unlabelled and n generated images, in this
/// order of columns:
///
/// `mean(lse - z_y)` over labelled, plus `weight` times `-mean(lse) / 2 + mean(softplus(lse)) / 2` over unlabelled and
/// `mean(softplus(lse)) / 2` over generated images. `labels` are the n labels y.
///
/// Fills `gradient` with the derivative by the logits and returns the loss.
///
/// # Panics
/// When `logits` has not `3 * labels.len()` columns or a label is no row.
pub(crate) fn discriminator_loss(logits: &Matrix, labels: &[u8], weight: f64, gradient: &mut Matrix) -> f64 {
    let n = labels.len();
    gradient.resize(logits.rows(), logits.columns());
    assert_eq!(logits.columns(), 3 * n, "columns of logits");
    let (count, mut loss) = (n as f64, 0.0);
    for column in 0..3 * n {
        let z: Vec<f64> = (0..logits.rows()).map(|class| f64::from(logits.row(class)[column])).collect();
        let label = labels.get(column).map(|&label| usize::from(label));
        let lse = log_sum_exp(&z);
        // Every term depends on the logits through lse and z_y: d lse / d z is the softmax.
        let by_lse = if let Some(label) = label {
            loss += (lse - z[label]) / count;
            1.0 / count
        } else {
            let real = if column < 2 * n { 1.0 } else { 0.0 };
            loss += 0.5 * weight * (softplus(lse) - real * lse) / count;
            0.5 * weight * (logistic(lse) - real) / count
        };
        for (class, z) in z.iter().enumerate() {
            let by_own = if label == Some(class) { 1.0 / count } else { 0.0 };
            gradient.row_mut(class)[column] = (by_lse * (z - lse).exp() - by_own) as f32;
        }
    }
    loss
}

/// Returns the generator's loss: the mean over units of the squared difference of the batch means of the features
/// `[units, 2 n]`, n unlabelled images first and n generated ones after them.
///
/// Fills `gradient` `[units, n]` with the derivative by the generated images' features and returns the loss.
pub(crate) fn feature_matching_loss(features: &Matrix, gradient: &mut Matrix) -> f64 {
    let (units, n) = (features.rows(), features.columns() / 2);
    gradient.resize(units, n);
    let mut loss = 0.0;
    for unit in 0..units {
        let (real, generated) = features.row(unit).split_at(n);
        let difference = (sum(generated) - sum(real)) / n as f32;
        loss += f64::from(difference).powi(2) / units as f64;
        gradient.row_mut(unit).fill(2.0 * difference / (units * n) as f32);
    }
    loss
}

/// ln of the sum of e^z.
fn log_sum_exp(z: &[f64]) -> f64 {
    // `f64::max` drops a NaN, but the sum brings it back.
    let largest = z.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    largest + libm::log(z.iter().map(|z| libm::exp(z - largest)).sum())
}

fn softplus(x: f64) -> f64 {
    x.max(0.0) + libm::log1p(libm::exp(-x.abs()))
}

fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + libm::exp(-x))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::RngExt;
    use speed_random::Streams;

    const LABELS: [u8; 3] = [2, 0, 2];

    fn random(rows: usize, columns: usize, index: u64) -> Matrix {
        let mut stream = Streams::new(1).stream("loss", index);
        Matrix::from_fn(rows, columns, || 4.0 * stream.random::<f32>() - 2.0)
    }

    /// Returns the loss of networks.md, read off the page, in f64 and without care for large numbers.
    fn plain_discriminator(z: &[Vec<f64>], weight: f64) -> f64 {
        let lse = |c: usize| z.iter().map(|row| row[c].exp()).sum::<f64>().ln();
        let mean = |columns: std::ops::Range<usize>, f: &dyn Fn(usize) -> f64| columns.map(f).sum::<f64>() / 3.0;
        let labelled = -mean(0..3, &|c| z[usize::from(LABELS[c])][c]) + mean(0..3, &lse);
        let plus = |c: usize| lse(c).exp().ln_1p();
        let unlabelled = -0.5 * mean(3..6, &lse) + 0.5 * mean(3..6, &plus) + 0.5 * mean(6..9, &plus);
        labelled + weight * unlabelled
    }

    fn plain_features(f: &[Vec<f64>]) -> f64 {
        let mean = |v: &[f64]| v.iter().sum::<f64>() / 5.0;
        f.iter().map(|row| (mean(&row[..5]) - mean(&row[5..])).powi(2)).sum::<f64>() / f.len() as f64
    }

    fn wide(matrix: &Matrix) -> Vec<Vec<f64>> {
        (0..matrix.rows()).map(|r| matrix.row(r).iter().map(|&v| f64::from(v)).collect()).collect()
    }

    /// Returns the derivative of `loss` by entry `[row][column]`, by finite differences.
    fn difference(at: &[Vec<f64>], row: usize, column: usize, loss: impl Fn(&[Vec<f64>]) -> f64) -> f64 {
        let shifted = |by: f64| {
            let mut at = at.to_vec();
            at[row][column] += by;
            loss(&at)
        };
        (shifted(1e-5) - shifted(-1e-5)) / 2e-5
    }

    #[test]
    fn discriminator_loss_and_gradient_follow_the_formula() {
        for weight in [0.0, 1.0, 0.3] {
            let (logits, mut gradient) = (random(4, 9, 0), Matrix::default());
            let z = wide(&logits);
            let loss = discriminator_loss(&logits, &LABELS, weight, &mut gradient);
            assert!((loss - plain_discriminator(&z, weight)).abs() < 1e-9);
            for row in 0..4 {
                for column in 0..9 {
                    let expected = difference(&z, row, column, |z| plain_discriminator(z, weight));
                    assert!((f64::from(gradient.row(row)[column]) - expected).abs() < 1e-6);
                }
            }
        }
    }

    #[test]
    fn large_logits_stay_finite_and_nan_is_seen() {
        let (mut logits, mut gradient) = (random(4, 9, 0), Matrix::default());
        logits.values_mut().iter_mut().for_each(|z| *z *= 1e4);
        assert!(discriminator_loss(&logits, &LABELS, 1.0, &mut gradient).is_finite());
        assert!(gradient.values().iter().all(|g| g.is_finite()));
        logits.values_mut()[0] = f32::NAN;
        assert!(discriminator_loss(&logits, &LABELS, 1.0, &mut gradient).is_nan());
    }

    #[test]
    fn feature_matching_loss_and_gradient_follow_the_formula() {
        let (features, mut gradient) = (random(4, 10, 1), Matrix::default());
        let f = wide(&features);
        let loss = feature_matching_loss(&features, &mut gradient);
        assert!((loss - plain_features(&f)).abs() < 1e-6);
        for row in 0..4 {
            for column in 0..5 {
                let expected = difference(&f, row, 5 + column, plain_features);
                assert!((f64::from(gradient.row(row)[column]) - expected).abs() < 1e-6);
            }
        }
    }
}
