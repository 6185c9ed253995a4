//! Softmax and its cross-entropy against targets that are distributions, one example a row.

use crate::matrix::Matrix;

/// Turns every row of logits into probabilities.
pub fn softmax(rows: &mut Matrix) {
    let classes = rows.columns();
    for row in rows.values_mut().chunks_exact_mut(classes.max(1)) {
        let _ = softmax_row(row);
    }
}

/// Turns logits into probabilities and returns their log-sum-exp in two terms: the greatest logit, and what is above it.
fn softmax_row(row: &mut [f32]) -> [f32; 2] {
    let greatest = row.iter().fold(f32::NEG_INFINITY, |greatest, &value| greatest.max(value));
    row.iter_mut().for_each(|value| *value = (*value - greatest).exp());
    let sum: f32 = row.iter().sum();
    row.iter_mut().for_each(|value| *value /= sum);
    [greatest, sum.ln()]
}

/// Returns the cross-entropies `-sum_k t_k ln softmax(z)_k` of logits `[examples, classes]` and targets `t` of the same shape,
/// in nats, each example times its entry in `weights`.
///
/// Leaves the derivative of their sum by the logits in `gradient`, and returns the sums over groups of neighbouring
/// examples, of which `ends` says where each ends: the losses of several kinds of examples in one batch.
///
/// # Panics
/// When the shapes do not agree or the last group does not end with the batch.
pub fn cross_entropy<const N: usize>(
    logits: &Matrix,
    targets: &Matrix,
    weights: &[f32],
    ends: [usize; N],
    gradient: &mut Matrix,
) -> [f64; N] {
    let (examples, classes) = (logits.rows(), logits.columns());
    assert_eq!([targets.rows(), targets.columns(), weights.len()], [examples, classes, examples], "targets");
    assert!(ends.is_sorted() && ends.last().is_none_or(|&end| end == examples), "groups {ends:?} of {examples}");
    gradient.resize(examples, classes);
    gradient.values_mut().copy_from_slice(logits.values());
    let mut losses = [0.0; N];
    let mut group = 0;
    for (example, &weight) in weights.iter().enumerate() {
        while ends[group] <= example {
            group += 1;
        }
        let (z, target) = (logits.row(example), targets.row(example));
        let row = gradient.row_mut(example);
        let [greatest, above] = softmax_row(row);
        let entropy: f32 =
            z.iter().zip(target).map(|(z, t)| if *t == 0.0 { 0.0 } else { t * (above + (greatest - z)) }).sum();
        losses[group] += f64::from(weight * entropy);
        row.iter_mut().zip(target).for_each(|(p, t)| *p = weight * (*p - t));
    }
    losses
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::init;
    use crate::test_support::matrix;
    use burn::tensor::{Device, Tensor, activation};
    use speed_random::Streams;

    #[test]
    fn losses_and_gradient_agree_with_burn() {
        let device = Device::flex().autodiff();
        let mut stream = Streams::new(1).stream("cross entropy", 0);
        let logits = init::normal([5, 4], 3.0, &mut stream, &device).require_grad();
        let targets = activation::softmax(init::normal([5, 4], 1.0, &mut stream, &device), 1);
        let weights = [0.5, 0.25, 1.0, 0.0, 2.0];
        let weighted = Tensor::<1>::from_floats(weights, &device).reshape([5, 1]);
        let losses = (targets.clone() * activation::log_softmax(logits.clone(), 1)).sum_dim(1).neg() * weighted;
        let expected: Vec<f32> = losses.clone().inner().into_data().try_to_vec().expect("f32");
        let gradients = losses.sum().backward();

        let mut gradient = Matrix::default();
        let z = matrix(logits.clone().inner());
        let found = cross_entropy(&z, &matrix(targets.inner()), &weights, [2, 5], &mut gradient);
        assert!((found[0] - f64::from(expected[0] + expected[1])).abs() < 1e-5);
        assert!((found[1] - f64::from(expected[2] + expected[3] + expected[4])).abs() < 1e-5);
        let by_logits = matrix(logits.grad(&gradients).expect("a gradient"));
        assert!(gradient.values().iter().zip(by_logits.values()).all(|(f, e)| (f - e).abs() < 1e-5));
    }

    #[test]
    fn empty_groups_large_logits_and_nan() {
        let mut logits = Matrix::zeros(2, 3);
        logits.values_mut().copy_from_slice(&[1e4, -1e4, 0.0, 0.0, 1e4, 1e4]);
        let mut targets = Matrix::zeros(2, 3);
        targets.row_mut(0)[0] = 1.0;
        targets.row_mut(1)[2] = 1.0;
        let mut gradient = Matrix::default();
        let [none, all] = cross_entropy(&logits, &targets, &[1.0, 1.0], [0, 2], &mut gradient);
        assert_eq!(none, 0.0);
        assert!((all - 2.0_f64.ln()).abs() < 1e-5);
        assert!(gradient.values().iter().all(|g| g.is_finite()));
        softmax(&mut logits);
        assert_eq!(logits.row(1), [0.0, 0.5, 0.5]);
        logits.values_mut()[0] = f32::NAN;
        assert!(cross_entropy(&logits, &targets, &[1.0, 1.0], [2], &mut gradient)[0].is_nan());
    }

    #[test]
    #[should_panic(expected = "groups [3]")]
    fn groups_are_the_whole_batch() {
        cross_entropy(&Matrix::zeros(2, 2), &Matrix::zeros(2, 2), &[1.0; 2], [3], &mut Matrix::default());
    }
}
