//! The probability of every class, given noisy answers about images and the map on which similar images are near each other.

use serde::{Deserialize, Serialize};

use crate::pool::clusters::squared_distance;
use crate::pool::map::PoolMap;

/// Distance at which two images have the same class with a probability of about `e^-1/2`, beyond chance. The largest magnitude of a
/// coordinate is 1.
const NEAR: f64 = 0.15;
/// Likeness below which two answers say nothing about each other.
const LEAST_LIKENESS: f64 = 1e-6;
/// Largest doubt, so that it is below 1 in single precision.
const MAX_DOUBT: f32 = 0.999;
/// Rounds of the estimation of the share of wrong answers, which changes by less than a thousandth in the last ones.
const ROUNDS: usize = 30;
/// The estimated share of wrong answers at the start, and its limits.
const START: f64 = 0.3;
const LIMITS: [f64; 2] = [1e-3, 0.9];

/// An answer about one image or about a group of images.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// The images of the pool.
    pub images: &'a [usize],
    /// The released label.
    pub label: u8,
}

/// The most probable class of the images of an answer, given all answers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Belief {
    /// The class.
    pub label: u8,
    /// The probability that another class is right, at least 0 and below 1.
    pub doubt: f32,
}

impl PoolMap {
    /// Returns a belief for each answer, given all answers: naive Bayes over the map.
    ///
    /// An answer is wrong with a probability `w`, and then any other class with equal probability. Two answers at a distance `d` are
    /// about the same class with a probability of `s + (1 - s) / classes`, where `s = exp(-d^2 / (2 h^2))` and `h` is
    /// 0.15; a group lies at the mean of its images. Expectation maximisation estimates `w` from the answers alone, so
    /// neither votes nor true labels are used, and the beliefs have the epsilon of the answers (post-processing).
    pub fn beliefs(&self, answers: &[Answer<'_>], classes: usize) -> Vec<Belief> {
        let near = self.near_answers(answers, classes);
        let chance = 1.0 / classes as f64;
        let (mut wrong, mut beliefs) = (START, Vec::new());
        for _ in 0..ROUNDS {
            // The probabilities of an answer if its label is right, and if another class is.
            let (right, other) = (1.0 - wrong, wrong / (classes.max(2) - 1) as f64);
            let of_answer = |(answer, near): (&Answer<'_>, &Vec<(usize, f64)>)| {
                let mut logs = vec![libm::log(other); classes];
                logs[usize::from(answer.label)] = libm::log(right);
                for &(neighbour, same) in near {
                    let seen = |probability: f64| libm::log(same * probability + (1.0 - same) * chance);
                    let (label, [right, other]) = (usize::from(answers[neighbour].label), [right, other].map(seen));
                    let likelihood = |class| if class == label { right } else { other };
                    logs.iter_mut().enumerate().for_each(|(class, log)| *log += likelihood(class));
                }
                distribution(logs)
            };
            beliefs = answers.iter().zip(&near).map(of_answer).collect();
            let doubted: f64 = answers.iter().zip(&beliefs).map(|(answer, p)| 1.0 - p[usize::from(answer.label)]).sum();
            wrong = (doubted / answers.len().max(1) as f64).clamp(LIMITS[0], LIMITS[1]);
        }
        beliefs.iter().map(|probabilities| most_probable(probabilities)).collect()
    }

    /// Returns the other answers near each answer, with their likeness `s`. Answers that are far away say nothing.
    fn near_answers(&self, answers: &[Answer<'_>], classes: usize) -> Vec<Vec<(usize, f64)>> {
        let places: Vec<Vec<f64>> = answers.iter().map(|answer| self.mean_place(answer.images, classes)).collect();
        let likeness = |one: &[f64], other: &[f64]| libm::exp(-squared_distance(one, other) / (2.0 * NEAR * NEAR));
        let near = |(i, place): (usize, &Vec<f64>)| {
            let others = places.iter().enumerate().filter(|(j, _)| *j != i);
            others.map(|(j, there)| (j, likeness(place, there))).filter(|(_, same)| *same > LEAST_LIKENESS).collect()
        };
        places.iter().enumerate().map(near).collect()
    }

    /// Returns the mean place of images, in the dimensions for this number of classes or clusters.
    pub(crate) fn mean_place(&self, images: &[usize], classes: usize) -> Vec<f64> {
        let dimensions = Self::dimensions_for(classes);
        let mut mean = vec![0.0; self.at(images[0], dimensions).len()];
        for &image in images {
            mean.iter_mut()
                .zip(self.at(image, dimensions))
                .for_each(|(sum, value)| *sum += value / images.len() as f64);
        }
        mean
    }
}

/// Returns probabilities from logarithms without their common constant.
fn distribution(logs: Vec<f64>) -> Vec<f64> {
    let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = logs.into_iter().map(|log| libm::exp(log - largest)).collect();
    let sum: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / sum).collect()
}

fn most_probable(probabilities: &[f64]) -> Belief {
    let best = (0..probabilities.len())
        .fold(0, |best, class| if probabilities[class] > probabilities[best] { class } else { best });
    let doubt = probabilities.iter().enumerate().filter(|(class, _)| *class != best).map(|(_, p)| p).sum::<f64>();
    Belief { label: u8::try_from(best).expect("at most 256 classes"), doubt: (doubt as f32).min(MAX_DOUBT) }
}

#[cfg(test)]
mod tests {
    use rand::RngExt;
    use rand::seq::index::sample;
    use speed_core::random::Streams;
    use speed_data::Images;
    use speed_data::digits::{DigitsConfig, generate};

    use super::*;
    use crate::pool::Features;

    #[test]
    fn near_answers_outvote_wrong_ones_and_doubts_are_calibrated() {
        let pool = generate(DigitsConfig { train: 10, test: 1500 }, &Streams::new(1)).test;
        let map =
            PoolMap::new(Images::new(&pool), Features::default(), &Streams::new(2), 2, &|_, _| ()).expect("a map");
        let mut stream = Streams::new(3).stream("answers", 0);
        let queries: Vec<[usize; 1]> = sample(&mut stream, pool.len(), 200).into_iter().map(|image| [image]).collect();
        let noisy = |image: usize, stream: &mut speed_core::random::Stream| {
            let shift = if stream.random::<f64>() < 0.4 { stream.random_range(1..10) } else { 0 };
            (pool.label(image) + shift) % 10
        };
        let labels: Vec<u8> = queries.iter().map(|query| noisy(query[0], &mut stream)).collect();
        let answers: Vec<Answer<'_>> =
            queries.iter().zip(&labels).map(|(images, &label)| Answer { images, label }).collect();
        let beliefs = map.beliefs(&answers, 10);
        let right = |found: &dyn Fn(usize) -> u8| (0..200).filter(|&i| found(i) == pool.label(queries[i][0])).count();
        let (before, after) = (right(&|i| labels[i]), right(&|i| beliefs[i].label));
        assert!((100..140).contains(&before) && after >= before + 30, "{before} right answers, {after} right beliefs");
        let expected: f64 = beliefs.iter().map(|belief| 1.0 - f64::from(belief.doubt)).sum();
        assert!((expected - after as f64).abs() < 25.0, "{expected} expected, {after} found");
    }

    #[test]
    fn one_answer_is_believed_and_no_answer_is_no_belief() {
        let pool = generate(DigitsConfig { train: 10, test: 100 }, &Streams::new(1)).test;
        let map =
            PoolMap::new(Images::new(&pool), Features::default(), &Streams::new(2), 1, &|_, _| ()).expect("a map");
        let belief = map.beliefs(&[Answer { images: &[1, 2, 3], label: 7 }], 10)[0];
        assert!(belief.label == 7 && belief.doubt < 0.5, "{belief:?}");
        assert!(map.beliefs(&[], 10).is_empty());
    }
}
