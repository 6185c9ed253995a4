//! Checksums of published files.

use std::fmt;

/// The known SHA-256 of a file, in hexadecimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksum {
    /// The SHA-256 of the uncompressed content; the file may be compressed or not.
    OfContent(&'static str),
    /// The SHA-256 of the file as published.
    OfFile(&'static str),
    /// No published checksum.
    Unknown,
}

impl Checksum {
    /// Returns the SHA-256 in hexadecimal.
    pub fn sha256(self) -> Option<&'static str> {
        match self {
            Self::OfContent(sha256) | Self::OfFile(sha256) => Some(sha256),
            Self::Unknown => None,
        }
    }
}

impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OfContent(sha256) => write!(f, "SHA-256 of the uncompressed content {sha256}"),
            Self::OfFile(sha256) => write!(f, "SHA-256 of the file {sha256}"),
            Self::Unknown => f.write_str("no checksum is published"),
        }
    }
}
