//! Values that are not allowed.

use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) key: String,
    pub(super) message: String,
}

impl Fault {
    pub(super) fn new(key: impl Into<String>, message: impl fmt::Display) -> Self {
        Self { key: key.into(), message: message.to_string() }
    }
}

pub(super) fn refuse<T>(key: impl Into<String>, message: impl fmt::Display) -> Result<T, Fault> {
    Err(Fault::new(key, message))
}
