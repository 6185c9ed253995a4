//! The difference between two figures, and its uncertainty over newly trained students.

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::report::statistics::mean_and_deviation;

/// The probability below the upper end of a 95 % interval.
const UPPER: f64 = 0.975;

/// The difference of a figure from the first run's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Difference {
    /// The difference, in the figure's unit.
    pub difference: f64,
    /// Standard error of a difference of means, for students that differ only in their seeds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standard_error: Option<f64>,
    /// Welch's degrees of freedom; `None` if the students of each run are equal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub degrees_of_freedom: Option<f64>,
    /// Welch's interval at 95 %.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
    /// Why a difference of students' means has no spread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub without_spread: Option<WithoutSpread>,
}

/// The reason why a difference of students' means has no spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WithoutSpread {
    /// A single student has no deviation.
    OneStudent,
    /// Both runs have the same students.
    SameStudents,
    /// A config does not contain the number of the paper's students.
    Paper,
}

impl WithoutSpread {
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::OneStudent => "one student: no spread",
            Self::SameStudents => "the same students",
            Self::Paper => "no spread from the paper",
        }
    }
}

impl Difference {
    /// Returns the difference of figures that are not random, or whose random draws were not repeated.
    pub(super) fn plain(difference: f64) -> Self {
        Self { difference, ..Self::default() }
    }

    /// Returns the difference of students' figures without a spread, with the reason.
    pub(super) fn without_spread(difference: f64, why: WithoutSpread) -> Self {
        Self { without_spread: Some(why), ..Self::plain(difference) }
    }

    /// Returns the difference between the means of two samples, by Welch's t test; `None` if one is empty.
    pub(super) fn of_means(first: &[f64], second: &[f64]) -> Option<Self> {
        let ((first_mean, first_deviation), (second_mean, second_deviation)) =
            (mean_and_deviation(first), mean_and_deviation(second));
        let difference = second_mean? - first_mean?;
        let (Some(first_deviation), Some(second_deviation)) = (first_deviation, second_deviation) else {
            return Some(Self::without_spread(difference, WithoutSpread::OneStudent));
        };
        let (first_count, second_count) = (first.len() as f64, second.len() as f64);
        let [a, b] = [first_deviation.powi(2) / first_count, second_deviation.powi(2) / second_count];
        let standard_error = (a + b).sqrt();
        let degrees = (a + b).powi(2) / (a.powi(2) / (first_count - 1.0) + b.powi(2) / (second_count - 1.0));
        let quantile = StudentsT::new(0.0, 1.0, degrees).ok().filter(|_| degrees.is_finite());
        let half = match quantile {
            Some(t) => Some(t.inverse_cdf(UPPER) * standard_error),
            // No variation, or no finite value.
            None => Some(0.0).filter(|_| standard_error == 0.0),
        };
        Some(Self {
            standard_error: Some(standard_error),
            degrees_of_freedom: quantile.map(|_| degrees),
            interval: half.map(|half| [difference - half, difference + half]),
            ..Self::plain(difference)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-9 * expected.abs().max(1.0), "{found}, expected {expected}");
    }

    #[test]
    fn welch_by_hand() {
        // Means 2 and 5, variances 1 and 4, three values each: the error is the root of 5/3, and there are (5/3)^2 /
        // (1/18 + 16/18) = 50/17 degrees of freedom.
        let found = Difference::of_means(&[1.0, 2.0, 3.0], &[3.0, 5.0, 7.0]).expect("two samples");
        close(found.difference, 3.0);
        close(found.standard_error.expect("an error"), (5.0f64 / 3.0).sqrt());
        close(found.degrees_of_freedom.expect("degrees"), 50.0 / 17.0);
        let [low, high] = found.interval.expect("an interval");
        close(low + high, 6.0);
        // It lies between the quantiles for two and three degrees of freedom, 4.302653 and 3.182446.
        let quantile = (high - 3.0) / found.standard_error.expect("an error");
        assert!(quantile > 3.182_446 && quantile < 4.302_653, "{quantile}");
    }

    #[test]
    fn equal_samples_give_the_pooled_test() {
        // With equal counts and variances, Welch's test is Student's: 2n - 2 = 4 degrees, 2.776445 at 97.5 %.
        let found = Difference::of_means(&[0.0, 1.0, 2.0], &[10.0, 11.0, 12.0]).expect("two samples");
        close(found.degrees_of_freedom.expect("degrees"), 4.0);
        let [low, high] = found.interval.expect("an interval");
        assert!(((high - low) / 2.0 - 2.776_445 * (2.0f64 / 3.0).sqrt()).abs() < 1e-6, "{low} {high}");
    }

    #[test]
    fn a_difference_without_spread_has_a_reason() {
        assert_eq!(Difference::of_means(&[], &[1.0]), None);
        let one = Difference::of_means(&[1.0], &[1.0, 3.0]).expect("two samples");
        assert_eq!((one.difference, one.without_spread), (1.0, Some(WithoutSpread::OneStudent)));
        assert_eq!(one.interval, None);
        let equal = Difference::of_means(&[1.0, 1.0], &[2.0, 2.0]).expect("two samples");
        assert_eq!((equal.standard_error, equal.interval), (Some(0.0), Some([1.0, 1.0])));
        let huge = Difference::of_means(&[f64::MAX, -f64::MAX], &[f64::MAX, f64::MAX]).expect("two samples");
        assert_eq!(huge.interval, None);
    }
}
