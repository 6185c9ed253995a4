//! The ten digits as handwritten: control points of strokes, with several variants for each digit.

use rand::RngExt;
use speed_core::random::Stream;

use crate::random::bell;

/// A point of the plane, x to the right, y down.
pub(super) type Point = [f32; 2];

/// One stroke of the pen: points joined by short straight lines.
pub(super) type Stroke = Vec<Point>;

/// A variant of a digit in the unit square. Strokes refer to points by index, so strokes that meet in a point still
/// meet if it is moved.
struct Glyph {
    points: &'static [Point],
    strokes: &'static [Path],
}

enum Path {
    /// A smooth curve through the points.
    Curve(&'static [usize]),
    /// Straight lines from point to point.
    Lines(&'static [usize]),
}

use Path::{Curve, Lines};

/// Standard deviation by which a control point is moved, in units of the digit's height.
const JITTER: f32 = 0.020;
/// Slope of a curve at a control point, as a share of the line between its neighbours. A Catmull-Rom spline has 0.5.
/// 0.6 is rounder, like handwriting: it turns six points on a circle into a circle.
const ROUND: f32 = 0.6;
/// Number of straight pieces between two control points of a curve.
const PIECES: usize = 7;

#[rustfmt::skip]
static GLYPHS: [&[Glyph]; 10] = [
    // 0: a closed oval; an oval whose ends cross at the top; a narrow one; a round one.
    &[
        Glyph { points: &[[0.56, 0.0], [0.2, 0.22], [0.16, 0.72], [0.45, 1.0], [0.82, 0.78], [0.86, 0.28]],
                strokes: &[Curve(&[0, 1, 2, 3, 4, 5, 0])] },
        Glyph { points: &[[0.7, 0.1], [0.4, 0.05], [0.15, 0.36], [0.2, 0.82], [0.5, 1.0], [0.84, 0.7], [0.82, 0.22], [0.58, 0.02], [0.4, 0.14]],
                strokes: &[Curve(&[0, 1, 2, 3, 4, 5, 6, 7, 8])] },
        Glyph { points: &[[0.58, 0.0], [0.33, 0.24], [0.29, 0.74], [0.46, 1.0], [0.69, 0.77], [0.73, 0.26]],
                strokes: &[Curve(&[0, 1, 2, 3, 4, 5, 0])] },
        Glyph { points: &[[0.46, 0.03], [0.08, 0.28], [0.08, 0.72], [0.5, 0.98], [0.9, 0.74], [0.92, 0.28]],
                strokes: &[Curve(&[0, 1, 2, 3, 4, 5, 0])] },
    ],
    // 1: a line; a line with a flag; with flag and foot.
    &[
        Glyph { points: &[[0.52, 0.0], [0.5, 0.5], [0.49, 1.0]], strokes: &[Curve(&[0, 1, 2])] },
        Glyph { points: &[[0.58, 0.0], [0.5, 0.5], [0.44, 1.0]], strokes: &[Curve(&[0, 1, 2])] },
        Glyph { points: &[[0.3, 0.24], [0.54, 0.0], [0.53, 0.5], [0.52, 1.0]], strokes: &[Lines(&[0, 1]), Curve(&[1, 2, 3])] },
        Glyph { points: &[[0.32, 0.2], [0.54, 0.0], [0.52, 0.97], [0.26, 0.98], [0.8, 0.96]], strokes: &[Lines(&[0, 1, 2]), Lines(&[3, 4])] },
    ],
    // 2: a sharp corner at the foot; a loop at the foot; a swung foot.
    &[
        Glyph { points: &[[0.16, 0.22], [0.42, 0.01], [0.74, 0.1], [0.78, 0.36], [0.5, 0.68], [0.12, 0.97], [0.5, 0.95], [0.92, 0.96]],
                strokes: &[Curve(&[0, 1, 2, 3, 4, 5]), Curve(&[5, 6, 7])] },
        Glyph { points: &[[0.18, 0.18], [0.46, 0.0], [0.76, 0.2], [0.62, 0.56], [0.3, 0.9], [0.1, 0.9], [0.22, 0.74], [0.5, 0.9], [0.94, 0.9]],
                strokes: &[Curve(&[0, 1, 2, 3, 4, 5, 6, 7, 8])] },
        Glyph { points: &[[0.24, 0.12], [0.56, 0.0], [0.8, 0.22], [0.6, 0.58], [0.16, 0.9], [0.42, 0.88], [0.68, 1.0], [0.92, 0.86]],
                strokes: &[Curve(&[0, 1, 2, 3, 4]), Curve(&[4, 5, 6, 7])] },
    ],
    // 3: two bows; a flat top; a loop in the middle.
    &[
        Glyph { points: &[[0.18, 0.14], [0.48, 0.0], [0.76, 0.18], [0.64, 0.4], [0.38, 0.48], [0.7, 0.56], [0.84, 0.78], [0.52, 1.0], [0.12, 0.88]],
                strokes: &[Curve(&[0, 1, 2, 3, 4]), Curve(&[4, 5, 6, 7, 8])] },
        Glyph { points: &[[0.16, 0.03], [0.78, 0.02], [0.46, 0.4], [0.76, 0.5], [0.84, 0.76], [0.54, 1.0], [0.14, 0.92]],
                strokes: &[Lines(&[0, 1, 2]), Curve(&[2, 3, 4, 5, 6])] },
        Glyph { points: &[[0.22, 0.1], [0.56, 0.02], [0.74, 0.22], [0.52, 0.45], [0.34, 0.5], [0.44, 0.4], [0.7, 0.52], [0.82, 0.76], [0.54, 0.99], [0.16, 0.9]],
                strokes: &[Curve(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9])] },
    ],
    // 4: open, two strokes; closed; open with a round bend.
    &[
        Glyph { points: &[[0.24, 0.02], [0.12, 0.54], [0.86, 0.52], [0.74, 0.04], [0.66, 1.0]],
                strokes: &[Lines(&[0, 1, 2]), Lines(&[3, 4])] },
        Glyph { points: &[[0.66, 0.0], [0.08, 0.64], [0.94, 0.62], [0.64, 1.0]],
                strokes: &[Lines(&[0, 1, 2]), Lines(&[0, 3])] },
        Glyph { points: &[[0.2, 0.02], [0.14, 0.32], [0.32, 0.5], [0.76, 0.42], [0.8, 0.02], [0.72, 0.5], [0.66, 1.0]],
                strokes: &[Curve(&[0, 1, 2, 3]), Curve(&[4, 5, 6])] },
    ],
    // 5: corner, then bow; a hat drawn last; all in one swing.
    &[
        Glyph { points: &[[0.84, 0.03], [0.28, 0.04], [0.2, 0.46], [0.52, 0.37], [0.82, 0.6], [0.7, 0.9], [0.4, 1.0], [0.1, 0.88]],
                strokes: &[Lines(&[0, 1, 2]), Curve(&[2, 3, 4, 5, 6, 7])] },
        Glyph { points: &[[0.3, 0.08], [0.24, 0.42], [0.58, 0.4], [0.78, 0.68], [0.54, 0.98], [0.16, 0.92], [0.3, 0.05], [0.88, 0.0]],
                strokes: &[Curve(&[0, 1]), Curve(&[1, 2, 3, 4, 5]), Lines(&[6, 7])] },
        Glyph { points: &[[0.82, 0.02], [0.46, 0.06], [0.26, 0.28], [0.44, 0.44], [0.72, 0.6], [0.68, 0.88], [0.4, 1.0], [0.12, 0.92]],
                strokes: &[Curve(&[0, 1, 2, 3, 4, 5, 6, 7])] },
    ],
    // 6: a round back; a straight back with a small loop.
    &[
        Glyph { points: &[[0.72, 0.02], [0.36, 0.24], [0.16, 0.64], [0.32, 0.95], [0.64, 0.95], [0.78, 0.7], [0.54, 0.52], [0.2, 0.72]],
                strokes: &[Curve(&[0, 1, 2, 3, 4, 5, 6, 7])] },
        Glyph { points: &[[0.56, 0.0], [0.34, 0.4], [0.26, 0.78], [0.42, 0.99], [0.68, 0.9], [0.68, 0.68], [0.48, 0.62], [0.28, 0.8]],
                strokes: &[Curve(&[0, 1, 2, 3, 4, 5, 6, 7])] },
    ],
    // 7: plain; with a bar; with a small hook at the start; with a bent leg.
    &[
        Glyph { points: &[[0.1, 0.06], [0.86, 0.04], [0.6, 0.46], [0.42, 1.0]], strokes: &[Lines(&[0, 1]), Curve(&[1, 2, 3])] },
        Glyph { points: &[[0.12, 0.06], [0.84, 0.03], [0.56, 0.48], [0.4, 1.0], [0.26, 0.52], [0.8, 0.48]],
                strokes: &[Lines(&[0, 1]), Curve(&[1, 2, 3]), Lines(&[4, 5])] },
        Glyph { points: &[[0.12, 0.22], [0.14, 0.06], [0.5, 0.08], [0.86, 0.02], [0.62, 0.44], [0.5, 1.0]],
                strokes: &[Lines(&[0, 1]), Curve(&[1, 2, 3]), Curve(&[3, 4, 5])] },
        Glyph { points: &[[0.14, 0.14], [0.5, 0.04], [0.8, 0.12], [0.74, 0.45], [0.58, 1.0]], strokes: &[Curve(&[0, 1, 2, 3, 4])] },
    ],
    // 8: one crossing line; two rings.
    &[
        Glyph { points: &[[0.76, 0.14], [0.48, 0.0], [0.22, 0.2], [0.46, 0.46], [0.78, 0.74], [0.5, 1.0], [0.2, 0.76], [0.5, 0.48], [0.78, 0.24]],
                strokes: &[Curve(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 0])] },
        Glyph { points: &[[0.52, 0.47], [0.26, 0.3], [0.5, 0.0], [0.75, 0.22], [0.2, 0.74], [0.5, 1.0], [0.8, 0.72]],
                strokes: &[Curve(&[0, 1, 2, 3, 0]), Curve(&[0, 4, 5, 6, 0])] },
        Glyph { points: &[[0.7, 0.06], [0.36, 0.06], [0.34, 0.32], [0.68, 0.62], [0.64, 0.94], [0.36, 0.94], [0.38, 0.62], [0.78, 0.1]],
                strokes: &[Curve(&[0, 1, 2, 3, 4, 5, 6, 7])] },
    ],
    // 9: a round head with a straight leg; with a swung tail; head and leg in two strokes.
    &[
        Glyph { points: &[[0.76, 0.16], [0.46, 0.0], [0.18, 0.26], [0.36, 0.5], [0.68, 0.38], [0.78, 0.1], [0.72, 0.54], [0.62, 1.0]],
                strokes: &[Curve(&[0, 1, 2, 3, 4, 5]), Curve(&[5, 6, 7])] },
        Glyph { points: &[[0.74, 0.12], [0.44, 0.02], [0.2, 0.26], [0.42, 0.48], [0.7, 0.34], [0.78, 0.12], [0.8, 0.56], [0.62, 0.94], [0.26, 0.94]],
                strokes: &[Curve(&[0, 1, 2, 3, 4, 5]), Curve(&[5, 6, 7, 8])] },
        Glyph { points: &[[0.7, 0.1], [0.4, 0.06], [0.26, 0.3], [0.48, 0.44], [0.7, 0.28], [0.56, 0.64], [0.42, 1.0]],
                strokes: &[Curve(&[0, 1, 2, 3, 4, 0]), Curve(&[4, 5, 6])] },
    ],
];

/// Writes a digit in about the unit square: picks one of its variants and moves its control points.
pub(super) fn write(label: u8, stream: &mut Stream) -> Vec<Stroke> {
    let ways = GLYPHS[usize::from(label)];
    let glyph = &ways[stream.random_range(0..ways.len())];
    let points: Vec<Point> = glyph.points.iter().map(|point| point.map(|x| x + JITTER * bell(stream))).collect();
    let at = |indices: &[usize]| indices.iter().map(|&i| points[i]).collect::<Vec<_>>();
    let flatten = |path: &Path| match path {
        Curve(indices) => curve(&at(indices)),
        Lines(indices) => lines(&at(indices)),
    };
    glyph.strokes.iter().map(flatten).collect()
}

/// Returns a cardinal spline through the points, closed if it ends where it starts.
fn curve(points: &[Point]) -> Stroke {
    let last = points.len() - 1;
    let closed = points[0] == points[last];
    let mut stroke = vec![points[0]];
    for i in 0..last {
        let (from, to) = (points[i], points[i + 1]);
        let before = if i > 0 {
            points[i - 1]
        } else if closed {
            points[last - 1]
        } else {
            from
        };
        let after = if i + 2 <= last {
            points[i + 2]
        } else if closed {
            points[1]
        } else {
            to
        };
        for piece in 1..=PIECES {
            let t = piece as f32 / PIECES as f32;
            stroke.push([0, 1].map(|k| {
                let (slope_from, slope_to) = (ROUND * (to[k] - before[k]), ROUND * (after[k] - from[k]));
                hermite(t, from[k], slope_from, to[k], slope_to)
            }));
        }
    }
    stroke
}

fn hermite(t: f32, from: f32, slope_from: f32, to: f32, slope_to: f32) -> f32 {
    let (t2, t3) = (t * t, t * t * t);
    (2.0 * t3 - 3.0 * t2 + 1.0) * from
        + (t3 - 2.0 * t2 + t) * slope_from
        + (3.0 * t2 - 2.0 * t3) * to
        + (t3 - t2) * slope_to
}

/// Returns straight lines, cut into pieces so that they bend with the plane.
fn lines(points: &[Point]) -> Stroke {
    let piece = |pair: &[Point], step: usize| {
        let t = step as f32 / PIECES as f32;
        [0, 1].map(|k| pair[0][k] + t * (pair[1][k] - pair[0][k]))
    };
    let pieces = points.windows(2).flat_map(|pair| (1..=PIECES).map(move |step| piece(pair, step)));
    points.iter().take(1).copied().chain(pieces).collect()
}
