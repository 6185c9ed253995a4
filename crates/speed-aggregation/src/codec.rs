//! Bytes that travel: values in a fixed order, in an envelope with magic, version, kind and checksum.
//!
//! A type that travels says with [`Encode`] how its fields follow each other, with [`Decode`] how they are read back under
//! limits, and with [`Content`] which kind of envelope holds it. No type knows an offset.

mod bytes;
mod envelope;
mod error;
mod field;

pub(crate) use bytes::{Decode, Encode, FixedLength, Reader, Writer, encode_in_order};
pub(crate) use envelope::{Content, ENVELOPE, Kind, MAGIC, open};
pub use error::DecodeError;
pub(crate) use field::{Flags, Limits};
