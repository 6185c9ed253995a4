//! Statistics of a small number of repeats, and shares of counts with confidence intervals.
//!
//! `statrs` computes no means here, because its one-pass sums differ in the last digit from the values in published reports.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// The 0.975 quantile of the standard normal distribution.
const Z: f64 = 1.959_963_984_540_054;

/// A confidence interval of a share; both ends are from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Interval {
    /// Returns the Wilson score interval at 95 % of the share `right / number`; `None` if `number` is 0.
    ///
    /// It contains each share p with (right / number - p)² <= z² p (1 - p) / number, where z = 1.96: Wilson, "Probable
    /// Inference, the Law of Succession, and Statistical Inference", JASA 22 (1927).
    ///
    /// # Panics
    /// If `right` is larger than `number`.
    pub(crate) fn wilson(right: u64, number: u64) -> Option<Self> {
        assert!(right <= number, "{right} of {number}");
        let share = share(right, number)?;
        #[expect(clippy::cast_precision_loss, reason = "an interval of so many images is narrower than a rounding")]
        let (number_f64, square) = (number as f64, Z * Z);
        let scale = 1.0 + square / number_f64;
        let centre = (share + square / (2.0 * number_f64)) / scale;
        let variance = share * (1.0 - share) / number_f64 + square / (4.0 * number_f64 * number_f64);
        let half = Z * variance.sqrt() / scale;
        // The ends are exact if none or all are right, where the formula has rounding errors.
        let low = if right == 0 { 0.0 } else { (centre - half).max(0.0) };
        let high = if right == number { 1.0 } else { (centre + half).min(1.0) };
        Some(Self { low, high })
    }
}

/// Returns `right / number`; `None` if `number` is 0.
#[expect(clippy::cast_precision_loss, reason = "the same division as in the accuracy of a classifier")]
pub(crate) fn share(right: u64, number: u64) -> Option<f64> {
    (number > 0).then(|| right as f64 / number as f64)
}

/// Returns the different texts, in the order of first occurrence.
pub(crate) fn distinct<'a>(texts: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let mut seen = BTreeSet::new();
    texts.into_iter().filter(|text| seen.insert(*text)).collect()
}

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
    fn intervals_are_those_of_statsmodels() {
        // statsmodels 0.15.0: proportion_confint(right, number, 0.05, "wilson").
        for (right, number, low, high) in [
            (0, 1, 0.0, 0.7934506856227627),
            (1, 1, 0.2065493143772374, 1.0),
            (0, 10, 0.0, 0.27753279986288926),
            (7, 10, 0.39677814746114537, 0.8922087325936989),
            (10, 10, 0.7224672001371106, 1.0),
            (9783, 10000, 0.9752552713630986, 0.9809773957955119),
            (1, 2000, 8.826773070546765e-05, 0.0028268625032662146),
            (123, 1000, 0.10407414325107295, 0.1448112326470356),
        ] {
            let found = Interval::wilson(right, number).expect("images");
            assert!(
                (found.low - low).abs() < 1e-15 && (found.high - high).abs() < 1e-15,
                "{right}/{number}: {found:?}"
            );
        }
    }

    #[test]
    fn few_values() {
        assert_eq!((share(0, 0), Interval::wilson(0, 0)), (None, None));
        assert_eq!(mean_and_deviation(&[]), (None, None));
        assert_eq!(mean_and_deviation(&[0.5]), (Some(0.5), None));
        assert_eq!(mean_and_deviation(&[1.0, 3.0]), (Some(2.0), Some(2f64.sqrt())));
        assert!(median(&[]).is_nan());
        assert_eq!([&[3.0][..], &[9.0, 1.0, 2.0], &[4.0, 1.0, 2.0, 9.0]].map(median), [3.0, 2.0, 3.0]);
    }
}
