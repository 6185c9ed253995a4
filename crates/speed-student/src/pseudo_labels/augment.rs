//! Random views of an image.

use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};
use speed_data::ImageShape;
use speed_random::Stream;

/// How far a random view may be from its image. All zero: the image itself.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Augmentation {
    /// Greatest shift in either direction, in pixels; uniform.
    pub shift: f64,
    /// Greatest rotation about the centre, in radians; uniform.
    pub rotation: f64,
    /// Greatest change of size: height and width are each multiplied by `e^s`, s uniform within `-scale..scale`.
    pub scale: f64,
    /// Greatest shear: columns moved by this many rows a column and rows by this many columns a row; uniform.
    pub shear: f64,
    /// Standard deviation, in pixels, of the displacements of a grid of [`GRID`] x [`GRID`] points, between which it is
    /// interpolated: an elastic deformation.
    pub elastic: f64,
    /// Side of a square at a random place that is set to 0, in pixels; the square may lie partly outside.
    pub cutout: usize,
    /// Erase.
    pub erase: f64,
    /// How many.
    pub erasures: usize,
}

/// Points in either direction whose displacement an elastic deformation draws.
pub const GRID: usize = 5;

/// One drawn view: the map from its pixels back to the image's, and the square that is cut out.
struct View {
    /// `image = centre + linear (view - centre) + shift`, rows and columns.
    linear: [[f32; 2]; 2],
    shift: [f32; 2],
    /// Displacement of every grid point in rows and columns; `None` without elastic deformation.
    elastic: Option<[[[f32; GRID]; GRID]; 2]>,
    cutout: Option<[i64; 2]>,
}

impl Augmentation {
    fn draw(&self, shape: ImageShape, stream: &mut Stream) -> View {
        let mut within = |bound: f64| ((2.0 * stream.random::<f64>() - 1.0) * bound) as f32;
        let (sin, cos) = within(self.rotation).sin_cos();
        let scale = [within(self.scale).exp(), within(self.scale).exp()];
        let shear = [within(self.shear), within(self.shear)];
        let shift = [within(self.shift), within(self.shift)];
        // Rotation, then shear, then scale.
        let sheared = [[cos - sin * shear[1], cos * shear[0] - sin], [sin + cos * shear[1], sin * shear[0] + cos]];
        let linear = [sheared[0].map(|v| v * scale[0]), sheared[1].map(|v| v * scale[1])];
        let deviation = self.elastic as f32;
        let elastic = (self.elastic > 0.0).then(|| {
            let mut grid = [[[0.0; GRID]; GRID]; 2];
            grid.iter_mut().flatten().flatten().for_each(|v| {
                let normal: f32 = StandardNormal.sample(stream);
                *v = deviation * normal;
            });
            grid
        });
        let cutout = (self.cutout > 0).then(|| {
            let half = self.cutout as i64 / 2;
            [shape.height, shape.width].map(|size| stream.random_range(0..size as i64) - half)
        });
        View { linear, shift, elastic, cutout }
    }

    /// Writes a random view of the image `pixels` (CHW) to `view`: row by row, pixel by pixel, channel by channel
    /// (HWC), scaled to 0..=1. Beyond its border the image goes on with the values at the border.
    ///
    /// # Panics
    /// When `pixels` or `view` is no image of this shape.
    pub(super) fn write(&self, pixels: &[u8], shape: ImageShape, stream: &mut Stream, view: &mut [f32]) {
        let ImageShape { channels, height, width } = shape;
        assert_eq!([pixels.len(), view.len()], [shape.pixels(); 2], "an image of {shape}");
        let drawn = self.draw(shape, stream);
        for (y, row) in view.chunks_exact_mut(width * channels).enumerate() {
            for (x, values) in row.chunks_exact_mut(channels).enumerate() {
                let [from_y, from_x] = drawn.source(y, x, height, width);
                let (y0, y1, fy) = neighbours(from_y, height);
                let (x0, x1, fx) = neighbours(from_x, width);
                for (value, plane) in values.iter_mut().zip(pixels.chunks_exact(height * width)) {
                    let at = |y: usize, x: usize| f32::from(plane[y * width + x]);
                    let upper = at(y0, x0) + fx * (at(y0, x1) - at(y0, x0));
                    let lower = at(y1, x0) + fx * (at(y1, x1) - at(y1, x0));
                    *value = (upper + fy * (lower - upper)) / 255.0;
                }
            }
        }
        for _ in 0..self.erasures {
            let area = self.erase * stream.random::<f64>() * (height * width) as f64;
            let aspect = ((2.0 * stream.random::<f64>() - 1.0) * 4.0_f64.ln()).exp();
            let size = [(area * aspect).sqrt(), (area / aspect).sqrt()];
            let value: f32 = stream.random();
            let [rows, columns] = [0, 1].map(|axis| {
                let all = [height, width][axis];
                let centre = stream.random::<f64>() * all as f64;
                let clip = |place: f64| place.round().clamp(0.0, all as f64) as usize;
                clip(centre - size[axis] / 2.0)..clip(centre + size[axis] / 2.0)
            });
            for y in rows {
                view[(y * width + columns.start) * channels..(y * width + columns.end) * channels].fill(value);
            }
        }
        if let Some([top, left]) = drawn.cutout {
            let side = self.cutout as i64;
            let clip = |from: i64, size: usize| from.clamp(0, size as i64) as usize;
            let columns = clip(left, width) * channels..clip(left + side, width) * channels;
            for y in clip(top, height)..clip(top + side, height) {
                view[y * width * channels..][columns.clone()].fill(0.0);
            }
        }
    }
}

impl View {
    /// Where in the image the view's pixel comes from.
    #[inline(always)]
    fn source(&self, y: usize, x: usize, height: usize, width: usize) -> [f32; 2] {
        let centre = [(height - 1) as f32 / 2.0, (width - 1) as f32 / 2.0];
        let (dy, dx) = (y as f32 - centre[0], x as f32 - centre[1]);
        let mut source = [0, 1].map(|axis| {
            let [by_y, by_x] = self.linear[axis];
            centre[axis] + self.shift[axis] + by_y * dy + by_x * dx
        });
        if let Some(grid) = &self.elastic {
            let last = (GRID - 1) as f32;
            let (y0, y1, fy) = neighbours(y as f32 * last / (height - 1).max(1) as f32, GRID);
            let (x0, x1, fx) = neighbours(x as f32 * last / (width - 1).max(1) as f32, GRID);
            for (place, points) in source.iter_mut().zip(grid) {
                let upper = points[y0][x0] + fx * (points[y0][x1] - points[y0][x0]);
                let lower = points[y1][x0] + fx * (points[y1][x1] - points[y1][x0]);
                *place += upper + fy * (lower - upper);
            }
        }
        source
    }
}

/// The two whole places around `place`, within `0..size`, and how far it lies towards the second.
#[inline(always)]
fn neighbours(place: f32, size: usize) -> (usize, usize, f32) {
    let place = place.clamp(0.0, (size - 1) as f32);
    // Not negative, so the cast rounds down.
    let first = place as usize;
    (first, (first + 1).min(size - 1), place - first as f32)
}
