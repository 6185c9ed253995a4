//! The classifiers' loss.

use speed_nn::linear::LinearTrace;

/// Returns the mean cross-entropy of logits in nats; leaves the logits' gradient, `(softmax - one hot) / n`.
pub(super) fn cross_entropy(labels: &[u8], logits: &mut LinearTrace) -> f32 {
    let (rows, classes) = (logits.output.rows(), logits.output.columns());
    logits.gradient.resize(rows, classes);
    let scale = 1.0 / rows as f32;
    let mut loss = 0.0;
    let all = logits.output.values().chunks_exact(classes).zip(logits.gradient.values_mut().chunks_exact_mut(classes));
    for ((row, gradient), &label) in all.zip(labels) {
        let label = usize::from(label);
        let greatest = row.iter().fold(f32::NEG_INFINITY, |greatest, &value| greatest.max(value));
        gradient.iter_mut().zip(row).for_each(|(g, value)| *g = (value - greatest).exp());
        let sum: f32 = gradient.iter().sum();
        loss += sum.ln() + greatest - row[label];
        gradient.iter_mut().for_each(|g| *g *= scale / sum);
        gradient[label] -= scale;
    }
    loss * scale
}
