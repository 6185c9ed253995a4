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
    /// Starts with nothing, and memory for so many bytes.
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        Self(Vec::with_capacity(bytes))
    }

    /// Returns what was written.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Appends bytes.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }
}

/// The bytes that are left to read.
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    /// Bytes of the whole that are read already or belong to its frame: lengths in errors are those of the whole.
    outside: usize,
}

impl<'a> Reader<'a> {
    /// Starts to read the bytes between the `outside` others of a whole.
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

    /// Returns what is left.
    #[cfg(feature = "proofs")]
    pub(crate) fn rest(self) -> &'a [u8] {
        self.rest
    }

    /// Checks that nothing is left.
    pub(crate) fn end(self) -> Result<(), DecodeError> {
        if self.rest.is_empty() { Ok(()) } else { Err(self.wrong_length(0)) }
    }

    /// Returns the error of a whole whose rest should have `rest` bytes.
    fn wrong_length(&self, rest: usize) -> DecodeError {
        DecodeError::Length { expected: self.outside.saturating_add(rest), found: self.outside + self.rest.len() }
    }
}
