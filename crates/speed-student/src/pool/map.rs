//! The map of a pool: a place for every image in a space of few dimensions.

use std::convert::Infallible;

use speed_core::random::Streams;
use speed_data::{ImageShape, Images};
use speed_nn::reach::reach;
use speed_nn::threads::QueueError;

use crate::pool::clusters::{Cluster, clusters, squared_distance};
use crate::pool::components::Components;
use crate::pool::embedding::Graph;
use crate::pool::features::{Features, unit};
use crate::pool::neighbours::Candidates;
use crate::pool::rows::{Rows, in_blocks};
use crate::pool::whitening::factors;

/// Images that one thread handles at a time.
const BLOCK: usize = 200;
/// Nearest images of the pool that place another image.
const PLACING: usize = 5;
/// Largest number of dimensions of the embedding.
const DIMENSIONS: usize = 20;
/// Distance within which a place decides about an image's label. The largest magnitude of a coordinate is 1.
const REACH: f64 = 0.8;

/// A step of the computation, for progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// Images become vectors, and vectors coordinates along the principal components.
    Components,
    /// Neighbours are searched.
    Neighbours,
    /// The graph is embedded; the number of rounds is not known before.
    Embedding,
}

/// An error of a map.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the fields")]
#[non_exhaustive]
pub enum MapError {
    #[error("a map needs at least one image, found none")]
    Empty,
    #[error("expected images of {expected} like the pool's, found {found}")]
    Shape { expected: ImageShape, found: ImageShape },
    /// Stored parts do not belong to this pool; found are the numbers of values of components, points, places and sparsity.
    #[error("the parts of a map do not fit a pool of {images} images of {shape}: found {found:?} values")]
    Parts { images: usize, shape: ImageShape, found: [usize; 4] },
    #[error("map of the pool: {0}")]
    Threads(#[from] QueueError<Infallible>),
}

/// A place for every image of a pool, such that images of one class are near each other.
#[derive(Clone, Debug, PartialEq)]
pub struct PoolMap {
    features: Features,
    shape: ImageShape,
    components: Components,
    /// The pool along the principal components.
    points: Rows<f32>,
    /// The places: the spectral embedding, the smoothest coordinate first.
    places: Rows<f64>,
    /// The mean distance of every image to its neighbours.
    sparsity: Vec<f64>,
    /// Where teachers compare an encoder's vectors; otherwise they compare places.
    whitened: Option<Whitened>,
}

/// Vectors of an encoder with coordinates in which classes differ most, scaled to length 1.
#[derive(Clone, Debug, PartialEq)]
struct Whitened {
    factors: Vec<f32>,
    pool: Rows<f64>,
}

impl Whitened {
    /// Returns the vectors of a pool, from its points along the principal components.
    fn of_points(features: Features, points: &Rows<f32>) -> Option<Self> {
        let factors = (features == Features::Encoded).then(|| factors(points))?;
        let pool = points.iter().flat_map(|point| Self::place(&factors, point)).collect();
        Some(Self { factors, pool: Rows::new(points.width, pool) })
    }

    fn place(factors: &[f32], point: &[f32]) -> Vec<f64> {
        unit(point.iter().zip(factors).map(|(value, factor)| value * factor)).into_iter().map(f64::from).collect()
    }
}

/// The numbers of a map, for storage: a map that is read from them has the same bits.
#[derive(Clone, Debug, PartialEq)]
pub struct MapParts {
    /// The mean vector and the principal directions, `(1 + components) x values of a vector`.
    pub components: Vec<f32>,
    /// The pool along the principal components, images x components.
    pub points: Vec<f32>,
    /// The places, images x dimensions.
    pub places: Vec<f32>,
    /// The mean distance of every image to its neighbours.
    pub sparsity: Vec<f32>,
}

impl PoolMap {
    /// Computes the map of `pool`. The time grows with the square of the pool. `on_images` is called with the task and the number of
    /// images or rounds that it finished.
    ///
    /// # Errors
    /// If the pool is empty, or a thread cannot be started.
    pub fn new(
        pool: Images<'_>,
        features: Features,
        streams: &Streams,
        threads: usize,
        on_images: &(dyn Fn(Task, usize) + Sync),
    ) -> Result<Self, MapError> {
        if pool.is_empty() {
            return Err(MapError::Empty);
        }
        let shape = pool.shape();
        let vectors = in_blocks(pool.len(), BLOCK, threads, |block| {
            block.flat_map(|i| features.vector(pool, i)).collect::<Vec<f32>>()
        })?;
        let vectors = Rows::new(features.width(shape), vectors.concat());
        let components =
            Components::fit(&vectors, features.components(), &mut streams.stream("components", 0), threads)?;
        let points = in_blocks(pool.len(), BLOCK, threads, |block| {
            on_images(Task::Components, block.len());
            block.flat_map(|i| features.point(&components, vectors.row(i))).collect::<Vec<f32>>()
        })?;
        let points = Rows::new(components.count(), points.concat());
        drop(vectors);
        let near = Candidates::new(&points).of_each_other(&points, features.neighbours(), threads, &|images| {
            on_images(Task::Neighbours, images);
        })?;
        let mean = |near: &Vec<(f32, u32)>| {
            near.iter().map(|&(squared, _)| libm::sqrt(f64::from(squared))).sum::<f64>() / near.len().max(1) as f64
        };
        let sparsity = single(near.iter().map(mean));
        let mut stream = streams.stream("embedding", 0);
        let places = Graph::new(&near).embed(DIMENSIONS, &mut stream, threads, &|| on_images(Task::Embedding, 1))?;
        let places = Rows::new(places.width, single(places.values.iter().copied()));
        let whitened = Whitened::of_points(features, &points);
        Ok(Self { features, shape, components, points, places, sparsity, whitened })
    }

    /// Reads the map of a pool from its parts.
    ///
    /// # Errors
    /// If the parts have other sizes than those of a map of such a pool.
    pub fn from_parts(pool: Images<'_>, features: Features, parts: &MapParts) -> Result<Self, MapError> {
        let MapParts { components, points, places, sparsity } = parts;
        let (shape, images, width) = (pool.shape(), pool.len(), features.width(pool.shape()));
        let found = [components.len(), points.len(), places.len(), sparsity.len()];
        let fault = || MapError::Parts { images, shape, found };
        let count = (components.len() / width).checked_sub(1).filter(|count| *count > 0).ok_or_else(fault)?;
        let dimensions = places.len() / images.max(1);
        let sizes = [(1 + count) * width, images * count, images * dimensions, images];
        let is_finite = [components, points, places, sparsity].iter().all(|part| part.iter().all(|v| v.is_finite()));
        if sizes != found || dimensions == 0 || !is_finite {
            return Err(fault());
        }
        let wide = |values: &[f32]| values.iter().map(|&value| f64::from(value)).collect::<Vec<f64>>();
        let points = Rows::new(count, points.clone());
        Ok(Self {
            features,
            shape,
            whitened: Whitened::of_points(features, &points),
            components: Components::from_rows(width, components),
            points,
            places: Rows::new(dimensions, wide(places)),
            sparsity: wide(sparsity),
        })
    }

    /// Returns the parts of the map for storage.
    pub fn to_parts(&self) -> MapParts {
        MapParts {
            components: self.components.to_rows(),
            points: self.points.values.to_vec(),
            places: self.places.values.iter().map(|&value| value as f32).collect(),
            sparsity: self.sparsity.iter().map(|&value| value as f32).collect(),
        }
    }

    /// Returns the number of components and of dimensions.
    pub fn sizes(&self) -> [usize; 2] {
        [self.components.count(), self.places.width]
    }

    /// Returns the place of image `index` in the first `dimensions` dimensions.
    pub(crate) fn at(&self, index: usize, dimensions: usize) -> &[f64] {
        &self.places.row(index)[..self.dimensions(dimensions)]
    }

    /// Returns the number of dimensions in which images of this number of classes are compared: one for each class, but at least 10.
    pub fn dimensions_for(classes: usize) -> usize {
        classes.max(10)
    }

    fn compared(&self, index: usize, dimensions: usize) -> &[f64] {
        self.whitened.as_ref().map_or_else(|| self.at(index, dimensions), |whitened| whitened.pool.row(index))
    }

    fn dimensions(&self, wanted: usize) -> usize {
        wanted.clamp(1, self.places.width)
    }

    /// Divides the pool among at most `count` clusters. They are computed in as many dimensions, but at least 10, as far as the map has
    /// them.
    pub fn clusters(&self, count: usize, streams: &Streams) -> Vec<Cluster> {
        let dimensions = self.dimensions(count.max(10));
        // Of an encoder's places only the directions count (Ng, Jordan and Weiss, 2001): there are more classes than dense regions.
        let place = |place: &[f64]| {
            let length = libm::sqrt(place.iter().map(|value| value * value).sum());
            let scale = if self.features == Features::Encoded && length > 0.0 { length } else { 1.0 };
            place.iter().map(|value| value / scale).collect::<Vec<f64>>()
        };
        let places = self.places.iter().flat_map(|all| place(&all[..dimensions])).collect();
        let mut stream = streams.stream("clusters", count as u64);
        clusters(&Rows::new(dimensions, places), count, &self.sparsity, &mut stream)
    }

    /// Returns for each of `images` the place where teachers compare it, image after image: the mean of the places, in `dimensions`
    /// dimensions, of the five most similar images of the pool; or for an encoder its whitened vector. `on_images` is called with numbers of finished images.
    ///
    /// # Errors
    /// If the images have another size than the pool's, or a thread cannot be started.
    pub fn place(
        &self,
        images: Images<'_>,
        dimensions: usize,
        threads: usize,
        on_images: &(dyn Fn(usize) + Sync),
    ) -> Result<Vec<Vec<f64>>, MapError> {
        if images.shape() != self.shape {
            return Err(MapError::Shape { expected: self.shape, found: images.shape() });
        }
        let candidates = Candidates::new(&self.points);
        let blocks = in_blocks(images.len(), BLOCK, threads, |block| {
            let count = block.len();
            let place = |i: usize| {
                let point = self.features.point(&self.components, &self.features.vector(images, i));
                if let Some(whitened) = &self.whitened {
                    return Whitened::place(&whitened.factors, &point);
                }
                let near = candidates.nearest(&point, PLACING, None);
                let mut place = vec![0.0; self.dimensions(dimensions)];
                for (_, image) in &near {
                    let values = self.at(*image as usize, dimensions);
                    place.iter_mut().zip(values).for_each(|(sum, value)| *sum += value / near.len() as f64);
                }
                place
            };
            let placed: Vec<Vec<f64>> = block.map(place).collect();
            on_images(count);
            placed
        })?;
        Ok(blocks.into_iter().flatten().collect())
    }

    /// Returns the label that each image of the pool gets from `own`, at least one image with its place and label: the label of the
    /// nearest place, and of equally near ones the first. The flag says whether the image is like its nearest: whether its place is
    /// nearer than 0.8, or for an encoder's vectors, which have no such scale, within the [reach](speed_nn::reach) of `own`. An image
    /// that is unlike its nearest probably has a class of which `own` has no image. If the flag is not used, it costs nothing and is true.
    pub fn nearest_labels(&self, own: &[(&[f64], u8)], is_flag_used: bool) -> Vec<(u8, bool)> {
        let reach = match (is_flag_used, &self.whitened) {
            (false, _) => f64::INFINITY,
            (true, Some(_)) => squared_reach(own),
            (true, None) => REACH * REACH,
        };
        let label = |index: usize| {
            let mut best = (f64::INFINITY, 0);
            for &(place, label) in own {
                let distance = squared_distance(self.compared(index, place.len()), place);
                if distance < best.0 {
                    best = (distance, label);
                }
            }
            (best.1, best.0 < reach)
        };
        (0..self.points.len()).map(label).collect()
    }
}

/// Returns the squared distance below which an image of an encoder is like its nearest of `own`.
fn squared_reach(own: &[(&[f64], u8)]) -> f64 {
    let distance = |one: usize, other: usize| squared_distance(own[one].0, own[other].0);
    // An image at the reach is like its own ones. One image has no reach, so all images are like it.
    reach(own.len(), distance).unwrap_or(f64::INFINITY).next_up()
}

/// Rounds values to single precision, in which they are stored.
fn single(values: impl Iterator<Item = f64>) -> Vec<f64> {
    values.map(|value| f64::from(value as f32)).collect()
}

#[cfg(test)]
mod tests {
    use speed_data::Split;
    use speed_data::digits::{DigitsConfig, generate};

    use super::*;

    fn digits() -> Split {
        generate(DigitsConfig { train: 10, test: 600 }, &Streams::new(1)).test
    }

    fn map(pool: &Split, threads: usize) -> PoolMap {
        let pool = Images::new(pool);
        PoolMap::new(pool, Features::default(), &Streams::new(2), threads, &|_, _| ()).expect("a map")
    }

    #[test]
    fn threads_and_storage_do_not_change_a_bit() {
        let pool = digits();
        let one = map(&pool, 1);
        assert_eq!(one, map(&pool, 3));
        let parts = one.to_parts();
        assert_eq!(PoolMap::from_parts(Images::new(&pool), Features::Straightened, &parts).expect("a map"), one);
        let short = MapParts { sparsity: parts.sparsity[1..].to_vec(), ..parts.clone() };
        assert!(PoolMap::from_parts(Images::new(&pool), Features::Straightened, &short).is_err());
        let mut odd = parts;
        odd.places[3] = f32::NAN;
        assert!(PoolMap::from_parts(Images::new(&pool), Features::Straightened, &odd).is_err());
    }

    #[test]
    fn an_image_of_the_pool_is_placed_near_itself() {
        let pool = digits();
        let map = map(&pool, 2);
        let placed = map.place(Images::new(&pool), 10, 2, &|_| ()).expect("places");
        let is_near = |i: usize| {
            let own = squared_distance(&placed[i], map.at(i, 10));
            (0..pool.len()).filter(|&j| squared_distance(&placed[i], map.at(j, 10)) < own).count() < 60
        };
        assert!((0..pool.len()).filter(|&i| is_near(i)).count() > 540);
        let small = pool.slice(0..0);
        assert!(matches!(
            PoolMap::new(Images::new(&small), Features::default(), &Streams::new(1), 1, &|_, _| ()),
            Err(MapError::Empty)
        ));
    }

    #[test]
    fn clusters_of_digits_are_mostly_of_one_class_and_cover_the_pool() {
        let pool = digits();
        let clusters = map(&pool, 2).clusters(20, &Streams::new(3));
        let mut seen = vec![false; pool.len()];
        let mut right = 0;
        for cluster in &clusters {
            let of_typical = |&&image: &&usize| pool.label(image) == pool.label(cluster.typical);
            right += cluster.images.iter().filter(of_typical).count();
            cluster.images.iter().for_each(|&image| assert!(!std::mem::replace(&mut seen[image], true)));
        }
        assert!(seen.iter().all(|&seen| seen));
        assert!(right > 480, "{right} of 600 images have the class of their cluster's typical image");
    }

    #[test]
    fn a_few_labels_spread_to_nearest_places() {
        let pool = digits();
        let map = map(&pool, 2);
        let own: Vec<(&[f64], u8)> = (0..60).map(|i| (map.at(i, 10), pool.label(i))).collect();
        let labels = map.nearest_labels(&own, true);
        assert!((0..60).all(|i| labels[i] == (pool.label(i), true)));
        let right = (0..pool.len()).filter(|&i| labels[i].0 == pool.label(i)).count();
        assert!(right > 420, "{right} of 600 by the nearest of 60 images");
        // Most images of other classes are unlike those of a teacher with images of one class.
        let zeros: Vec<(&[f64], u8)> = own.iter().copied().filter(|(_, label)| *label == 0).collect();
        let labels = map.nearest_labels(&zeros, true);
        let alike = |is_zero: bool| (0..pool.len()).filter(|&i| (pool.label(i) == 0) == is_zero && labels[i].1).count();
        assert!(alike(true) > 40 && alike(false) < 270, "{} {}", alike(true), alike(false));
    }

    #[test]
    fn an_image_at_the_reach_is_like_its_own() {
        let places: [[f64; 1]; 3] = [[0.0], [1.0], [3.0]];
        let own: Vec<(&[f64], u8)> = places.iter().map(|place| (&place[..], 0)).collect();
        // The nearest distances are 1, 1 and 2; a fifth of three images is less than one, so the reach is the largest.
        let reach = squared_reach(&own);
        assert!(4.0 < reach && reach < 4.0 + 1e-12, "{reach}");
        assert_eq!(squared_reach(&own[..1]), f64::INFINITY);
    }
}
