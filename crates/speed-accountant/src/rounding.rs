//! Rounding for tables.

/// Rounds up to `decimals` decimals: a privacy loss must not be printed smaller than it is. The paper's tables round up
/// too (erratum 10). A value without further decimals is returned unchanged.
pub fn round_up(epsilon: f64, decimals: u32) -> f64 {
    let unit = 10f64.powi(decimals.min(300) as i32);
    let scaled = epsilon * unit;
    // Beyond 2^53 a double has no decimals left, and neither do infinity and NaN.
    if !scaled.is_finite() || scaled.abs() >= 2f64.powi(53) {
        return epsilon;
    }
    // `1.1 * 100` is a little above 110 in floating point, so the step below is tried too.
    let up = scaled.ceil();
    [up - 1.0, up]
        .into_iter()
        .map(|steps| steps / unit)
        .find(|&rounded| rounded >= epsilon)
        .unwrap_or((up + 1.0) / unit)
}

/// Returns an epsilon as text, rounded up: to two decimal places from 0.1 on, and to four below, where two would say too little.
pub fn epsilon_text(epsilon: f64) -> String {
    if epsilon < 0.1 { format!("{:.4}", round_up(epsilon, 4)) } else { format!("{:.2}", round_up(epsilon, 2)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_up_and_keeps_what_is_exact() {
        assert_eq!(round_up(1.401, 2), 1.41);
        assert_eq!(round_up(1.41, 2), 1.41);
        assert_eq!(round_up(1.410_000_000_000_000_2, 2), 1.42);
        assert_eq!(round_up(1.1, 2), 1.1);
        assert_eq!(round_up(0.2, 0), 1.0);
        assert_eq!(round_up(3.0, 0), 3.0);
        assert_eq!(round_up(f64::INFINITY, 2), f64::INFINITY);
        assert_eq!(round_up(1e300, 2), 1e300);
        assert!(round_up(f64::NAN, 2).is_nan());
        assert!(
            (0..10_000)
                .map(|i| f64::from(i) * 0.000_37)
                .all(|x| round_up(x, 3) >= x && round_up(x, 3) < x + 0.001_000_1)
        );
    }

    #[test]
    fn small_epsilons_have_four_decimals() {
        let texts = [0.020_001, 0.099_99, 0.099_995, 0.1, 1.401, 0.0].map(epsilon_text);
        assert_eq!(texts, ["0.0201", "0.1000", "0.1000", "0.10", "1.41", "0.0000"]);
    }
}
