//! Signatures as bytes.

use crate::getters::debug_as;

/// An Ed25519 signature (RFC 8032).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Signature([u8; 64]);

impl Signature {
    /// Wraps the bytes.
    pub const fn from_bytes(bytes: [u8; 64]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes.
    pub const fn as_bytes(&self) -> &[u8; 64] {
        &self.0
    }
}

debug_as!(Signature, _this => "Signature(..)");
