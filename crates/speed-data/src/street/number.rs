//! The digit and its neighbours in the number, which are cut off at the sides of the image.

use rand::RngExt;
use speed_core::random::Stream;

use super::canvas::{Canvas, Colour, SIDE};
use super::glyphs::{Glyph, Glyphs};
use crate::random::bell;

/// Height of a digit's image in pixels; the digit takes five sevenths of it.
const HEIGHT: (f32, f32) = (30.0, 41.0);
/// Standard deviation of the tangent of half the angle of rotation.
const HALF_ANGLE: f32 = 0.03;
/// Standard deviations: slant, relative width, and position in pixels.
const SLANT: f32 = 0.08;
const STRETCH: f32 = 0.10;
const SHIFT: f32 = 0.9;
/// Change of size from the middle of the image to its side, by perspective.
const PERSPECTIVE: f32 = 0.09;
/// Share of digits with a neighbour on a side.
const NEIGHBOURS: f64 = 0.6;
/// Distance of neighbours, as a share of a digit's image.
const DISTANCE: (f32, f32) = (0.56, 0.76);
/// Share of numbers with a shadow.
const SHADOWS: f64 = 0.2;

pub(super) fn write(canvas: &mut Canvas, glyphs: &Glyphs<'_>, label: usize, paint: Colour, stream: &mut Stream) {
    let mut digits: Vec<(Glyph<'_>, f32)> = vec![(glyphs.of_class(label, stream), 0.0)];
    for side in [-1.0, 1.0] {
        if stream.random_bool(NEIGHBOURS) {
            let distance = DISTANCE.0 + (DISTANCE.1 - DISTANCE.0) * stream.random::<f32>();
            digits.push((glyphs.any(stream), side * distance));
        }
    }
    let view = View::draw(stream);
    let ink = |x: f32, y: f32| {
        let [x, y] = view.of_pixel(x, y);
        digits.iter().fold(0.0_f32, |ink, (glyph, place)| ink.max(glyph.ink([x - place, y])))
    };
    let shadow = stream.random_bool(SHADOWS).then(|| [1.0 + stream.random::<f32>(), 1.0 + stream.random::<f32>()]);
    for (place, pixel) in canvas.iter_mut().enumerate() {
        let (x, y) = ((place % SIDE) as f32, (place / SIDE) as f32);
        if let Some([right, down]) = shadow {
            let shade = 1.0 - 0.4 * ink(x - right, y - down);
            *pixel = pixel.map(|part| part * shade);
        }
        let ink = ink(x, y);
        for (part, paint) in pixel.iter_mut().zip(paint) {
            *part += ink * (paint - *part);
        }
    }
}

/// The map from pixels to places on the wall: rotated, slanted, and seen from the side.
struct View {
    rows: [[f32; 2]; 2],
    origin: [f32; 2],
    perspective: [f32; 2],
}

impl View {
    fn draw(stream: &mut Stream) -> Self {
        let height = HEIGHT.0 + (HEIGHT.1 - HEIGHT.0) * stream.random::<f32>();
        // The rational form of sine and cosine is the same on every machine.
        let t = HALF_ANGLE * bell(stream);
        let (cos, sin) = ((1.0 - t * t) / (1.0 + t * t), 2.0 * t / (1.0 + t * t));
        let stretch = (1.0 + STRETCH * bell(stream)).max(0.6);
        let slant = SLANT * bell(stream);
        let middle = 0.5 * (SIDE - 1) as f32;
        Self {
            rows: [[cos / (height * stretch), (sin + slant) / (height * stretch)], [-sin / height, cos / height]],
            origin: [(); 2].map(|()| middle + SHIFT * bell(stream)),
            perspective: [(); 2].map(|()| PERSPECTIVE * bell(stream) / middle),
        }
    }

    fn of_pixel(&self, x: f32, y: f32) -> [f32; 2] {
        let (x, y) = (x - self.origin[0], y - self.origin[1]);
        let depth = (1.0 + self.perspective[0] * x + self.perspective[1] * y).max(0.2);
        self.rows.map(|[a, b]| (a * x + b * y) / depth)
    }
}
