//! Publication of a data-dependent epsilon: its options and its record.

use serde::{Deserialize, Serialize};

use crate::error::AccountError;

/// Options of a release, to be chosen before looking at votes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReleaseOptions {
    /// `beta`: the largest change of `ln F` with one teacher. Larger values follow the votes more closely and need more
    /// noise.
    pub smoothness: f64,
    /// Standard deviation of the noise as a multiple of the sensitivity.
    pub noise: f64,
    /// The order of the moments; the default is best if queries cost a twelfth of their worst case.
    pub order: Option<f64>,
}

impl Default for ReleaseOptions {
    fn default() -> Self {
        Self { smoothness: 0.04, noise: 3.0, order: None }
    }
}

/// Origin of a published value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Release {
    /// `beta`.
    pub smoothness: f64,
    /// Standard deviation of the noise as a multiple of the sensitivity.
    pub noise: f64,
    /// Moment of the released value itself, at the order of the account.
    pub moment: f64,
    /// Probability that the noise made the value smaller than the cost of the queries; delta includes it.
    pub failure: f64,
    /// True if the noise came from a seed. Then the value is not private and must not be published.
    pub simulation: bool,
}

impl ReleaseOptions {
    pub(crate) fn check(&self) -> Result<(), AccountError> {
        let within = |option: &'static str, found: f64, min: f64, max: f64| {
            if (min..=max).contains(&found) {
                Ok(())
            } else {
                Err(AccountError::ReleaseOption { option, found, min, max })
            }
        };
        within("smoothness", self.smoothness, 1e-4, 2.0)?;
        within("noise multiple", self.noise, 0.1, 1e3)?;
        self.order.map_or(Ok(()), |order| within("order", order, 0.1, 1e3))
    }
}
