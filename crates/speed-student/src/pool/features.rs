//! Images as vectors.

mod gradients;

use serde::{Deserialize, Serialize};
use speed_data::{ImageShape, Images};

use crate::pool::components::Components;

/// Larger images are reduced so that no side is longer, in pixels.
const LONGEST: usize = 32;
/// The largest slant that is removed, in columns per row.
const STEEPEST: f64 = 2.0;

/// The vector of an image, from which nearest neighbours are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Features {
    /// The grey levels of the image after its centre of mass is moved to the middle and its slant is removed. For handwriting on a
    /// dark background, whose styles differ most in slant.
    #[default]
    Straightened,
    /// The directions of edges in cells of 4 x 4 pixels, most of all in the middle of the image. For photographs, whose colours and light
    /// say little about the class.
    Gradients,
    /// The pixels of all channels.
    Pixels,
    /// The direction of an encoder's vector: its bytes less 128, scaled to length 1. No config and no option names it, because an encoder
    /// determines it.
    #[serde(skip_deserializing)]
    Encoded,
}

speed_core::named!(Features: Straightened = "straightened", Gradients = "gradients", Pixels = "pixels"; Encoded = "encoded");

impl Features {
    /// Returns the number of values of the vector of an image of this shape.
    pub(crate) fn width(self, shape: ImageShape) -> usize {
        let [height, width] = reduced(shape);
        match self {
            Self::Straightened => height * width,
            Self::Gradients => gradients::width([height, width]),
            Self::Pixels => height * width * shape.channels,
            Self::Encoded => shape.pixels(),
        }
    }

    /// Returns the point of a vector along principal components, in which neighbours are searched: of an encoder's vectors the direction.
    pub(crate) fn point(self, components: &Components, vector: &[f32]) -> Vec<f32> {
        let point = components.project(vector);
        if self == Self::Encoded { unit(point.into_iter()) } else { point }
    }

    /// Returns the number of principal components in which neighbours are searched.
    pub(crate) fn components(self) -> usize {
        match self {
            Self::Gradients => 60,
            Self::Straightened | Self::Pixels => 40,
            Self::Encoded => 128,
        }
    }

    /// Returns the number of nearest neighbours of an image in a map's graph.
    pub(crate) fn neighbours(self) -> usize {
        if self == Self::Encoded { 15 } else { 10 }
    }

    /// Returns the vector of image `index`: values of 0 to 1, channel by channel or cell by cell, or of -1 to 1 for a direction.
    pub(crate) fn vector(self, images: Images<'_>, index: usize) -> Vec<f32> {
        let (shape, pixels) = (images.shape(), images.pixels(index));
        let plane = shape.height * shape.width;
        let values = match self {
            Self::Pixels => channels(pixels, shape).concat(),
            Self::Encoded => return unit(pixels.iter().map(|&byte| f32::from(byte) - 128.0)),
            Self::Gradients => gradients::histograms(&channels(pixels, shape), reduced(shape)),
            Self::Straightened => {
                let grey = |i| (0..shape.channels).map(|c| f64::from(pixels[c * plane + i])).sum::<f64>();
                let scale = 255.0 * shape.channels as f64;
                let grey: Vec<f64> = (0..plane).map(|i| grey(i) / scale).collect();
                straighten(&reduce(&grey, shape), reduced(shape))
            }
        };
        values.into_iter().map(|value| value as f32).collect()
    }
}

/// Returns a vector of length 1 in the same direction; the vector 0 stays, which no encoder gives.
pub(crate) fn unit(values: impl Iterator<Item = f32>) -> Vec<f32> {
    let values: Vec<f32> = values.collect();
    let length = libm::sqrt(values.iter().map(|&value| f64::from(value) * f64::from(value)).sum());
    values.into_iter().map(|value| if length > 0.0 { (f64::from(value) / length) as f32 } else { 0.0 }).collect()
}

/// Returns the channels of an image after it was reduced, with values of 0 to 1.
fn channels(pixels: &[u8], shape: ImageShape) -> Vec<Vec<f64>> {
    let values = |channel: &[u8]| channel.iter().map(|&pixel| f64::from(pixel) / 255.0).collect::<Vec<f64>>();
    pixels.chunks_exact(shape.height * shape.width).map(|channel| reduce(&values(channel), shape)).collect()
}

fn block(shape: ImageShape) -> usize {
    shape.height.max(shape.width).div_ceil(LONGEST)
}

fn reduced(shape: ImageShape) -> [usize; 2] {
    let by = block(shape);
    [shape.height.div_ceil(by), shape.width.div_ceil(by)]
}

/// Returns the means of square blocks of pixels, so that no side is longer than [`LONGEST`].
fn reduce(channel: &[f64], shape: ImageShape) -> Vec<f64> {
    let by = block(shape);
    if by == 1 {
        return channel.to_vec();
    }
    let [height, width] = reduced(shape);
    let mut means = Vec::with_capacity(height * width);
    for row in 0..height {
        for column in 0..width {
            let rows = row * by..((row + 1) * by).min(shape.height);
            let columns = column * by..((column + 1) * by).min(shape.width);
            let count = (rows.len() * columns.len()) as f64;
            let sum: f64 = rows.flat_map(|r| columns.clone().map(move |c| channel[r * shape.width + c])).sum();
            means.push(sum / count);
        }
    }
    means
}

/// Moves the centre of mass to the middle, and shears the image so that the covariance of rows and columns of its mass is 0.
fn straighten(image: &[f64], [height, width]: [usize; 2]) -> Vec<f64> {
    let at = |i: usize| ((i / width) as f64, (i % width) as f64);
    let mass: f64 = image.iter().sum();
    if mass <= 0.0 {
        return image.to_vec();
    }
    let mean = |part: &dyn Fn(f64, f64) -> f64| {
        image.iter().enumerate().map(|(i, value)| value * part(at(i).0, at(i).1)).sum::<f64>() / mass
    };
    let (row, column) = (mean(&|row, _| row), mean(&|_, column| column));
    let variance = mean(&|r, _| (r - row) * (r - row));
    let covariance = mean(&|r, c| (r - row) * (c - column));
    let slant = if variance > 0.0 { (covariance / variance).clamp(-STEEPEST, STEEPEST) } else { 0.0 };
    let (middle, centre) = ((height as f64 - 1.0) / 2.0, (width as f64 - 1.0) / 2.0);
    let value = |r: i64, c: i64| {
        let inside = (0..height as i64).contains(&r) && (0..width as i64).contains(&c);
        if inside { image[r as usize * width + c as usize] } else { 0.0 }
    };
    (0..height * width)
        .map(|i| {
            let (r, c) = (at(i).0 - middle, at(i).1 - centre);
            let (from_row, from_column) = (r + row, c + column + slant * r);
            let (top, left) = (from_row.floor(), from_column.floor());
            let (down, right) = (from_row - top, from_column - left);
            let (top, left) = (top as i64, left as i64);
            let upper = value(top, left) * (1.0 - right) + value(top, left + 1) * right;
            let lower = value(top + 1, left) * (1.0 - right) + value(top + 1, left + 1) * right;
            upper * (1.0 - down) + lower * down
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use speed_data::Split;

    use super::*;

    #[test]
    fn the_direction_of_a_vector_does_not_depend_on_its_length() {
        let one = vector(Features::Encoded, 1, 3, 1, vec![131, 124, 128]);
        assert_eq!(one, [0.6, -0.8, 0.0]);
        assert_eq!(vector(Features::Encoded, 1, 3, 1, vec![134, 120, 128]), one);
        assert_eq!(vector(Features::Encoded, 1, 2, 1, vec![128, 128]), [0.0, 0.0]);
        assert_eq!(unit([3.0, -4.0].into_iter()), [0.6, -0.8]);
        assert_eq!(unit([0.0; 2].into_iter()), [0.0; 2]);
        assert_eq!(Features::Encoded.name(), "encoded");
        assert!("encoded".parse::<Features>().is_err() && serde_json::from_str::<Features>("\"encoded\"").is_err());
    }

    fn vector(features: Features, height: usize, width: usize, channels: usize, pixels: Vec<u8>) -> Vec<f32> {
        let shape = ImageShape { channels, height, width };
        let split = Split::new(shape, 1, pixels, vec![0]).expect("an image");
        let found = features.vector(Images::new(&split), 0);
        assert_eq!(found.len(), features.width(shape));
        found
    }

    #[test]
    fn a_slanted_stroke_becomes_upright_and_central() {
        // A stroke one column to the right in every row, in the upper left corner of 9 x 9 pixels.
        let mut pixels = vec![0; 81];
        (0..5).for_each(|row| pixels[row * 9 + row] = 255);
        let found = vector(Features::Straightened, 9, 9, 1, pixels);
        for (i, value) in found.iter().enumerate() {
            let expected = if i % 9 == 4 && (2..7).contains(&(i / 9)) { 1.0 } else { 0.0 };
            assert!((value - expected).abs() < 1e-6, "row {}, column {}: {value}", i / 9, i % 9);
        }
    }

    #[test]
    fn empty_and_full_images_have_finite_vectors() {
        for level in [0, 255] {
            let found = vector(Features::Straightened, 5, 4, 3, vec![level; 60]);
            assert!(found.iter().all(|value| (0.0..=1.0).contains(value)), "{found:?}");
        }
        // One row has no variance of rows.
        assert!(vector(Features::Straightened, 1, 3, 1, vec![1, 0, 9]).iter().all(|value| value.is_finite()));
    }

    #[test]
    fn large_images_become_means_of_blocks() {
        // 64 x 33 pixels become 32 x 17; the last column of blocks is one pixel wide.
        let pixels: Vec<u8> =
            (0..64 * 33).map(|i| if i % 33 == 32 { 255 } else { ((i / 33) % 2 * 102) as u8 }).collect();
        let found = vector(Features::Pixels, 64, 33, 1, pixels);
        assert_eq!(found.len(), 32 * 17);
        assert!((found[0] - 0.2).abs() < 1e-6 && (found[16] - 1.0).abs() < 1e-6);
        let colours = vector(Features::Pixels, 1, 2, 3, vec![0, 255, 51, 102, 153, 204]);
        assert_eq!(colours, [0.0, 1.0, 0.2, 0.4, 0.6, 0.8]);
    }
}
