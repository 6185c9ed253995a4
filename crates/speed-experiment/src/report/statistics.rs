//! Statistics of a small number of repeats.
//!
//! `statrs` is not used, because its one-pass sums differ in the last digit from the values in published reports.

/// Returns the mean, and the sample standard deviation if there are at least two values.
pub(crate) fn mean_and_deviation(values: &[f64]) -> (Option<f64>, Option<f64>) {
    if values.is_empty() {
        return (None, None);
    }
    #[expect(clippy::cast_precision_loss, reason = "a handful of repeats")]
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (Some(mean), (values.len() > 1).then(|| (squares / (count - 1.0)).sqrt()))
}

/// Returns the middle value, or the mean of the two middle values.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => sorted[odd / 2],
        even => f64::midpoint(sorted[even / 2 - 1], sorted[even / 2]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deviation_is_that_of_a_sample() {
        assert_eq!(mean_and_deviation(&[]), (None, None));
        assert_eq!(mean_and_deviation(&[0.5]), (Some(0.5), None));
        assert_eq!(mean_and_deviation(&[1.0, 3.0]), (Some(2.0), Some(2f64.sqrt())));
    }

    #[test]
    fn medians() {
        assert!(median(&[]).is_nan());
        assert_eq!(median(&[3.0]), 3.0);
        assert_eq!(median(&[9.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 9.0]), 3.0);
    }
}
