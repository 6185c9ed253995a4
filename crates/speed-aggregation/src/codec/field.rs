//! Encoding and decoding of the parts of a content. Numbers are little-endian.

use speed_core::Digest;

use super::bytes::{Decode, Encode, FixedLength, Reader, Writer};
use super::error::DecodeError;
use crate::answer_seed::AnswerSeed;
use crate::ids::{KeyId, RoundId};
use crate::signature::Signature;

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
