//! An invalid setting.

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
}
