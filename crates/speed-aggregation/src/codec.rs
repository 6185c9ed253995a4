//! The wire format: values in a fixed order, in an envelope with magic, version, kind and checksum.
//!
//! A wire type defines with [`Encode`] the order of its fields, with [`Decode`] how to read them back under limits, and
//! with [`Content`] the kind of envelope that holds it. No type hard-codes an offset. docs/protocol.md, "Binary files",
//! has the bytes of every file. A message (kind 1) and a list of answers (kind 3) are the signed ones without proofs, sum
//! and signature.

mod bytes;
mod envelope;
mod error;
mod field;
mod kind;

pub(crate) use bytes::{Decode, Encode, FixedLength, Reader, Writer, encode_in_order, in_order};
pub use envelope::file_kind;
pub(crate) use envelope::{Content, ENVELOPE, MAGIC, in_envelope, open};
pub use error::DecodeError;
pub(crate) use field::{Flags, Limits, of_byte};
pub(crate) use kind::Kind;
