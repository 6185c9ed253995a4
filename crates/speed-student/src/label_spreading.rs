//! Label spreading: a classifier without a network, with which a student is compared.
//!
//! Labels spread along a graph that connects each image of the pool with its nearest neighbours: Zhou et al., "Learning
//! with Local and Global Consistency", NIPS 2003. Graph, normalisation, limits and predictions are those of scikit-learn's
//! `LabelSpreading(kernel="knn")`.

use std::convert::Infallible;

use speed_nn::threads::{QueueError, map};

use crate::lesson::{check_labels, check_shapes};
use crate::pool::Queued;
use crate::{Images, InvalidData};

/// Images whose neighbours are searched together, so that an image of the pool is read once for all of them.
const TOGETHER: usize = 32;

/// Pixels whose squared differences are added as 32-bit integers: 65,025 * 2^15 < 2^32.
const ADDED: usize = 1 << 15;

/// Number of neighbours of an image, including itself; this and the other settings are scikit-learn's.
pub const NEIGHBOURS: usize = 7;
/// The share of an image's label that comes from its neighbours.
pub const ALPHA: f64 = 0.2;
/// Largest number of iterations.
pub const ITERATIONS: usize = 30;
/// The iterations end if the labels change by less in total.
pub const TOLERANCE: f64 = 1e-3;

/// An error of label spreading.
#[derive(Debug, thiserror::Error)]
pub enum SpreadingError {
    /// Images and labels that do not fit together.
    #[error(transparent)]
    Data(#[from] InvalidData),
    /// A thread could not be started.
    #[error("label spreading: {0}")]
    Threads(#[from] QueueError<Infallible>),
}

/// The images and labels of one classification.
#[derive(Clone, Copy, Debug)]
pub struct Spreading<'a> {
    /// The images along which labels spread.
    pub pool: Images<'a>,
    /// The labels, as (index in the pool, label).
    pub labelled: &'a [(usize, u8)],
    /// The images that are classified.
    pub test: Images<'a>,
    /// Number of classes.
    pub classes: usize,
}

impl Spreading<'_> {
    /// Returns the class of every test image; on a tie the lowest. `on_images` is called with the number of images whose
    /// neighbours were found: all images of the pool and all test images once.
    ///
    /// The time grows with the square of the pool, and the memory with the pool.
    ///
    /// # Errors
    /// If images and labels do not fit together, or a thread cannot be started.
    pub fn predict(&self, threads: usize, on_images: &(dyn Fn(usize) + Sync)) -> Result<Vec<u8>, SpreadingError> {
        self.predict_by(NEIGHBOURS, threads, on_images)
    }

    fn predict_by(
        &self,
        count: usize,
        threads: usize,
        on_images: &(dyn Fn(usize) + Sync),
    ) -> Result<Vec<u8>, SpreadingError> {
        check_shapes(self.pool.shape(), self.test.shape())?;
        check_labels(self.pool, self.labelled, self.classes)?;
        let count = count.clamp(1, self.pool.len());
        let graph = neighbours(self.pool, self.pool, count, threads, on_images)?;
        let spread = self.spread(&graph, count);
        let of_test = neighbours(self.pool, self.test, count, threads, on_images)?;
        let lowest = self.labelled.iter().map(|&(_, label)| label).min().unwrap_or_default();
        Ok(of_test.chunks_exact(count).map(|near| class(&spread, near, self.classes, lowest)).collect())
    }

    /// Returns the distributions over the classes of all images of the pool, image after image, given `count` neighbours
    /// of each.
    fn spread(&self, graph: &[u32], count: usize) -> Vec<f64> {
        let (images, classes) = (self.pool.len(), self.classes);
        let mut given = vec![0.0_f64; images * classes];
        for &(image, label) in self.labelled {
            given[image * classes..][..classes].fill(0.0);
            given[image * classes + usize::from(label)] = 1.0;
        }
        // The square root of the number of other images that have an image as a neighbour.
        let mut degrees = vec![0.0_f64; images];
        let near = |image: usize| graph[image * count..][..count].iter().map(|&other| other as usize);
        let others = |image: usize| near(image).filter(move |&other| other != image);
        (0..images).flat_map(others).for_each(|other| degrees[other] += 1.0);
        for degree in &mut degrees {
            *degree = if *degree > 0.0 { degree.sqrt() } else { 1.0 };
        }
        let (mut now, mut before) = (given.clone(), vec![0.0; given.len()]);
        for _ in 0..ITERATIONS {
            let change: f64 = now.iter().zip(&before).map(|(now, before)| (now - before).abs()).sum();
            if change < TOLERANCE {
                break;
            }
            std::mem::swap(&mut now, &mut before);
            for image in 0..images {
                let own = &mut now[image * classes..][..classes];
                own.fill(0.0);
                for other in others(image) {
                    let weight = 1.0 / (degrees[image] * degrees[other]);
                    let theirs = &before[other * classes..][..classes];
                    own.iter_mut().zip(theirs).for_each(|(own, theirs)| *own += weight * theirs);
                }
                let given = &given[image * classes..][..classes];
                own.iter_mut().zip(given).for_each(|(own, given)| *own = ALPHA * *own + (1.0 - ALPHA) * given);
            }
        }
        for distribution in now.chunks_exact_mut(classes) {
            let sum: f64 = distribution.iter().sum();
            if sum > 0.0 {
                distribution.iter_mut().for_each(|share| *share /= sum);
            }
        }
        now
    }
}

/// Returns the class with the largest sum over the distributions of some images; `lowest` if no label reached them.
fn class(spread: &[f64], near: &[u32], classes: usize, lowest: u8) -> u8 {
    let mut sums = vec![0.0_f64; classes];
    for &image in near {
        let distribution = &spread[image as usize * classes..][..classes];
        sums.iter_mut().zip(distribution).for_each(|(sum, share)| *sum += share);
    }
    let best = (0..classes).fold(0, |best, class| if sums[class] > sums[best] { class } else { best });
    if sums[best] > 0.0 { u8::try_from(best).expect("at most 256 classes") } else { lowest }
}

/// Returns for each of `images` its `count` nearest images of the pool, nearest first; of equally near ones those with the
/// lowest index.
fn neighbours(
    pool: Images<'_>,
    images: Images<'_>,
    count: usize,
    threads: usize,
    on_images: &(dyn Fn(usize) + Sync),
) -> Queued<Vec<u32>> {
    let firsts: Vec<usize> = (0..images.len()).step_by(TOGETHER).collect();
    let found = map(&firsts, threads, |&first, _| {
        let some = first..(first + TOGETHER).min(images.len());
        let mut nearest: Vec<Vec<(u64, u32)>> = vec![Vec::with_capacity(count + 1); some.len()];
        for other in 0..pool.len() {
            let pixels = pool.pixels(other);
            for (nearest, image) in nearest.iter_mut().zip(some.clone()) {
                let distance = squared_distance(images.pixels(image), pixels);
                if nearest.len() == count && nearest.last().is_some_and(|&(farthest, _)| farthest <= distance) {
                    continue;
                }
                let place = nearest.partition_point(|&(nearer, _)| nearer <= distance);
                nearest.insert(place, (distance, u32::try_from(other).expect("a pool of at most 10 million images")));
                nearest.truncate(count);
            }
        }
        on_images(some.len());
        Ok(nearest.into_iter().flatten().map(|(_, other)| other).collect::<Vec<u32>>())
    })?;
    Ok(found.concat())
}

fn squared_distance(one: &[u8], other: &[u8]) -> u64 {
    let square = |(&one, &other): (&u8, &u8)| {
        let difference = u32::from(one.abs_diff(other));
        difference * difference
    };
    let parts = one.chunks(ADDED).zip(other.chunks(ADDED));
    parts.map(|(one, other)| u64::from(one.iter().zip(other).map(square).sum::<u32>())).sum()
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use speed_data::{ImageShape, Split};

    use std::sync::Mutex;

    use super::*;

    /// Inputs and results of scikit-learn, from scripts/peers/small-pool/label_spreading.py.
    #[derive(Deserialize)]
    struct Peer {
        side: usize,
        classes: usize,
        pool: Vec<u8>,
        test: Vec<u8>,
        labelled: Vec<(usize, u8)>,
        distributions: Vec<Vec<f64>>,
        predictions: Vec<u8>,
    }

    fn split(side: usize, classes: usize, pixels: Vec<u8>) -> Split {
        let shape = ImageShape { channels: 1, height: side, width: side };
        let labels = vec![0; pixels.len() / shape.pixels()];
        Split::new(shape, classes, pixels, labels).expect("a split")
    }

    #[test]
    fn labels_spread_as_in_scikit_learn() {
        let peer: Peer = serde_json::from_str(include_str!("../tests/peers/label-spreading.json")).expect("a fixture");
        let pool = split(peer.side, peer.classes, peer.pool);
        let test = split(peer.side, peer.classes, peer.test);
        let (pool, test) = (Images::new(&pool), Images::new(&test));
        let task = Spreading { pool, labelled: &peer.labelled, test, classes: peer.classes };
        let graph = neighbours(pool, pool, NEIGHBOURS, 2, &|_| ()).expect("threads");
        let found = task.spread(&graph, NEIGHBOURS);
        for (found, expected) in found.iter().zip(peer.distributions.iter().flatten()) {
            assert!((found - expected).abs() < 1e-12, "{found} {expected}");
        }
        // A label of every class reaches a part of the pool, so the comparison is not one of zeros.
        assert!(peer.distributions.iter().any(|shares| shares.iter().filter(|share| **share > 0.01).count() > 1));
        for threads in [1, 3] {
            let images = Mutex::new(0);
            let counted = |some| *images.lock().expect("a count") += some;
            assert_eq!(task.predict(threads, &counted).expect("labels"), peer.predictions);
            assert_eq!(*images.lock().expect("a count"), pool.len() + test.len());
        }
    }

    #[test]
    fn distances_are_exact_in_the_largest_images() {
        let (white, black) = (vec![255; 3 * 256 * 256], vec![0; 3 * 256 * 256]);
        assert_eq!(squared_distance(&white, &black), 3 * 256 * 256 * 255 * 255);
        assert_eq!(squared_distance(&[1, 5], &[4, 1]), 25);
    }

    #[test]
    fn small_pools_and_unreached_images_have_a_class() {
        let pool = split(1, 3, vec![10, 20, 200]);
        let test = split(1, 3, vec![12, 199]);
        let task = Spreading { pool: Images::new(&pool), labelled: &[(0, 2)], test: Images::new(&test), classes: 3 };
        // More neighbours than images: all images are neighbours.
        assert_eq!(task.predict(1, &|_| ()).expect("labels"), [2, 2]);
        // One neighbour is the image itself, so no label reaches the others.
        assert_eq!(task.predict_by(1, 1, &|_| ()).expect("labels"), [2, 2]);
        for labelled in [&[(0, 3)][..], &[]] {
            assert!(Spreading { labelled, ..task }.predict(1, &|_| ()).is_err());
        }
    }
}
