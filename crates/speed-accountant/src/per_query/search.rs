//! Searches for a maximum.

/// Returns the place and value of a maximum in [low, high], by golden section; it is the true maximum if there is only
/// one.
pub(super) fn golden_section(low: f64, high: f64, tolerance: f64, f: impl Fn(f64) -> f64) -> (f64, f64) {
    let golden = (5f64.sqrt() - 1.0) / 2.0;
    let (mut low, mut high) = (low, high);
    let (mut a, mut b) = (high - golden * (high - low), low + golden * (high - low));
    let (mut fa, mut fb) = (f(a), f(b));
    for _ in 0..200 {
        if high - low <= tolerance {
            break;
        }
        if fa >= fb {
            (high, b, fb) = (b, a, fa);
            a = high - golden * (high - low);
            fa = f(a);
        } else {
            (low, a, fa) = (a, b, fb);
            b = low + golden * (high - low);
            fb = f(b);
        }
    }
    if fa >= fb { (a, fa) } else { (b, fb) }
}

/// Returns the largest value that Nelder and Mead's simplex finds from `start` with sides `step`. The search stops when
/// the values agree to one part in 10^11.
pub(super) fn simplex(start: [f64; 2], step: [f64; 2], rounds: usize, f: impl Fn([f64; 2]) -> f64) -> f64 {
    let mut points: Vec<([f64; 2], f64)> =
        [start, [start[0] + step[0], start[1]], [start[0], start[1] + step[1]]].map(|p| (p, f(p))).to_vec();
    for _ in 0..rounds {
        points.sort_by(|a, b| b.1.total_cmp(&a.1));
        if points[0].1 - points[2].1 <= 1e-11 * points[0].1.abs() {
            break;
        }
        let centre = [0, 1].map(|i| (points[0].0[i] + points[1].0[i]) / 2.0);
        let worst = points[2];
        let along = |by: f64| {
            let point = [0, 1].map(|i| centre[i] + by * (worst.0[i] - centre[i]));
            (point, f(point))
        };
        let reflected = along(-1.0);
        points[2] = if reflected.1 > points[0].1 {
            let further = along(-2.0);
            if further.1 > reflected.1 { further } else { reflected }
        } else if reflected.1 > points[1].1 {
            reflected
        } else {
            let inside = along(if reflected.1 > worst.1 { -0.5 } else { 0.5 });
            if inside.1 > worst.1 {
                inside
            } else {
                let best = points[0].0;
                points[1].0 = [0, 1].map(|i| (points[1].0[i] + best[i]) / 2.0);
                points[1].1 = f(points[1].0);
                let shrunk = [0, 1].map(|i| (worst.0[i] + best[i]) / 2.0);
                (shrunk, f(shrunk))
            }
        };
    }
    points.iter().map(|point| point.1).fold(f64::NEG_INFINITY, f64::max)
}
