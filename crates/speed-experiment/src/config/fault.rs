//! Values that are not allowed.

use std::fmt;

/// A value that is not allowed: its key, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// The dotted path of the key.
    pub(super) key: String,
    /// The found and the allowed values.
    pub(super) message: String,
}

impl Fault {
    /// Creates a fault at `key`.
    pub(super) fn new(key: impl Into<String>, message: impl fmt::Display) -> Self {
        Self { key: key.into(), message: message.to_string() }
    }
}

/// Returns a fault of `key` as an error.
pub(super) fn refuse<T>(key: impl Into<String>, message: impl fmt::Display) -> Result<T, Fault> {
    Err(Fault::new(key, message))
}
