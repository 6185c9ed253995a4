//! A second opinion on the pool: labels spread along a graph of neighbouring images.
//!
//! "Learning with local and global consistency" (Zhou et al., 2004). It knows no augmentation and trains nothing, so its
//! mistakes are others than the network's: what both agree on is nearly always right, wrong given labels included, which
//! their neighbours outvote.

use speed_data::ImageShape;
use speed_nn::matrix::{Matrix, multiply};

use crate::Images;

/// Neighbours of every image.
const NEIGHBOURS: usize = 5;
/// How much an image's neighbours weigh against its given label in every round.
const SPREAD: f32 = 0.99;
const ROUNDS: usize = 60;
/// Images whose distances to all others are computed at a time.
const BLOCK: usize = 256;
/// One side of the binomial filter that approximates a Gaussian of variance 1, before every second pixel is left out: small
/// shifts then change distances little.
const BLUR: [f32; 3] = [6.0 / 16.0, 4.0 / 16.0, 1.0 / 16.0];

/// The probabilities `[images, classes]` that the graph gives to every image of the pool, from the labels of some.
pub(super) fn spread(pool: Images<'_>, labels: &[(usize, u8)], classes: usize) -> Matrix {
    let graph = Graph::new(&features(pool));
    let mut given = Matrix::zeros(pool.len(), classes);
    for &(image, label) in labels {
        given.row_mut(image)[usize::from(label)] += 1.0;
    }
    let mut scores = given.clone();
    let mut next = Matrix::zeros(pool.len(), classes);
    for _ in 0..ROUNDS {
        next.values_mut().iter_mut().zip(given.values()).for_each(|(to, given)| *to = (1.0 - SPREAD) * given);
        graph.add_neighbours(&scores, &mut next);
        std::mem::swap(&mut scores, &mut next);
    }
    // Every class gets the same mass, so that a class with many labels does not flood the others'.
    let mut mass = vec![0.0; classes];
    for image in 0..pool.len() {
        mass.iter_mut().zip(scores.row(image)).for_each(|(sum, score)| *sum += score);
    }
    for image in 0..pool.len() {
        let row = scores.row_mut(image);
        row.iter_mut().zip(&mass).for_each(|(score, mass)| *score = if *mass > 0.0 { *score / mass } else { 0.0 });
        let sum: f32 = row.iter().sum();
        // An image that no label reaches stays undecided.
        row.iter_mut().for_each(|score| *score = if sum > 0.0 { *score / sum } else { 1.0 / classes as f32 });
    }
    scores
}

/// Symmetric weights between neighbours, normalised by the roots of both degrees.
struct Graph {
    edges: Vec<(u32, u32, f32)>,
}

impl Graph {
    /// The graph of images with these features, one image a column.
    fn new(features: &Matrix) -> Self {
        let images = features.columns();
        let squares: Vec<f32> = column_squares(features);
        let mut edges = Vec::with_capacity(2 * NEIGHBOURS * images);
        let mut products = Matrix::default();
        for first in (0..images).step_by(BLOCK) {
            let block = first..(first + BLOCK).min(images);
            multiply(&mut products, features.columns_view(block.clone()).transposed(), features.view());
            for (row, image) in block.enumerate() {
                let distance = |other: usize| squares[image] + squares[other] - 2.0 * products.row(row)[other];
                let nearest = nearest(images, image, distance);
                // In units of the distance to the last of them.
                let scale = nearest.last().map_or(1.0, |&(_, distance)| distance.max(f32::MIN_POSITIVE));
                for (other, distance) in nearest {
                    let weight = (-4.0 * distance.max(0.0) / scale).exp();
                    edges.push((image as u32, other as u32, weight));
                    edges.push((other as u32, image as u32, weight));
                }
            }
        }
        // Both ends may have chosen the edge: the greater weight counts.
        edges.sort_unstable_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)).then(b.2.total_cmp(&a.2)));
        edges.dedup_by_key(|edge| (edge.0, edge.1));
        let mut degrees = vec![0.0_f32; images];
        for &(from, _, weight) in &edges {
            degrees[from as usize] += weight;
        }
        for (from, to, weight) in &mut edges {
            *weight /= (degrees[*from as usize] * degrees[*to as usize]).sqrt().max(f32::MIN_POSITIVE);
        }
        Self { edges }
    }

    /// Adds the neighbours' scores, times [`SPREAD`], to every image's.
    fn add_neighbours(&self, scores: &Matrix, to: &mut Matrix) {
        for &(image, other, weight) in &self.edges {
            let weight = SPREAD * weight;
            let row = to.row_mut(image as usize);
            row.iter_mut().zip(scores.row(other as usize)).for_each(|(to, score)| *to += weight * score);
        }
    }
}

/// The [`NEIGHBOURS`] images with the least distance from `image`, itself left out, nearest first.
fn nearest(images: usize, image: usize, distance: impl Fn(usize) -> f32) -> Vec<(usize, f32)> {
    let mut nearest: Vec<(usize, f32)> = Vec::with_capacity(NEIGHBOURS + 1);
    for other in (0..images).filter(|&other| other != image) {
        let d = distance(other);
        if nearest.len() < NEIGHBOURS || nearest.last().is_some_and(|last| d < last.1) {
            let place = nearest.partition_point(|&(_, known)| known <= d);
            nearest.insert(place, (other, d));
            nearest.truncate(NEIGHBOURS);
        }
    }
    nearest
}

/// Blurred images at half the size, one a column.
fn features(pool: Images<'_>) -> Matrix {
    let ImageShape { channels, height, width } = pool.shape();
    let (rows, columns) = (height.div_ceil(2), width.div_ceil(2));
    let mut all = Matrix::zeros(channels * rows * columns, pool.len());
    let mut blurred = vec![0.0; height * columns];
    for image in 0..pool.len() {
        for (channel, plane) in pool.pixels(image).chunks_exact(height * width).enumerate() {
            for (from, to) in plane.chunks_exact(width).zip(blurred.chunks_exact_mut(columns)) {
                for (x, to) in to.iter_mut().enumerate() {
                    *to = filter(2 * x, width, |x| f32::from(from[x]) / 255.0);
                }
            }
            for y in 0..rows {
                for x in 0..columns {
                    let value = filter(2 * y, height, |y| blurred[y * columns + x]);
                    all.row_mut((channel * rows + y) * columns + x)[image] = value;
                }
            }
        }
    }
    all
}

/// The weighted mean of the values around `place`, those outside `0..size` being 0.
fn filter(place: usize, size: usize, value: impl Fn(usize) -> f32) -> f32 {
    let mut sum = BLUR[0] * value(place);
    for (offset, weight) in (1..).zip(&BLUR[1..]) {
        sum += place.checked_sub(offset).map_or(0.0, |place| weight * value(place));
        sum += if place + offset < size { weight * value(place + offset) } else { 0.0 };
    }
    sum
}

/// The squared norm of every column.
fn column_squares(matrix: &Matrix) -> Vec<f32> {
    let mut squares = vec![0.0; matrix.columns()];
    for row in 0..matrix.rows() {
        squares.iter_mut().zip(matrix.row(row)).for_each(|(sum, value)| *sum += value * value);
    }
    squares
}
