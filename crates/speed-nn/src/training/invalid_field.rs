//! An invalid setting.

use std::fmt::Debug;
use std::ops::RangeInclusive;

/// A field of a training's settings with an invalid value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {message}")]
#[non_exhaustive]
pub struct InvalidField {
    /// The field's name.
    pub field: &'static str,
    /// The value expected and the one found.
    pub message: String,
}

impl InvalidField {
    /// Refuses a field unless its condition holds.
    ///
    /// # Errors
    /// The field with the message.
    pub fn unless(holds: bool, field: &'static str, message: impl FnOnce() -> String) -> Result<(), Self> {
        if holds { Ok(()) } else { Err(Self { field, message: message() }) }
    }

    /// Refuses a value outside of a range.
    ///
    /// # Errors
    /// The field with the range and the value.
    pub fn within<T: PartialOrd + Debug>(field: &'static str, value: T, range: RangeInclusive<T>) -> Result<(), Self> {
        Self::unless(range.contains(&value), field, || format!("must be within {range:?}, not {value:?}"))
    }

    /// Refuses a number of epochs that is 0.
    ///
    /// # Errors
    /// The field with the number.
    pub fn epochs(field: &'static str, value: u32) -> Result<(), Self> {
        Self::unless(value > 0, field, || format!("must be at least 1, not {value}"))
    }

    /// Refuses a rate that is not above 0 and below 1.
    ///
    /// # Errors
    /// The field with the rate.
    pub fn rate(field: &'static str, value: f64) -> Result<(), Self> {
        Self::unless(value > 0.0 && value < 1.0, field, || format!("must be above 0 and below 1, not {value:?}"))
    }
}
