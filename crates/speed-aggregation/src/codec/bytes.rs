//! Writing and reading of values in a fixed order.

use super::error::DecodeError;

/// A value with one form in bytes.
pub(crate) trait Encode {
    /// Returns the number of bytes that [`Self::encode`] writes.
    fn encoded_len(&self) -> usize;

    /// Writes the bytes.
    fn encode(&self, writer: &mut Writer);
}

/// A value that can be read back, given a parameter: a length, limits, or nothing. Memory is bounded by the bytes at hand,
/// never by a field that was read.
pub(crate) trait Decode<Parameter = ()>: Sized {
    /// Reads the bytes that [`Encode::encode`] wrote.
    fn decode(reader: &mut Reader<'_>, parameter: Parameter) -> Result<Self, DecodeError>;
}

/// A type whose values all take the same number of bytes.
pub(crate) trait FixedLength {
    /// The number of bytes.
    const LENGTH: usize;
}

/// Implements [`Encode`] for a struct as some of its fields, one after another.
macro_rules! encode_in_order {
    ($type:ty: $($field:ident),+ $(,)?) => {
        impl $crate::codec::Encode for $type {
            fn encoded_len(&self) -> usize {
                0 $(+ $crate::codec::Encode::encoded_len(&self.$field))+
            }

            fn encode(&self, writer: &mut $crate::codec::Writer) {
                $($crate::codec::Encode::encode(&self.$field, writer);)+
            }
        }
    };
}

pub(crate) use encode_in_order;

/// The bytes written so far.
pub(crate) struct Writer(pub(super) Vec<u8>);

impl Writer {
    /// Appends bytes.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }
}

/// The bytes that are left to read.
pub(crate) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
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
        let (head, tail) =
            self.0.split_first_chunk::<N>().ok_or(DecodeError::Length { expected: N, found: self.0.len() })?;
        self.0 = tail;
        Ok(*head)
    }

    /// Reads `count` bytes.
    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], DecodeError> {
        let short = DecodeError::Length { expected: count, found: self.0.len() };
        let (head, tail) = self.0.split_at_checked(count).ok_or(short)?;
        self.0 = tail;
        Ok(head)
    }

    /// Checks that nothing is left.
    pub(crate) fn end(self) -> Result<(), DecodeError> {
        if self.0.is_empty() { Ok(()) } else { Err(DecodeError::Length { expected: 0, found: self.0.len() }) }
    }
}
