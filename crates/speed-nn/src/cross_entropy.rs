//! Softmax and its cross-entropy against targets that are distributions, one example a row.

use crate::matrix::Matrix;

/// Turns every row of logits into probabilities.
pub fn softmax(rows: &mut Matrix) {
    let classes = rows.columns();
    for row in rows.values_mut().chunks_exact_mut(classes.max(1)) {
        let _ = softmax_row(row);
    }
}

/// Turns logits into probabilities and returns their log-sum-exp.
fn softmax_row(row: &mut [f32]) -> f32 {
    let greatest = row.iter().fold(f32::NEG_INFINITY, |greatest, &value| greatest.max(value));
    row.iter_mut().for_each(|value| *value = (*value - greatest).exp());
    let sum: f32 = row.iter().sum();
    row.iter_mut().for_each(|value| *value /= sum);
    sum.ln() + greatest
}

/// The cross-entropies `-sum_k t_k ln softmax(z)_k` of logits `[examples, classes]` and targets `t` of the same shape,
/// in nats, each example times its entry in `weights`.
///
/// Leaves the derivative of the weighted sum by the logits in `gradient`, and returns the sum over the examples before
/// each of the `cuts` and after the last: the losses of several kinds of examples in one batch.
///
/// # Panics
/// When the shapes do not agree or the cuts are not ascending within the batch.
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
        let lse = softmax_row(row);
        let entropy: f32 = z.iter().zip(target).map(|(z, t)| if *t == 0.0 { 0.0 } else { t * (lse - z) }).sum();
        losses[group] += f64::from(weight * entropy);
        row.iter_mut().zip(target).for_each(|(p, t)| *p = weight * (*p - t));
    }
    losses
}
