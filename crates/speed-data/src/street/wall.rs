//! The wall behind a number, and the paint of the number.

use rand::RngExt;
use speed_core::random::Stream;

use super::canvas::{Canvas, Colour, SIDE};

/// Difference in brightness between paint and wall: from barely visible to clear.
const CONTRAST: (f32, f32) = (0.20, 0.60);
/// Difference in hue between the colours.
const HUE: f32 = 0.18;
/// Share of walls with a frame or another edge in the picture.
const EDGES: f64 = 0.25;

/// Paints the wall, and returns a colour for the number.
pub(super) fn paint(canvas: &mut Canvas, stream: &mut Stream) -> Colour {
    let wall = colour(0.12 + 0.76 * stream.random::<f32>(), stream);
    let mean = (wall[0] + wall[1] + wall[2]) / 3.0;
    // Low contrasts are more frequent.
    let u = stream.random::<f32>();
    let contrast = CONTRAST.0 + (CONTRAST.1 - CONTRAST.0) * u * u;
    let brighter = if mean + contrast > 0.95 { false } else { mean - contrast < 0.05 || stream.random::<bool>() };
    let paint = colour(if brighter { mean + contrast } else { mean - contrast }, stream);
    canvas.fill(wall);
    if stream.random_bool(EDGES) {
        edge(canvas, stream);
    }
    paint
}

fn colour(brightness: f32, stream: &mut Stream) -> Colour {
    let hue: Colour = std::array::from_fn(|_| HUE * (stream.random::<f32>() - 0.5));
    let mean = (hue[0] + hue[1] + hue[2]) / 3.0;
    hue.map(|part| (brightness + part - mean).clamp(0.0, 1.0))
}

/// Gives the area beyond a straight line another colour.
fn edge(canvas: &mut Canvas, stream: &mut Stream) {
    let [a, b] = [(); 2].map(|()| 2.0 * stream.random::<f32>() - 1.0);
    let offset = (0.25 + 0.2 * stream.random::<f32>()) * SIDE as f32 * (a * a + b * b).sqrt();
    let brightness = stream.random();
    let other = colour(brightness, stream);
    let middle = 0.5 * (SIDE - 1) as f32;
    for (place, pixel) in canvas.iter_mut().enumerate() {
        let (x, y) = ((place % SIDE) as f32 - middle, (place / SIDE) as f32 - middle);
        if a * x + b * y > offset {
            *pixel = other;
        }
    }
}
