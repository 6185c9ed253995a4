//! The envelope around everything that travels: magic, version, kind, content, checksum.
//!
//! ```text
//! offset  bytes  content
//! 0       8      "SPEEDAGG"
//! 8       2      version, 2
//! 10      2      kind: 1 message of a teacher, 2 answer to one query, 3 list of a round's answers, 4 state of a server,
//!                5 secret key, 6 public key, 7 evaluation key
//! 12      ..     content
//! end-16  16     first half of SHA-256 of all before
//! ```
//! Numbers are little-endian. Nothing is allocated from a length field: lengths are checked against the bytes at hand.

use sha2::{Digest, Sha256};

pub(crate) const MAGIC: &[u8; 8] = b"SPEEDAGG";
pub(crate) const VERSION: u16 = 2;
const CHECKSUM: usize = 16;
const HEADER: usize = 12;

/// Bytes of an envelope beside its content.
pub(crate) const ENVELOPE: usize = HEADER + CHECKSUM;

/// What an envelope holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Message = 1,
    Answer = 2,
    AnswerList = 3,
    ServerState = 4,
    #[cfg(feature = "student")]
    SecretKey = 5,
    PublicKey = 6,
    EvaluationKey = 7,
}

/// Bytes that are not a well-formed message or answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The length is not what the header calls for.
    #[error("{found} bytes, expected {expected}")]
    Length {
        /// Bytes that the header calls for (at least).
        expected: usize,
        /// Bytes given.
        found: usize,
    },
    /// The first eight bytes are not this format's.
    #[error("not a file of this program (wrong magic bytes)")]
    Magic,
    /// A version that this program does not read.
    #[error("format version {found}, this program reads version {expected}")]
    Version {
        /// The version that this program reads.
        expected: u16,
        /// The version found.
        found: u16,
    },
    /// A file of the other kind.
    #[error("file of kind {found}, expected kind {expected}")]
    Kind {
        /// The kind asked for.
        expected: u16,
        /// The kind found.
        found: u16,
    },
    /// A bit that this version does not know is set.
    #[error("{field} has bits {found:#x}, known are {known:#x}")]
    Flags {
        /// The name of the field.
        field: &'static str,
        /// The bits found.
        found: u32,
        /// The bits that this program knows.
        known: u32,
    },
    /// The content was changed on its way.
    #[error("checksum mismatch: the content was damaged")]
    Checksum,
    /// A header field is outside its limits.
    #[error("{field} is {found}, allowed is {min} to {max}")]
    Field {
        /// The name of the field.
        field: &'static str,
        /// The value found.
        found: u64,
        /// The smallest value allowed.
        min: u64,
        /// The largest value allowed.
        max: u64,
    },
}

pub(crate) struct Writer(Vec<u8>);

impl Writer {
    pub(crate) fn new(kind: Kind, content: usize) -> Self {
        let mut bytes = Vec::with_capacity(HEADER + content + CHECKSUM);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&(kind as u16).to_le_bytes());
        Self(bytes)
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.bytes(&value.to_le_bytes());
    }

    /// A number below `2^32`, as all limits of a round are.
    pub(crate) fn count(&mut self, count: usize) {
        self.u32(u32::try_from(count).expect("the limits of Round are below 2^32"));
    }

    pub(crate) fn words(&mut self, words: &[u64]) {
        for word in words {
            self.bytes(&word.to_le_bytes());
        }
    }

    pub(crate) fn finish(mut self) -> Vec<u8> {
        let digest = Sha256::digest(&self.0);
        self.bytes(&digest[..CHECKSUM]);
        self.0
    }
}

pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Checks envelope and checksum, and returns a reader of the content.
    pub(crate) fn new(bytes: &'a [u8], kind: Kind) -> Result<Self, DecodeError> {
        let short = DecodeError::Length { expected: HEADER + CHECKSUM, found: bytes.len() };
        let content = bytes.len().checked_sub(CHECKSUM).filter(|&end| end >= HEADER).ok_or(short)?;
        let (signed, checksum) = bytes.split_at(content);
        let mut reader = Self(signed);
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

    /// The content of bytes that begin like an envelope of this kind, without any other check.
    pub(crate) fn unchecked(bytes: &'a [u8], kind: Kind) -> Option<&'a [u8]> {
        let rest = bytes.strip_prefix(MAGIC.as_slice())?.strip_prefix(&VERSION.to_le_bytes())?;
        rest.strip_prefix(&(kind as u16).to_le_bytes())
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (head, tail) =
            self.0.split_first_chunk::<N>().ok_or(DecodeError::Length { expected: N, found: self.0.len() })?;
        self.0 = tail;
        Ok(*head)
    }

    /// The next `count` bytes.
    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], DecodeError> {
        let short = DecodeError::Length { expected: count, found: self.0.len() };
        let (head, tail) = self.0.split_at_checked(count).ok_or(short)?;
        self.0 = tail;
        Ok(head)
    }

    /// A field with limits (inclusive).
    pub(crate) fn bounded(&mut self, field: &'static str, min: usize, max: usize) -> Result<usize, DecodeError> {
        let found = u32::from_le_bytes(self.array()?);
        if !(min..=max).contains(&(found as usize)) {
            return Err(DecodeError::Field { field, found: found.into(), min: min as u64, max: max as u64 });
        }
        Ok(found as usize)
    }

    /// A field of bits, of which only those in `known` may be set.
    pub(crate) fn flags(&mut self, field: &'static str, known: u32) -> Result<u32, DecodeError> {
        let found = u32::from_le_bytes(self.array()?);
        if found & !known == 0 { Ok(found) } else { Err(DecodeError::Flags { field, found, known }) }
    }

    /// The next `count` words.
    pub(crate) fn take_words(&mut self, count: usize) -> Result<Vec<u64>, DecodeError> {
        let (words, _) = self.take(count.saturating_mul(size_of::<u64>()))?.as_chunks::<8>();
        Ok(words.iter().map(|word| u64::from_le_bytes(*word)).collect())
    }

    /// All that is left, which must be exactly `count` words.
    pub(crate) fn words(mut self, count: usize) -> Result<Vec<u64>, DecodeError> {
        let expected = count.saturating_mul(size_of::<u64>());
        if self.0.len() != expected {
            return Err(DecodeError::Length { expected, found: self.0.len() });
        }
        self.take_words(count)
    }

    /// Checks that nothing is left.
    pub(crate) fn end(self) -> Result<(), DecodeError> {
        if self.0.is_empty() { Ok(()) } else { Err(DecodeError::Length { expected: 0, found: self.0.len() }) }
    }
}
