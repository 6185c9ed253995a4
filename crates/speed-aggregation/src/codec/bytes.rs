//! Writing and reading of values in a fixed order.

use super::error::DecodeError;

/// A value with a single encoding.
pub(crate) trait Encode {
    /// Writes the bytes.
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
    /// The number of bytes.
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
