//! The envelope of every wire format: magic, version, kind, content, checksum.
//!
//! Numbers are little-endian. Nothing is allocated from a length field: lengths are checked against the bytes at hand.

use sha2::{Digest, Sha256};

use super::bytes::{Decode, Encode, Reader, Writer};
use super::error::DecodeError;
use super::kind::{Kind, kind_name};

/// The first bytes of every envelope.
pub(crate) const MAGIC: &[u8; 8] = b"SPEEDAGG";
const VERSION: u16 = 4;
const CHECKSUM: usize = 16;
const HEADER: usize = MAGIC.len() + size_of::<u16>() + size_of::<u16>();

/// Bytes of an envelope without its content.
pub(crate) const ENVELOPE: usize = HEADER + CHECKSUM;

/// Returns the kind of a file by its first bytes, in words, or `None` if they do not begin an
/// envelope. The bytes behind them are not checked.
pub fn file_kind(bytes: &[u8]) -> Option<&'static str> {
    let kind = bytes.strip_prefix(MAGIC)?.get(2..4)?;
    kind_name(u16::from_le_bytes(kind.try_into().ok()?))
}

/// A value that travels in its own envelope.
pub(crate) trait Content: Encode {
    /// The kind of its envelope.
    const KIND: Kind;

    /// Returns the envelope with the value in it. Allocates it once, so that no copy of a secret remains in memory.
    fn seal(&self) -> Vec<u8> {
        let mut writer = Writer::with_capacity(ENVELOPE + self.encoded_len());
        writer.bytes(MAGIC);
        writer.bytes(&VERSION.to_le_bytes());
        writer.bytes(&(Self::KIND as u16).to_le_bytes());
        self.encode(&mut writer);
        let digest = Sha256::digest(writer.as_bytes());
        writer.bytes(&digest[..CHECKSUM]);
        writer.into_bytes()
    }

    /// Reads exactly one envelope with one value.
    fn unseal<Parameter>(bytes: &[u8], parameter: Parameter) -> Result<Self, DecodeError>
    where
        Self: Decode<Parameter>,
    {
        let mut reader = open(bytes, Self::KIND)?;
        let value = Self::decode(&mut reader, parameter)?;
        reader.end()?;
        Ok(value)
    }
}

/// Implements [`Content`] for a type, and its bytes in an envelope.
macro_rules! in_envelope {
    ($type:ident, $kind:ident, $name:literal) => {
        impl $crate::codec::Content for $type {
            const KIND: $crate::codec::Kind = $crate::codec::Kind::$kind;
        }

        impl $type {
            #[doc = concat!("Returns the encoded ", $name, ".")]
            pub fn to_bytes(&self) -> Vec<u8> {
                $crate::codec::Content::seal(self)
            }

            #[doc = concat!("Decodes one ", $name, ". Memory is bounded by a small multiple of the length of `bytes`.")]
            ///
            /// # Errors
            #[doc = concat!("If the bytes are not exactly one well-formed ", $name, " of this version.")]
            pub fn from_bytes(bytes: &[u8]) -> Result<Self, $crate::codec::DecodeError> {
                $crate::codec::Content::unseal(bytes, ())
            }
        }
    };
}

pub(crate) use in_envelope;

/// Checks the envelope and its checksum, and returns a reader of the content.
pub(crate) fn open(bytes: &[u8], kind: Kind) -> Result<Reader<'_>, DecodeError> {
    let short = DecodeError::Length { expected: ENVELOPE, found: bytes.len() };
    let content = bytes.len().checked_sub(CHECKSUM).filter(|&end| end >= HEADER).ok_or(short)?;
    let (signed, checksum) = bytes.split_at(content);
    let mut reader = Reader::new(signed, CHECKSUM);
    if reader.array::<8>()? != *MAGIC {
        return Err(DecodeError::Magic);
    }
    let version = u16::from_le_bytes(reader.array()?);
    if version != VERSION {
        return Err(DecodeError::Version { expected: VERSION, found: version });
    }
    let found = u16::from_le_bytes(reader.array()?);
    if found != kind as u16 {
        return Err(DecodeError::Kind { expected: kind as u16, found });
    }
    if Sha256::digest(signed)[..CHECKSUM] != *checksum {
        return Err(DecodeError::Checksum);
    }
    Ok(reader)
}
