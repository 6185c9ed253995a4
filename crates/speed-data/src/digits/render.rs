//! The pen, which renders strokes in pixel coordinates to antialiased bytes.

use rand::RngExt;
use speed_core::random::Stream;

use super::glyphs::{Point, Stroke};
use crate::random::bell;

pub(super) const SIDE: usize = 28;

/// Mean and standard deviation of the pen's radius in pixels.
const RADIUS: (f32, f32) = (1.25, 0.28);
/// Smallest radius, in pixels, with which a line is still clear.
const MIN_RADIUS: f32 = 0.7;
/// Relative change of the radius along a stroke (standard deviation at its ends).
const PRESSURE: f32 = 0.13;
/// Width in pixels over which the edge of a line fades: from sharp to slightly blurred.
const EDGE: (f32, f32) = (1.1, 1.9);
/// Relative standard deviation of the brightness of inked pixels.
const GRAIN: f32 = 0.06;

pub(super) fn render(strokes: &[Stroke], stream: &mut Stream) -> [u8; SIDE * SIDE] {
    let radius = (RADIUS.0 + RADIUS.1 * bell(stream)).max(MIN_RADIUS);
    let edge = stream.random::<f32>() * (EDGE.1 - EDGE.0) + EDGE.0;
    let mut ink = [0.0f32; SIDE * SIDE];
    for stroke in strokes {
        let [start, end] = [0, 1].map(|_| (radius * (1.0 + PRESSURE * bell(stream))).max(MIN_RADIUS));
        let pieces = stroke.len() - 1;
        for (i, piece) in stroke.windows(2).enumerate() {
            let radius = start + (end - start) * (i as f32 / pieces as f32);
            draw(&mut ink, piece[0], piece[1], radius, edge);
        }
    }
    ink.map(|ink| match ink {
        0.0 => 0,
        ink => (255.0 * ink * (1.0 + GRAIN * bell(stream))) as u8,
    })
}

/// Adds a straight line with round ends. The ink of a pixel is the maximum over all lines, so crossings are not brighter
/// than lines.
fn draw(ink: &mut [f32; SIDE * SIDE], from: Point, to: Point, radius: f32, edge: f32) {
    let reach = radius + 0.5 * edge;
    let span = |k: usize| {
        let low = (from[k].min(to[k]) - reach).max(0.0) as usize;
        let high = (from[k].max(to[k]) + reach + 1.0).clamp(0.0, SIDE as f32) as usize;
        low..high
    };
    for y in span(1) {
        for x in span(0) {
            let coverage = ((radius - distance([x as f32, y as f32], from, to)) / edge + 0.5).clamp(0.0, 1.0);
            let pixel = &mut ink[y * SIDE + x];
            *pixel = pixel.max(coverage * coverage * (3.0 - 2.0 * coverage));
        }
    }
}

fn distance(point: Point, from: Point, to: Point) -> f32 {
    let [along, offset] = [[to[0] - from[0], to[1] - from[1]], [point[0] - from[0], point[1] - from[1]]];
    let length2 = along[0] * along[0] + along[1] * along[1];
    let t = if length2 > 0.0 { ((offset[0] * along[0] + offset[1] * along[1]) / length2).clamp(0.0, 1.0) } else { 0.0 };
    let [x, y] = [offset[0] - t * along[0], offset[1] - t * along[1]];
    (x * x + y * y).sqrt()
}
