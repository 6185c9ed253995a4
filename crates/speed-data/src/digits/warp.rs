//! Distortions of a written digit: a smooth bend of the plane, an affine map, then the size and position of MNIST's
//! digits.

use speed_core::random::Stream;

use super::glyphs::{Point, Stroke};
use super::render::SIDE;
use crate::random::bell;

/// Nodes of the bend on each side of the unit square.
const NODES: usize = 4;
/// Standard deviation of a node's displacement, in units of the digit's height.
const BEND: f32 = 0.030;
/// Standard deviation of the tangent of half the angle of rotation (about 12 degrees).
const HALF_ANGLE: f32 = 0.11;
/// Standard deviation of the slant (horizontal shift for each unit of height).
const SLANT: f32 = 0.32;
/// Relative standard deviation of the width.
const STRETCH: f32 = 0.16;
/// Relative standard deviation of the size.
const SCALE: f32 = 0.06;
/// Standard deviation of the position, in pixels.
const SHIFT: f32 = 0.25;
/// The box, in pixels, that a digit's strokes fill (MNIST's 20 minus a pen's width).
const BOX: f32 = 17.5;
/// Smallest distance between a stroke's middle and the border of the image, in pixels.
const MARGIN: f32 = 2.0;

/// Bends strokes, which lie in about the unit square, and maps them to pixel coordinates.
pub(super) fn distort(mut strokes: Vec<Stroke>, stream: &mut Stream) -> Vec<Stroke> {
    let bend = Bend::draw(stream);
    let affine = Affine::draw(stream);
    let scale = 1.0 + SCALE * bell(stream);
    let shift = [SHIFT * bell(stream), SHIFT * bell(stream)];
    map(&mut strokes, |point| affine.apply(bend.apply(point)));
    place(&mut strokes, scale, shift);
    strokes
}

fn map(strokes: &mut [Stroke], f: impl Fn(Point) -> Point) {
    strokes.iter_mut().flatten().for_each(|point| *point = f(*point));
}

/// Scales the strokes into MNIST's box, keeping their proportions, and moves their centre of mass to the middle of the
/// image, as far as the margin allows. `scale` and `shift` are the deviations of this digit.
fn place(strokes: &mut [Stroke], scale: f32, shift: Point) {
    let extreme = |k: usize, start, pick: fn(f32, f32) -> f32| {
        strokes.iter().flatten().fold(start, |extreme, point| pick(extreme, point[k]))
    };
    let low = [0, 1].map(|k| extreme(k, f32::INFINITY, f32::min));
    let high = [0, 1].map(|k| extreme(k, f32::NEG_INFINITY, f32::max));
    // Without the lower bound, a digit written as a dot would be enlarged too much.
    let factor = scale * BOX / (high[0] - low[0]).max(high[1] - low[1]).max(0.2);
    let centre = centre_of_mass(strokes);
    let last = (SIDE - 1) as f32;
    let origin = [0, 1].map(|k| {
        let wanted = 0.5 * last + shift[k] - factor * centre[k];
        wanted.max(MARGIN - factor * low[k]).min(last - MARGIN - factor * high[k])
    });
    map(strokes, |point| [0, 1].map(|k| factor * point[k] + origin[k]));
}

/// Returns the mean point of the ink; pieces are weighted by their length.
fn centre_of_mass(strokes: &[Stroke]) -> Point {
    let (mut sum, mut length) = ([0.0; 2], 0.0);
    for piece in strokes.iter().flat_map(|stroke| stroke.windows(2)) {
        let (from, to) = (piece[0], piece[1]);
        let weight = ((to[0] - from[0]) * (to[0] - from[0]) + (to[1] - from[1]) * (to[1] - from[1])).sqrt();
        (0..2).for_each(|k| sum[k] += 0.5 * weight * (from[k] + to[k]));
        length += weight;
    }
    sum.map(|s| s / length)
}

/// Rotation, slant and stretch about the middle of the unit square.
struct Affine([Point; 2]);

impl Affine {
    fn draw(stream: &mut Stream) -> Self {
        // The rational form of sine and cosine is exact and the same on every machine.
        let t = HALF_ANGLE * bell(stream);
        let (cos, sin) = ((1.0 - t * t) / (1.0 + t * t), 2.0 * t / (1.0 + t * t));
        let stretch = 1.0 + STRETCH * bell(stream);
        // Handwriting slants to the right more often than to the left.
        let slant = SLANT * (bell(stream) - 0.4);
        let (a, b) = (stretch, slant);
        Self([[cos * a, cos * b - sin], [sin * a, sin * b + cos]])
    }

    fn apply(&self, [x, y]: Point) -> Point {
        let (x, y) = (x - 0.5, y - 0.5);
        self.0.map(|row| row[0] * x + row[1] * y)
    }
}

/// A smooth random displacement of the plane: random at the nodes of a grid, smoothly interpolated between them
/// (a coarse relative of the elastic distortions of Simard et al. 2003).
struct Bend([[Point; NODES]; NODES]);

impl Bend {
    fn draw(stream: &mut Stream) -> Self {
        let mut nodes = [[[0.0; 2]; NODES]; NODES];
        nodes.iter_mut().flatten().flatten().for_each(|x| *x = BEND * bell(stream));
        Self(nodes)
    }

    fn apply(&self, [x, y]: Point) -> Point {
        let ((column, u), (row, v)) = (cell(x), cell(y));
        let node = |i: usize, j: usize, k: usize| self.0[row + i][column + j][k];
        let shift = |k| {
            let top = node(0, 0, k) + u * (node(0, 1, k) - node(0, 0, k));
            let bottom = node(1, 0, k) + u * (node(1, 1, k) - node(1, 0, k));
            top + v * (bottom - top)
        };
        [x + shift(0), y + shift(1)]
    }
}

/// Returns the grid cell of a coordinate, and the eased position within the cell.
fn cell(x: f32) -> (usize, f32) {
    let scaled = x.clamp(0.0, 1.0) * (NODES - 1) as f32;
    let cell = (scaled as usize).min(NODES - 2);
    let t = scaled - cell as f32;
    (cell, t * t * (3.0 - 2.0 * t))
}
