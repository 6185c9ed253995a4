//! The order of moments that gives the least epsilon.

/// The best order, and whether it is the first or the last one tried.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Best {
    pub(crate) order: f64,
    pub(crate) epsilon: f64,
    pub(crate) at_edge: bool,
}

/// The smallest order tried where orders are real.
const MIN_ORDER: f64 = 0.02;
/// Steps that narrow two octaves to a thousandth of the order. Epsilon is flat around its minimum, so this is enough.
const GOLDEN_STEPS: usize = 15;
/// The largest real order by default.
pub(crate) const MAX_REAL_ORDER: f64 = 4_096.0;
/// The largest order supported. Tables of noise are as long as the order, and larger orders improve no epsilon.
const MAX_ORDER: f64 = 1e5;

/// Searches the integer orders from 1 to `largest`, as the paper does.
pub(crate) fn best_whole(largest: u32, epsilon: impl Fn(f64) -> f64) -> Option<Best> {
    let largest = largest.min(MAX_ORDER as u32);
    let all = (1..=largest).map(|l| (f64::from(l), epsilon(f64::from(l))));
    all.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(order, epsilon)| Best {
        order,
        epsilon,
        at_edge: order == 1.0 || order == f64::from(largest),
    })
}

/// Searches real orders up to `largest`: first an octave apart, then by golden section around the best one. Every order
/// gives a valid bound, so missing a better one only costs tightness.
pub(crate) fn best_real(largest: f64, epsilon: impl Fn(f64) -> f64) -> Option<Best> {
    if largest.is_nan() || largest <= 0.0 {
        return None;
    }
    let largest = largest.min(MAX_ORDER);
    let smallest = MIN_ORDER.min(largest);
    let steps = ((largest / smallest).log2()).ceil().max(1.0) as i32;
    let at = |i: i32| {
        if i == steps { largest } else { smallest * (largest / smallest).powf(f64::from(i) / f64::from(steps)) }
    };
    let grid: Vec<(f64, f64)> = (0..=steps).map(|i| (at(i), epsilon(at(i)))).collect();
    let best = (0..grid.len()).min_by(|&i, &j| grid[i].1.total_cmp(&grid[j].1))?;
    let (mut low, mut high) = (grid[best.saturating_sub(1)].0.ln(), grid[(best + 1).min(grid.len() - 1)].0.ln());
    let golden = (5f64.sqrt() - 1.0) / 2.0;
    let mut found = grid[best];
    let (mut a, mut b) = (high - golden * (high - low), low + golden * (high - low));
    let (mut fa, mut fb) = (epsilon(a.exp()), epsilon(b.exp()));
    for _ in 0..GOLDEN_STEPS {
        if fa <= fb {
            (high, b, fb) = (b, a, fa);
            a = high - golden * (high - low);
            fa = epsilon(a.exp());
        } else {
            (low, a, fa) = (a, b, fb);
            b = low + golden * (high - low);
            fb = epsilon(b.exp());
        }
        for (place, value) in [(a, fa), (b, fb)] {
            if value < found.1 {
                found = (place.exp(), value);
            }
        }
    }
    let at_edge = found.0 <= smallest * 1.000_001 || found.0 >= largest * 0.999_999;
    Some(Best { order: found.0, epsilon: found.1, at_edge })
}
