//! Clusters of points by k-means.

use rand::RngExt;
use speed_core::random::Stream;

use crate::pool::rows::Rows;

/// Starts of k-means; the result with the smallest sum of squared distances is used.
const STARTS: usize = 10;
/// Rounds of Lloyd's algorithm, at most. It usually ends after a few dozen.
const ROUNDS: usize = 300;
/// A core has at least this number of images, if its cluster has.
pub(crate) const LEAST_CORE: usize = 20;

/// Returns the number of images of the core of a group: half of them, but at least [`LEAST_CORE`] if there are so many.
pub(crate) fn core_of(images: usize) -> usize {
    (images / 2).max(LEAST_CORE).min(images)
}

/// A group of images of the pool that are near each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// Its images, the nearest to its centre first.
    pub images: Vec<usize>,
    /// The image that is near the centre and in a dense region: the sum of its ranks by both is the smallest.
    pub typical: usize,
}

impl Cluster {
    /// Returns the core: the half of the images that is nearest to the centre, but at least 20 images if the cluster has them.
    pub fn core(&self) -> &[usize] {
        &self.images[..core_of(self.images.len())]
    }
}

/// Divides points among `count` clusters by k-means: k-means++ starts (Arthur and Vassilvitskii, 2007) and Lloyd's algorithm.
/// `sparsity` has the mean distance of each point to its neighbours. The clusters have the order of their typical images.
pub(crate) fn clusters(points: &Rows<f64>, count: usize, sparsity: &[f64], stream: &mut Stream) -> Vec<Cluster> {
    let count = count.clamp(1, points.len());
    let best = (0..STARTS)
        .map(|_| Means::search(points, count, stream))
        .reduce(|best, next| if next.spread < best.spread { next } else { best });
    let means = best.expect("several starts");
    let mut members: Vec<Vec<usize>> = vec![Vec::new(); count];
    means.of_point.iter().enumerate().for_each(|(point, &cluster)| members[cluster].push(point));
    let cluster = |(mut images, centre): (Vec<usize>, &[f64])| {
        let distance = |image: &usize| squared_distance(points.row(*image), centre);
        images.sort_by(|one, other| distance(one).total_cmp(&distance(other)).then(one.cmp(other)));
        let mut dense: Vec<usize> = (0..images.len()).collect();
        dense.sort_by(|&one, &other| sparsity[images[one]].total_cmp(&sparsity[images[other]]).then(one.cmp(&other)));
        let typical = dense.iter().enumerate().min_by_key(|&(rank, &place)| (rank + place, place));
        let typical = typical.map(|(_, &place)| images[place])?;
        Some(Cluster { images, typical })
    };
    let mut clusters: Vec<Cluster> = members.into_iter().zip(means.centres.iter()).filter_map(cluster).collect();
    clusters.sort_by_key(|cluster| cluster.typical);
    clusters
}

/// The centres of clusters, and the cluster of each point.
struct Means {
    centres: Rows<f64>,
    of_point: Vec<usize>,
    /// The sum of the squared distances of all points to their centres.
    spread: f64,
}

impl Means {
    fn search(points: &Rows<f64>, count: usize, stream: &mut Stream) -> Self {
        let mut means =
            Self { centres: starts(points, count, stream), of_point: vec![usize::MAX; points.len()], spread: 0.0 };
        for _ in 0..ROUNDS {
            if !means.assign(points) {
                break;
            }
            means.centre(points);
        }
        means
    }

    /// Assigns every point to its nearest centre, and returns whether an assignment changed.
    fn assign(&mut self, points: &Rows<f64>) -> bool {
        let mut is_changed = false;
        self.spread = 0.0;
        for (point, cluster) in points.iter().zip(&mut self.of_point) {
            let (mut best, mut least) = (0, f64::INFINITY);
            for (centre, values) in self.centres.iter().enumerate() {
                let distance = squared_distance(point, values);
                if distance < least {
                    (best, least) = (centre, distance);
                }
            }
            is_changed |= *cluster != best;
            *cluster = best;
            self.spread += least;
        }
        is_changed
    }

    /// Moves every centre to the mean of its points; a centre without points moves to the point farthest from its own centre.
    fn centre(&mut self, points: &Rows<f64>) {
        let width = points.width;
        let mut sums = vec![0.0; self.centres.values.len()];
        let mut counts = vec![0_usize; self.centres.len()];
        for (point, &cluster) in points.iter().zip(&self.of_point) {
            counts[cluster] += 1;
            sums[cluster * width..][..width].iter_mut().zip(point).for_each(|(sum, value)| *sum += value);
        }
        for (cluster, &count) in counts.iter().enumerate() {
            let sum = &mut sums[cluster * width..][..width];
            if count > 0 {
                sum.iter_mut().for_each(|sum| *sum /= count as f64);
            } else {
                let distance = |i: &usize| squared_distance(points.row(*i), self.centres.row(self.of_point[*i]));
                let farthest = (0..points.len()).max_by(|one, other| distance(one).total_cmp(&distance(other)));
                sum.copy_from_slice(points.row(farthest.unwrap_or_default()));
            }
        }
        self.centres = Rows::new(width, sums);
    }
}

/// Returns the k-means++ starts: points, each drawn with a probability proportional to the squared distance to the nearest earlier one.
fn starts(points: &Rows<f64>, count: usize, stream: &mut Stream) -> Rows<f64> {
    let mut centres = points.row(stream.random_range(0..points.len())).to_vec();
    let mut nearest: Vec<f64> = points.iter().map(|point| squared_distance(point, &centres)).collect();
    for _ in 1..count {
        let total: f64 = nearest.iter().sum();
        let mut left = total * stream.random::<f64>();
        let next = nearest.iter().position(|&distance| {
            left -= distance;
            left < 0.0
        });
        // All points lie at centres: any point is as good.
        let next = next.unwrap_or(points.len() - 1);
        centres.extend_from_slice(points.row(next));
        for (nearest, point) in nearest.iter_mut().zip(points.iter()) {
            *nearest = nearest.min(squared_distance(point, points.row(next)));
        }
    }
    Rows::new(points.width, centres)
}

pub(crate) fn squared_distance(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(x, y)| (x - y) * (x - y)).sum()
}

#[cfg(test)]
mod tests {
    use rand_distr::{Distribution, StandardNormal};
    use speed_core::random::Streams;

    use super::*;

    #[test]
    fn separate_clouds_are_found() {
        let mut stream = Streams::new(4).stream("clouds", 0);
        let centres = [[0.0, 0.0], [9.0, 0.0], [0.0, 9.0], [9.0, 9.0]];
        let mut values = Vec::new();
        for i in 0..400 {
            let mut noise = || Distribution::<f64>::sample(&StandardNormal, &mut stream);
            values.extend([centres[i % 4][0] + noise(), centres[i % 4][1] + noise()]);
        }
        let points = Rows::new(2, values);
        let found = clusters(&points, 4, &[0.0; 400], &mut stream);
        assert_eq!(found.len(), 4);
        for cluster in &found {
            assert!(
                cluster.images.iter().all(|image| image % 4 == cluster.images[0] % 4) && cluster.images.len() == 100
            );
            assert_eq!((cluster.core().len(), cluster.typical), (50, cluster.images[0]));
        }
    }

    #[test]
    fn the_typical_image_is_central_and_dense() {
        // One cluster: images 0 to 4 at -2, -1, 0, 1, 2 around the mean 0; the dense ones are 3 and 2.
        let points = Rows::new(1, vec![-2.0, -1.0, 0.0, 1.0, 2.0]);
        let cluster = &clusters(&points, 1, &[5.0, 4.0, 2.0, 1.0, 3.0], &mut Streams::new(1).stream("x", 0))[0];
        assert_eq!((cluster.images[0], cluster.typical), (2, 2));
        assert_eq!(cluster.core().len(), 5);
    }

    #[test]
    fn equal_points_and_many_clusters_end() {
        let points = Rows::new(1, vec![1.0; 6]);
        let found = clusters(&points, 4, &[0.0; 6], &mut Streams::new(1).stream("x", 0));
        assert_eq!(found.iter().map(|cluster| cluster.images.len()).sum::<usize>(), 6);
    }
}
