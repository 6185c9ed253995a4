//! The effects of a camera: uneven light, blur, and noise.

use rand::RngExt;
use speed_core::random::Stream;

use super::canvas::{Canvas, SIDE};
use crate::random::bell;

/// The largest number of passes of blur, each of variance 1/2 pixel.
const BLURS: u32 = 3;
/// Change of the light from the middle to a side.
const LIGHT: f32 = 0.15;
/// Largest standard deviation of the noise.
const NOISE: f32 = 0.055;

pub(super) fn take(canvas: &mut Canvas, stream: &mut Stream) {
    let middle = 0.5 * (SIDE - 1) as f32;
    let [across, down] = [(); 2].map(|()| LIGHT * bell(stream) / middle);
    for (place, pixel) in canvas.iter_mut().enumerate() {
        let (x, y) = ((place % SIDE) as f32 - middle, (place / SIDE) as f32 - middle);
        let light = (1.0 + across * x + down * y).max(0.3);
        *pixel = pixel.map(|part| part * light);
    }
    for _ in 0..stream.random_range(0..=BLURS) {
        blur(canvas, 1);
        blur(canvas, SIDE);
    }
    let noise = NOISE * stream.random::<f32>();
    // Camera noise varies more between pixels than between the channels of one pixel.
    for pixel in canvas.iter_mut() {
        let common = bell(stream);
        *pixel = pixel.map(|part| part + noise * (0.8 * common + 0.6 * bell(stream)));
    }
}

/// Mixes every pixel with its neighbours, `step` places away, with weights 1, 2, 1; pixels at the border are their own
/// neighbours.
fn blur(canvas: &mut Canvas, step: usize) {
    for line in 0..SIDE {
        let at = |k: usize| if step == 1 { line * SIDE + k } else { k * SIDE + line };
        let mut before = canvas[at(0)];
        for k in 0..SIDE {
            let here = canvas[at(k)];
            let after = canvas[at((k + 1).min(SIDE - 1))];
            canvas[at(k)] = std::array::from_fn(|part| 0.25 * (before[part] + 2.0 * here[part] + after[part]));
            before = here;
        }
    }
}
