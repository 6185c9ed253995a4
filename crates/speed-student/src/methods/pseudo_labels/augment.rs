//! Random views of an image.

use std::ops::Range;

use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};
use speed_core::random::Stream;
use speed_data::ImageShape;

/// Largest distances of a random view from its image. If all are zero, the view is the image.
#[derive(Clone, Copy, Debug)]
pub(super) struct Augmentation {
    /// Largest shift in either direction, in pixels; uniform.
    pub(super) shift: f64,
    /// Largest rotation about the centre, in radians; uniform.
    pub(super) rotation: f64,
    /// Largest change of size: height and width are each multiplied by `e^s`, with s uniform within `-scale..scale`.
    pub(super) scale: f64,
    /// Largest shear: columns are moved by this number of rows per column, and rows by this number of columns per row;
    /// uniform.
    pub(super) shear: f64,
    /// Standard deviation, in pixels, of the displacements of a grid of [`GRID`] x [`GRID`] points, with interpolation
    /// between them: an elastic deformation.
    pub(super) elastic: f64,
    /// Number of rectangles at random places that are each filled with one grey level (Zhong et al. 2020, random
    /// erasing).
    pub(super) erasures: usize,
    /// Largest share of the image that one rectangle covers; uniform. Its height is from a quarter to four times its
    /// width.
    pub(super) erased: f64,
}

/// Number of grid points in either direction whose displacement an elastic deformation draws.
const GRID: usize = 5;

/// The largest ratio of an erased rectangle's sides.
const ASPECT: f64 = 4.0;

struct View {
    /// `image = centre + linear (view - centre) + shift`, rows and columns.
    linear: [[f32; 2]; 2],
    shift: [f32; 2],
    /// Displacement of every grid point in rows and columns; `None` without elastic deformation.
    elastic: Option<[[[f32; GRID]; GRID]; 2]>,
}

impl Augmentation {
    fn draw(&self, stream: &mut Stream) -> View {
        let mut within = |bound: f64| ((2.0 * stream.random::<f64>() - 1.0) * bound) as f32;
        // The standard library's functions differ between systems in the last bits, so libm is used.
        let (sin, cos) = libm::sincosf(within(self.rotation));
        let scale = [libm::expf(within(self.scale)), libm::expf(within(self.scale))];
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
        View { linear, shift, elastic }
    }

    /// Writes a random view of the image `pixels` (CHW) to `view`: row by row, pixel by pixel, channel by channel
    /// (HWC), scaled to 0..=1. Beyond its border, the image has the values at the border.
    pub(super) fn write(&self, pixels: &[u8], shape: ImageShape, stream: &mut Stream, view: &mut [f32]) {
        let ImageShape { channels, height, width } = shape;
        assert_eq!([pixels.len(), view.len()], [shape.pixels(); 2], "an image of {shape}");
        let drawn = self.draw(stream);
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
            let (rows, columns) = self.draw_rectangle(height, width, stream);
            let value: f32 = stream.random();
            for row in view.chunks_exact_mut(width * channels).take(rows.end).skip(rows.start) {
                row[columns.start * channels..columns.end * channels].fill(value);
            }
        }
    }

    /// Draws the rows and columns to erase; the rectangle may lie partly outside.
    fn draw_rectangle(&self, height: usize, width: usize, stream: &mut Stream) -> (Range<usize>, Range<usize>) {
        let area = self.erased * stream.random::<f64>() * (height * width) as f64;
        let aspect = libm::pow(ASPECT, 2.0 * stream.random::<f64>() - 1.0);
        let mut place = |size: usize, side: f64| {
            let centre = stream.random::<f64>() * size as f64;
            let clip = |place: f64| place.round().clamp(0.0, size as f64) as usize;
            clip(centre - side / 2.0)..clip(centre + side / 2.0)
        };
        (place(height, (area * aspect).sqrt()), place(width, (area / aspect).sqrt()))
    }
}

impl View {
    /// Returns the place in the image of the view's pixel.
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

/// Returns the two integer places around `place`, within `0..size`, and the fraction of the way to the second.
#[inline(always)]
fn neighbours(place: f32, size: usize) -> (usize, usize, f32) {
    let place = place.clamp(0.0, (size - 1) as f32);
    // Not negative, so the cast rounds down.
    let first = place as usize;
    (first, (first + 1).min(size - 1), place - first as f32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use speed_core::random::Streams;

    const NONE: Augmentation =
        Augmentation { shift: 0.0, rotation: 0.0, scale: 0.0, shear: 0.0, elastic: 0.0, erasures: 0, erased: 0.0 };
    const SHAPE: ImageShape = ImageShape { channels: 2, height: 3, width: 4 };

    fn stream(index: u64) -> Stream {
        Streams::new(1).stream("views", index)
    }

    fn view(augmentation: &Augmentation, pixels: &[u8], shape: ImageShape, index: u64) -> Vec<f32> {
        let mut view = vec![-1.0; shape.pixels()];
        augmentation.write(pixels, shape, &mut stream(index), &mut view);
        view
    }

    #[test]
    fn without_augmentation_a_view_is_the_image_with_channels_last() {
        let pixels: Vec<u8> = (0..24).collect();
        let expected: Vec<f32> = (0..12).flat_map(|i| [i as f32 / 255.0, (i + 12) as f32 / 255.0]).collect();
        assert_eq!(view(&NONE, &pixels, SHAPE, 0), expected);
        let single = ImageShape { channels: 1, height: 1, width: 1 };
        assert_eq!(view(&Augmentation { elastic: 3.0, shift: 5.0, ..NONE }, &[51], single, 0), [0.2]);
    }

    /// Returns the centre of mass of a view of a bright dot.
    fn centre(augmentation: &Augmentation, at: [usize; 2], index: u64) -> [f64; 2] {
        let shape = ImageShape { channels: 1, height: 21, width: 21 };
        let mut pixels = vec![0; 441];
        pixels[at[0] * 21 + at[1]] = 255;
        let view = view(augmentation, &pixels, shape, index);
        let mass: f64 = view.iter().map(|&v| f64::from(v)).sum();
        let moment = |place: fn(usize) -> usize| {
            view.iter().enumerate().map(|(i, &v)| place(i) as f64 * f64::from(v)).sum::<f64>() / mass
        };
        [moment(|i| i / 21), moment(|i| i % 21)]
    }

    #[test]
    fn shifts_and_rotations_stay_within_their_bounds_and_reach_them() {
        let (mut farthest_shift, mut farthest_turn) = (0.0_f64, 0.0_f64);
        for index in 0..400 {
            let [y, x] = centre(&Augmentation { shift: 2.0, ..NONE }, [10, 10], index);
            farthest_shift = farthest_shift.max((y - 10.0).abs()).max((x - 10.0).abs());
            let [y, x] = centre(&Augmentation { rotation: 0.5, ..NONE }, [10, 17], index);
            assert!(((y - 10.0).hypot(x - 10.0) - 7.0).abs() < 0.3, "a rotation keeps distances");
            farthest_turn = farthest_turn.max((y - 10.0).atan2(x - 10.0).abs());
        }
        assert!((1.9..2.05).contains(&farthest_shift), "{farthest_shift}");
        assert!((0.45..0.55).contains(&farthest_turn), "{farthest_turn}");
    }

    #[test]
    fn scale_and_shear_move_what_is_off_the_centre() {
        for augmentation in [
            Augmentation { scale: 0.3, ..NONE },
            Augmentation { shear: 0.3, ..NONE },
            Augmentation { elastic: 1.0, ..NONE },
        ] {
            let moved: Vec<[f64; 2]> = (0..50).map(|index| centre(&augmentation, [10, 16], index)).collect();
            assert!(moved.iter().any(|at| (at[0] - 10.0).abs() + (at[1] - 16.0).abs() > 0.7), "{augmentation:?}");
            assert!(
                moved.iter().all(|at| (at[0] - 10.0).abs() < 6.0 && (at[1] - 16.0).abs() < 6.0),
                "{augmentation:?}"
            );
        }
        // None of these moves the centre.
        let [y, x] = centre(&Augmentation { scale: 0.3, shear: 0.3, rotation: 1.0, ..NONE }, [10, 10], 3);
        assert!((y - 10.0).abs() < 0.2 && (x - 10.0).abs() < 0.2);
    }

    #[test]
    fn erasures_cover_at_most_their_share_in_one_grey_level() {
        let shape = ImageShape { channels: 3, height: 20, width: 30 };
        let pixels = vec![255; shape.pixels()];
        let (augmentation, mut covered) = (Augmentation { erasures: 1, erased: 0.2, ..NONE }, 0);
        for index in 0..200 {
            let view = view(&augmentation, &pixels, shape, index);
            let mut levels: Vec<f32> = view.iter().copied().filter(|&v| v != 1.0).collect();
            // Sides are rounded to integer pixels.
            assert!(levels.len() <= 3 * 150, "{} values", levels.len());
            covered += levels.len();
            levels.dedup();
            assert!(levels.len() <= 1);
        }
        // A tenth on average, less the parts that lie outside.
        let share = covered as f64 / (200.0 * 1800.0);
        assert!((0.04..0.1).contains(&share), "{share}");
    }

    #[test]
    fn the_same_stream_gives_the_same_view() {
        let pixels: Vec<u8> = (0..24).map(|i| i * 10).collect();
        let all =
            Augmentation { shift: 1.0, rotation: 1.0, scale: 0.2, shear: 0.2, elastic: 1.0, erasures: 2, erased: 0.2 };
        assert_eq!(view(&all, &pixels, SHAPE, 5), view(&all, &pixels, SHAPE, 5));
        assert_ne!(view(&all, &pixels, SHAPE, 5), view(&all, &pixels, SHAPE, 6));
        assert!(view(&all, &pixels, SHAPE, 5).iter().all(|v| (0.0..=1.0).contains(v)));
    }
}
