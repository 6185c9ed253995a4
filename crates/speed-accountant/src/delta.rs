//! Delta of a claim.

use serde::{Deserialize, Serialize};

use crate::error::AccountError;

/// The delta of an (epsilon, delta) claim, from [`Delta::MIN`] to less than 1.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Delta(f64);

impl Delta {
    /// The smallest delta supported: parts of a smaller one would not have all their digits.
    pub const MIN: f64 = 1e-280;

    /// Checks and wraps `delta`.
    ///
    /// # Errors
    /// [`AccountError::Invalid`] if `delta` is NaN, less than [`Self::MIN`], or 1 or more.
    pub fn new(delta: f64) -> Result<Self, AccountError> {
        if (Self::MIN..1.0).contains(&delta) {
            Ok(Self(delta))
        } else {
            let min = Self::MIN;
            Err(AccountError::Invalid(format!("delta is {delta:?}, but it must be at least {min:e} and less than 1")))
        }
    }

    /// Returns the value.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl TryFrom<f64> for Delta {
    type Error = AccountError;

    fn try_from(delta: f64) -> Result<Self, Self::Error> {
        Self::new(delta)
    }
}

impl From<Delta> for f64 {
    fn from(delta: Delta) -> Self {
        delta.0
    }
}
