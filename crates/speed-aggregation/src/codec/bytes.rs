//! Writing and reading of values in a fixed order.

use super::error::DecodeError;

/// A value with a single encoding.
pub(crate) trait Encode {
    /// Returns the number of bytes that [`Self::encode`] writes.
    fn encoded_len(&self) -> usize;

    /// Writes the bytes.
    fn encode(&self, writer: &mut Writer);
}

/// A value that can be decoded, given a parameter: a length, limits, or nothing. Memory is bounded by the length of the
/// input, never by a decoded field.
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
    /// Creates an empty writer with capacity for `bytes` bytes.
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        Self(Vec::with_capacity(bytes))
    }

    /// Returns the bytes written.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Appends bytes.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
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
