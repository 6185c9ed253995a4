//! The wire format: values in a fixed order, in an envelope with magic, version, kind and checksum.
//!
//! A wire type defines with [`Encode`] the order of its fields, with [`Decode`] how to read them back under limits, and
//! with [`Content`] the kind of envelope that holds it. No type hard-codes an offset. Numbers are little-endian. Nothing is allocated from a
//! length field: lengths are checked against the bytes at hand. docs/protocol.md, "Binary files", has the bytes of every file. A message
//! (kind 1) and a list of answers (kind 3) are the signed ones without proofs, sum and signature.

use sha2::{Digest as _, Sha256};
use speed_core::Digest;

use crate::answer_seed::AnswerSeed;
use crate::ids::{KeyId, RoundId};
use crate::signature::Signature;

/// The kind of an envelope's content.
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
    Submission = 8,
    SignedResult = 9,
    #[cfg(feature = "proofs")]
    ProofKey = 10,
    RoundLog = 11,
    Receipt = 12,
    RevealedSeed = 13,
    Verification = 14,
    #[cfg(feature = "student")]
    StudentShare = 15,
    OpenerShare = 16,
    OpeningPart = 17,
}

/// Returns the name of a kind, with the usual name of its file.
fn kind_name(kind: u16) -> Option<&'static str> {
    const NAMES: [&str; 17] = [
        "a message without a signature",
        "an answer to one query",
        "a list of answers without a signature",
        "a server's state",
        "a secret key (secret.key)",
        "a public key (public.key)",
        "an evaluation key (evaluation.key)",
        "a teacher's message",
        "a round's result",
        "a proof key (proof.key)",
        "a round's log",
        "a receipt",
        "a revealed seed",
        "a verification of a result",
        "a student's share of a secret key (student.share)",
        "an opener's share of a secret key (opener.share)",
        "an opener's part of a result",
    ];
    NAMES.get(usize::from(kind).checked_sub(1)?).copied()
}

/// The reason why bytes are not a well-formed message or answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the fields")]
#[non_exhaustive]
pub enum DecodeError {
    /// The length differs from the one that the header implies.
    #[error("{found} bytes, expected {expected}")]
    Length { expected: usize, found: usize },
    /// The first eight bytes are not this format's.
    #[error("not a file of this program (wrong magic bytes)")]
    Magic,
    /// A version that this program does not read.
    #[error("format version {found}, this program reads version {expected}")]
    Version { expected: u16, found: u16 },
    /// A file of another kind.
    #[error("is {}, expected {}", in_words(*.found), in_words(*.expected))]
    Kind { expected: u16, found: u16 },
    /// A bit that this version does not know is set.
    #[error("{field} has bits {found:#x}, known are {known:#x}")]
    Flags { field: &'static str, found: u32, known: u32 },
    /// The content was changed on its way.
    #[error("checksum mismatch: the content was damaged")]
    Checksum,
    /// A public key that would leave votes unencrypted.
    #[error(
        "a degenerate key: expected a body that looks random, found one whose words times {multiplier} are close to 0"
    )]
    Degenerate { multiplier: u64 },
    /// A header field is outside its limits.
    #[error("{field} is {found}, allowed is {min} to {max}")]
    Field { field: &'static str, found: u64, min: u64, max: u64 },
}

fn in_words(kind: u16) -> String {
    kind_name(kind).map_or_else(|| format!("a file of the unknown kind {kind}"), str::to_owned)
}

/// A value with a single encoding.
pub(crate) trait Encode {
    fn encode(&self, writer: &mut Writer);

    /// Returns the number of bytes that [`Self::encode`] writes.
    fn encoded_len(&self) -> usize {
        let mut writer = Writer { bytes: Vec::new(), counted: Some(0) };
        self.encode(&mut writer);
        writer.counted.unwrap_or_default()
    }
}

/// A value that can be decoded, given a parameter: a length, limits, or nothing. Memory is bounded by the length of the
/// input, never by a decoded field.
pub(crate) trait Decode<Parameter = ()>: Sized {
    /// Reads the bytes that [`Encode::encode`] wrote.
    fn decode(reader: &mut Reader<'_>, parameter: Parameter) -> Result<Self, DecodeError>;
}

/// A type whose values all take the same number of bytes.
pub(crate) trait FixedLength {
    const LENGTH: usize;
}

/// Implements [`Encode`] for a struct as some of its fields, one after another.
macro_rules! encode_in_order {
    ($type:ty: $($field:ident),+ $(,)?) => {
        impl $crate::codec::Encode for $type {
            fn encode(&self, writer: &mut $crate::codec::Writer) {
                $($crate::codec::Encode::encode(&self.$field, writer);)+
            }
        }
    };
}

pub(crate) use encode_in_order;

/// Implements [`Encode`] and [`Decode`] for a struct as all of its fields, one after another. A number has its limits.
macro_rules! in_order {
    (@read $reader:ident) => { $reader.read()? };
    (@read $reader:ident $limits:expr) => { $reader.read_with($limits)? };
    ($type:ty: $($field:ident $(= $limits:expr)?),+ $(,)?) => {
        $crate::codec::encode_in_order!($type: $($field),+);

        impl $crate::codec::Decode for $type {
            fn decode(reader: &mut $crate::codec::Reader<'_>, (): ()) -> Result<Self, $crate::codec::DecodeError> {
                Ok(Self { $($field: $crate::codec::in_order!(@read reader $($limits)?)),+ })
            }
        }
    };
}

pub(crate) use in_order;

/// The bytes written so far, or only their number.
pub(crate) struct Writer {
    bytes: Vec<u8>,
    counted: Option<usize>,
}

impl Writer {
    /// Creates an empty writer with capacity for `bytes` bytes.
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        Self { bytes: Vec::with_capacity(bytes), counted: None }
    }

    /// Returns the bytes written.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Returns the bytes written.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Appends bytes.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        match &mut self.counted {
            Some(counted) => *counted += bytes.len(),
            None => self.bytes.extend_from_slice(bytes),
        }
    }
}

/// The bytes that remain to be read.
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    /// Bytes outside `rest`: those already read and those of the surrounding frame. Lengths in errors refer to the
    /// complete input.
    outside: usize,
}

impl<'a> Reader<'a> {
    /// Creates a reader of `rest`, the part of an input that has `outside` more bytes.
    pub(crate) fn new(rest: &'a [u8], outside: usize) -> Self {
        Self { rest, outside }
    }

    /// Reads a value.
    pub(crate) fn read<T: Decode>(&mut self) -> Result<T, DecodeError> {
        T::decode(self, ())
    }

    /// Reads a value that needs a parameter.
    pub(crate) fn read_with<Parameter, T: Decode<Parameter>>(
        &mut self,
        parameter: Parameter,
    ) -> Result<T, DecodeError> {
        T::decode(self, parameter)
    }

    /// Reads `N` bytes.
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (head, tail) = self.rest.split_first_chunk::<N>().ok_or(self.wrong_length(N))?;
        (self.rest, self.outside) = (tail, self.outside + N);
        Ok(*head)
    }

    /// Reads `count` bytes.
    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], DecodeError> {
        let (head, tail) = self.rest.split_at_checked(count).ok_or(self.wrong_length(count))?;
        (self.rest, self.outside) = (tail, self.outside + count);
        Ok(head)
    }

    /// Returns the unread bytes.
    #[cfg(feature = "proofs")]
    pub(crate) fn rest(self) -> &'a [u8] {
        self.rest
    }

    /// Checks that all bytes were read.
    pub(crate) fn end(self) -> Result<(), DecodeError> {
        if self.rest.is_empty() { Ok(()) } else { Err(self.wrong_length(0)) }
    }

    /// Returns the error of an input that should continue with `rest` bytes.
    fn wrong_length(&self, rest: usize) -> DecodeError {
        DecodeError::Length { expected: self.outside.saturating_add(rest), found: self.outside + self.rest.len() }
    }
}

/// The first bytes of every envelope.
pub(crate) const MAGIC: &[u8; 8] = b"SPEEDAGG";
const VERSION: u16 = 4;
const CHECKSUM: usize = 16;
const HEADER: usize = MAGIC.len() + size_of::<u16>() + size_of::<u16>();

/// Bytes of an envelope without its content.
pub(crate) const ENVELOPE: usize = HEADER + CHECKSUM;

/// Returns the kind of a file by its first bytes, in words, or `None` if they do not begin an envelope. Later bytes are
/// not checked.
pub fn file_kind(bytes: &[u8]) -> Option<&'static str> {
    let kind = bytes.strip_prefix(MAGIC)?.get(2..4)?;
    kind_name(u16::from_le_bytes(kind.try_into().ok()?))
}

/// A value that travels in its own envelope.
pub(crate) trait Content: Encode {
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

/// Inclusive limits of a number, with the name of its field.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) field: &'static str,
    pub(crate) min: usize,
    pub(crate) max: usize,
}

impl Limits {
    /// Returns limits that allow one value only.
    pub(crate) fn exactly(field: &'static str, value: usize) -> Self {
        Self { field, min: value, max: value }
    }
}

impl FixedLength for usize {
    const LENGTH: usize = 4;
}

/// A number below `2^32`, like all limits of a round.
impl Encode for usize {
    fn encode(&self, writer: &mut Writer) {
        writer.bytes(&u32::try_from(*self).expect("the limits of a round are below 2^32").to_le_bytes());
    }
}

impl Decode<Limits> for usize {
    fn decode(reader: &mut Reader<'_>, Limits { field, min, max }: Limits) -> Result<Self, DecodeError> {
        let found = u32::from_le_bytes(reader.array()?);
        if !(min..=max).contains(&(found as usize)) {
            return Err(DecodeError::Field { field, found: found.into(), min: min as u64, max: max as u64 });
        }
        Ok(found as usize)
    }
}

/// Returns the value of `all` that one byte stands for.
pub(crate) fn of_byte<T: Copy>(all: &[T], field: &'static str, found: u8) -> Result<T, DecodeError> {
    let max = all.len() as u64 - 1;
    let unknown = DecodeError::Field { field, found: found.into(), min: 0, max };
    all.get(usize::from(found)).copied().ok_or(unknown)
}

/// A set of bits. A decoder names the bits that it knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flags(u32);

impl Flags {
    /// Sets the bits whose condition holds.
    pub(crate) fn new<const N: usize>(bits: [(u32, bool); N]) -> Self {
        Self(bits.into_iter().filter(|(_, set)| *set).fold(0, |flags, (bit, _)| flags | bit))
    }

    /// Returns whether a bit is set.
    pub(crate) fn has(self, bit: u32) -> bool {
        self.0 & bit != 0
    }
}

impl FixedLength for Flags {
    const LENGTH: usize = 4;
}

impl Encode for Flags {
    fn encode(&self, writer: &mut Writer) {
        writer.bytes(&self.0.to_le_bytes());
    }
}

/// The parameter is the known bits.
impl Decode<u32> for Flags {
    fn decode(reader: &mut Reader<'_>, known: u32) -> Result<Self, DecodeError> {
        let found = u32::from_le_bytes(reader.array()?);
        if found & !known == 0 { Ok(Self(found)) } else { Err(DecodeError::Flags { field: "flags", found, known }) }
    }
}

macro_rules! fixed_bytes {
    ($($type:ty: $length:literal),+) => {$(
        impl FixedLength for $type {
            const LENGTH: usize = $length;
        }

        impl Encode for $type {
            fn encode(&self, writer: &mut Writer) {
                writer.bytes(self.as_bytes());
            }
        }

        impl Decode for $type {
            fn decode(reader: &mut Reader<'_>, (): ()) -> Result<Self, DecodeError> {
                reader.array().map(Self::from_bytes)
            }
        }
    )+};
}

fixed_bytes!(KeyId: 32, RoundId: 32, Digest: 32, AnswerSeed: 32, Signature: 64);

impl Encode for &[u8] {
    fn encode(&self, writer: &mut Writer) {
        writer.bytes(self);
    }
}

impl FixedLength for u128 {
    const LENGTH: usize = 16;
}

impl Encode for u128 {
    fn encode(&self, writer: &mut Writer) {
        writer.bytes(&self.to_le_bytes());
    }
}

impl Decode for u128 {
    fn decode(reader: &mut Reader<'_>, (): ()) -> Result<Self, DecodeError> {
        Ok(Self::from_le_bytes(reader.array()?))
    }
}

impl Encode for [u64] {
    fn encode(&self, writer: &mut Writer) {
        self.iter().for_each(|word| writer.bytes(&word.to_le_bytes()));
    }
}

impl Encode for Vec<u64> {
    fn encode(&self, writer: &mut Writer) {
        self.as_slice().encode(writer);
    }
}

/// The parameter is the number of words.
impl Decode<usize> for Vec<u64> {
    fn decode(reader: &mut Reader<'_>, count: usize) -> Result<Self, DecodeError> {
        let (words, _) = reader.take(count.saturating_mul(size_of::<u64>()))?.as_chunks::<8>();
        Ok(words.iter().map(|word| u64::from_le_bytes(*word)).collect())
    }
}

impl<T: Encode + ?Sized> Encode for &T {
    fn encode(&self, writer: &mut Writer) {
        (**self).encode(writer);
    }
}
