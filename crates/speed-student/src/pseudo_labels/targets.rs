//! What the student is to learn, from what its average says of the pool.

use speed_nn::matrix::Matrix;

/// Draws the probabilities `[images, classes]` towards equal class frequencies: every class is divided by its share of
/// all images to the power `strength`, and every row is normalised again (Berthelot et al. 2020, distribution
/// alignment, towards a uniform distribution).
pub(super) fn align(probabilities: &mut Matrix, strength: f32) {
    let (images, classes) = (probabilities.rows(), probabilities.columns());
    let mut share = vec![0.0_f64; classes];
    for image in 0..images {
        share.iter_mut().zip(probabilities.row(image)).for_each(|(sum, p)| *sum += f64::from(*p));
    }
    // A class that nobody is given stays so: its factor is bounded.
    let factor = |sum: &f64| (images as f64 / classes as f64 / sum.max(1.0)).powf(f64::from(strength)) as f32;
    let factors: Vec<f32> = share.iter().map(factor).collect();
    for image in 0..images {
        let row = probabilities.row_mut(image);
        row.iter_mut().zip(&factors).for_each(|(p, factor)| *p *= factor);
        let sum: f32 = row.iter().sum();
        row.iter_mut().for_each(|p| *p /= sum);
    }
}

/// The images whose most probable class has at least the probability that the class asks for, with that class.
///
/// A class asks for the mean confidence over all images, but for at most `greatest`, times its share of all images
/// relative to the most frequent class's (Wang et al. 2023, FreeMatch): a student that knows little yet learns from what it
/// is comparatively sure of, and classes that it neglects get a lower threshold.
pub(super) fn confident(probabilities: &Matrix, greatest: f32, adaptive: bool) -> Vec<(usize, u8)> {
    let (images, classes) = (probabilities.rows(), probabilities.columns());
    let (mut confidence, mut share) = (0.0_f64, vec![0.0_f64; classes]);
    for image in 0..images {
        let row = probabilities.row(image);
        confidence += f64::from(most_probable(row).1);
        share.iter_mut().zip(row).for_each(|(sum, p)| *sum += f64::from(*p));
    }
    let global = f64::from(greatest).min(confidence / images as f64);
    let largest = share.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let thresholds: Vec<f32> = share.iter().map(|share| if adaptive { (global * share / largest) as f32 } else { greatest }).collect();
    (0..images)
        .filter_map(|image| {
            let (class, p) = most_probable(probabilities.row(image));
            (p >= thresholds[usize::from(class)]).then_some((image, class))
        })
        .collect()
}

/// The distribution of the true class of an image whose given label is `label`, if the given label is right with
/// probability `1 - noise` and else any other class alike, and the classifier, which is to be an independent witness,
/// says `probabilities`: Bayes' theorem.
pub(super) fn posterior(label: u8, probabilities: &[f32], noise: f32, target: &mut [f32]) {
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

/// All of the probability at `label`.
pub(super) fn one_hot(label: u8, target: &mut [f32]) {
    target.fill(0.0);
    target[usize::from(label)] = 1.0;
}

/// The first of the most probable classes, and its probability.
pub(super) fn most_probable(row: &[f32]) -> (u8, f32) {
    let mut best = (0, f32::NEG_INFINITY);
    for (class, &p) in (0..=u8::MAX).zip(row) {
        if p > best.1 {
            best = (class, p);
        }
    }
    best
}
