//! The targets of an epoch, computed from the predictions of the averaged parameters on the pool.

use speed_nn::matrix::Matrix;

use super::PseudoLabelsConstants;

#[derive(Debug)]
pub(super) struct Targets {
    /// A distribution over the classes for each labelled image, in the order of the given labels.
    pub(super) labelled: Matrix,
    /// Images of the pool with a pseudo-label.
    pub(super) confident: Vec<(usize, u8)>,
    /// Share of the given labels that differ from the most probable class.
    pub(super) disputed: f64,
}

impl Targets {
    /// Returns the given labels, and no pseudo-labels. A label with a doubt becomes a distribution: the other classes share the doubt.
    pub(super) fn from_labels(labels: &[(usize, u8)], doubts: Option<&[f32]>, classes: usize) -> Self {
        let mut labelled = Matrix::zeros(labels.len(), classes);
        for (row, &(_, label)) in labels.iter().enumerate() {
            let doubt = doubts.map_or(0.0, |doubts| doubts[row]);
            let target = labelled.row_mut(row);
            target.fill(doubt / (classes.max(2) - 1) as f32);
            target[usize::from(label)] = 1.0 - doubt;
        }
        Self { labelled, confident: Vec::new(), disputed: 0.0 }
    }

    /// Computes the targets from the probabilities `[images, classes]` of the pool. A label is right if neither its
    /// doubt nor `label_noise`, which are independent, makes it wrong. Predictions are drawn towards the frequencies `prior`
    /// of the classes, or else towards equal ones.
    pub(super) fn from_pool(
        constants: &PseudoLabelsConstants,
        mut pool: Matrix,
        labels: &[(usize, u8)],
        doubts: Option<&[f32]>,
        prior: Option<&[f64]>,
    ) -> Self {
        align(&mut pool, constants.alignment as f32, prior);
        let mut labelled = Matrix::zeros(labels.len(), pool.columns());
        let mut disputed = 0.0;
        for (row, &(image, label)) in labels.iter().enumerate() {
            let target = labelled.row_mut(row);
            let general = constants.label_noise as f32;
            let doubt = doubts.map_or(general, |doubts| 1.0 - (1.0 - general) * (1.0 - doubts[row]));
            posterior(label, pool.row(image), doubt, target);
            disputed += if most_probable(target).0 == label { 0.0 } else { 1.0 / labels.len() as f64 };
        }
        Self { labelled, confident: confident(&pool, constants.threshold), disputed }
    }
}

/// Draws probabilities `[images, classes]` towards the class frequencies `prior`, or else towards equal ones: every class is
/// multiplied by its expected share of all images, divided by its share, to the power `strength`, and every row is
/// normalised again (Berthelot et al. 2020, distribution alignment).
fn align(probabilities: &mut Matrix, strength: f32, prior: Option<&[f64]>) {
    let (images, classes) = (probabilities.rows(), probabilities.columns());
    let expected = |class: usize| prior.map_or(images as f64 / classes as f64, |prior| images as f64 * prior[class]);
    // The factor is bounded, so a class without images stays without images.
    let factor = |(class, share): (usize, f64)| libm::pow(expected(class) / share.max(1.0), f64::from(strength)) as f32;
    let factors: Vec<f32> = shares(probabilities).into_iter().enumerate().map(factor).collect();
    for image in 0..images {
        let row = probabilities.row_mut(image);
        row.iter_mut().zip(&factors).for_each(|(p, factor)| *p *= factor);
        let sum: f32 = row.iter().sum();
        row.iter_mut().for_each(|p| *p /= sum);
    }
}

/// Returns the images whose most probable class reaches the threshold of that class, with the class.
///
/// The threshold of a class is the mean confidence over all images, but at most `greatest`, times the class's share of
/// all images relative to the share of the most frequent class (Wang et al. 2023, FreeMatch). So an early student
/// learns from its most confident images, and neglected classes get a lower threshold.
fn confident(probabilities: &Matrix, greatest: f64) -> Vec<(usize, u8)> {
    let images = probabilities.rows();
    let guesses: Vec<(u8, f32)> = (0..images).map(|image| most_probable(probabilities.row(image))).collect();
    let confidence = guesses.iter().map(|guess| f64::from(guess.1)).sum::<f64>() / images as f64;
    let shares = shares(probabilities);
    let largest = shares.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let threshold = |class: u8| (greatest.min(confidence) * shares[usize::from(class)] / largest) as f32;
    let sure = guesses.into_iter().enumerate().filter(|&(_, (class, p))| p >= threshold(class));
    sure.map(|(image, (class, _))| (image, class)).collect()
}

/// Returns the sum of every class's probabilities over all images.
fn shares(probabilities: &Matrix) -> Vec<f64> {
    let mut shares = vec![0.0; probabilities.columns()];
    for image in 0..probabilities.rows() {
        shares.iter_mut().zip(probabilities.row(image)).for_each(|(sum, p)| *sum += f64::from(*p));
    }
    shares
}

/// Returns the distribution of the true class of an image by Bayes' theorem, if the given label is right with
/// probability `1 - noise` and otherwise any other class with equal probability, and the network's `probabilities` are
/// treated as independent evidence.
fn posterior(label: u8, probabilities: &[f32], noise: f32, target: &mut [f32]) {
    let others = noise / (probabilities.len().max(2) - 1) as f32;
    for (class, (target, p)) in target.iter_mut().zip(probabilities).enumerate() {
        *target = p * if class == usize::from(label) { 1.0 - noise } else { others };
    }
    let sum: f32 = target.iter().sum();
    if sum > 0.0 {
        target.iter_mut().for_each(|target| *target /= sum);
    } else {
        one_hot(label, target);
    }
}

/// Writes a distribution with all of the probability at `label`.
pub(super) fn one_hot(label: u8, target: &mut [f32]) {
    target.fill(0.0);
    target[usize::from(label)] = 1.0;
}

/// Returns the first of the most probable classes, and its probability.
pub(super) fn most_probable(row: &[f32]) -> (u8, f32) {
    let mut best = (0, f32::NEG_INFINITY);
    for (class, &p) in (0..=u8::MAX).zip(row) {
        if p > best.1 {
            best = (class, p);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(rows: &[[f32; 3]]) -> Matrix {
        let mut values = rows.iter().flatten();
        Matrix::from_fn(rows.len(), 3, || *values.next().expect("a value for each entry"))
    }

    #[track_caller]
    fn close(found: &[f32], expected: [f32; 3]) {
        assert!(found.iter().zip(expected).all(|(f, e)| (f - e).abs() < 1e-6), "{found:?}, not {expected:?}");
    }

    #[test]
    fn alignment_divides_by_the_share() {
        // The shares are 1.2, 0.6 and 0.2 of 2; the target is 2/3 each.
        let start = matrix(&[[0.7, 0.2, 0.1], [0.5, 0.4, 0.1]]);
        let mut none = start.clone();
        align(&mut none, 0.0, None);
        close(none.row(1), [0.5, 0.4, 0.1]);
        let mut full = start.clone();
        align(&mut full, 1.0, None);
        // The factors of the second and third classes are bounded by the factor of a share of one image.
        let row = [0.7 / 1.2, 0.2, 0.1];
        let sum: f32 = row.iter().sum();
        close(full.row(0), row.map(|p| p / sum));
        // The prior replaces 2/3 of an image by 0.4, 1 and 0.6 images.
        let mut drawn = start;
        align(&mut drawn, 1.0, Some(&[0.2, 0.5, 0.3]));
        let row = [0.7 / 1.2 * 0.4, 0.2, 0.1 * 0.6];
        let sum: f32 = row.iter().sum();
        close(drawn.row(0), row.map(|p| p / sum));
    }

    #[test]
    fn thresholds_follow_confidence_and_class() {
        // Mean confidence 0.7; shares 1.75, 0.95, 0.3, so the threshold of the second class is 0.7 * 0.95 / 1.75 =
        // 0.38.
        let rows = matrix(&[[0.9, 0.05, 0.05], [0.65, 0.25, 0.1], [0.2, 0.65, 0.15]]);
        let mean = (0.9 + 0.65 + 0.65) / 3.0;
        assert!(mean > 0.65);
        assert_eq!(confident(&rows, 1.0), [(0, 0), (2, 1)]);
        assert_eq!(confident(&rows, 0.6), [(0, 0), (1, 0), (2, 1)]);
    }

    #[test]
    fn a_label_gives_way_to_a_sure_network() {
        let mut target = [0.0; 3];
        posterior(0, &[0.2, 0.5, 0.3], 0.1, &mut target);
        // 0.9 * 0.2, 0.05 * 0.5, 0.05 * 0.3, of 0.22.
        close(&target, [0.18 / 0.22, 0.025 / 0.22, 0.015 / 0.22]);
        posterior(0, &[0.001, 0.998, 0.001], 0.1, &mut target);
        assert_eq!(most_probable(&target).0, 1);
        posterior(0, &[0.0, 1.0, 0.0], 0.0, &mut target);
        close(&target, [1.0, 0.0, 0.0]);

        let constants = PseudoLabelsConstants { alignment: 0.0, label_noise: 0.1, ..Default::default() };
        let pool = matrix(&[[0.001, 0.998, 0.001], [0.9, 0.05, 0.05]]);
        let targets = Targets::from_pool(&constants, pool.clone(), &[(0, 0), (1, 0)], None, None);
        assert_eq!(targets.disputed, 0.5);
        assert_eq!((targets.labelled.rows(), targets.labelled.columns()), (2, 3));
        assert_eq!(Targets::from_labels(&[(0, 2)], None, 3).labelled.row(0), [0.0, 0.0, 1.0]);
        close(Targets::from_labels(&[(0, 2)], Some(&[0.4]), 3).labelled.row(0), [0.2, 0.2, 0.6]);
        // With label_noise 0.1 and a doubt of 0.5 a label is right with probability 0.45: 0.45 * 0.9 of that, and twice 0.275 * 0.05.
        let doubted = Targets::from_pool(&constants, pool, &[(1, 0)], Some(&[0.5]), None);
        close(doubted.labelled.row(0), [0.405 / 0.4325, 0.01375 / 0.4325, 0.01375 / 0.4325]);
    }
}
