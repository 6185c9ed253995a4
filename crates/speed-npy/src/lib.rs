//! Arrays of whole numbers from `.npy` files (NumPy's format) that nobody vouches for: no file makes this crate panic, allocate
//! much more than the file's length, or run for long.

use npyz::{NpyFile, Order};

/// Longest header, in bytes: NumPy's own limit for files that nobody vouches for (`numpy.lib.format`, `max_header_size`).
const MAX_HEADER: usize = 10_000;
/// Most axes of an array, NumPy's own limit before version 2.
const MAX_AXES: usize = 32;

/// Bytes that are no array of whole numbers in C order.
#[derive(Debug, thiserror::Error)]
pub enum NpyError {
    /// A header that is longer than the file.
    #[error("not an .npy array: the header is longer than the file")]
    HeaderLength,
    /// A header that no array needs.
    #[error("not an array of numbers: expected a header of at most {MAX_HEADER} bytes, found {bytes}")]
    LongHeader {
        /// Bytes of the header.
        bytes: usize,
    },
    /// More axes than an array has.
    #[error("expected at most {MAX_AXES} axes, found {found}")]
    Axes {
        /// Axes found.
        found: usize,
    },
    /// A header that is no `.npy` header.
    #[error("not an .npy array: {0}")]
    Header(#[source] std::io::Error),
    /// An array of records.
    #[error("expected whole numbers, found a structured array")]
    Structured,
    /// An array in Fortran order.
    #[error("expected C order, found Fortran order: save it with numpy.ascontiguousarray")]
    FortranOrder,
    /// A shape whose product is no number of this machine.
    #[error("the shape is too large")]
    ShapeTooLarge,
    /// A header that promises more entries than the file has bytes.
    #[error("truncated: the header promises {entries} entries, the file has {bytes} bytes")]
    Promise {
        /// Entries promised.
        entries: usize,
        /// Bytes of the file.
        bytes: usize,
    },
    /// An entry that ends early.
    #[error("truncated: {0}")]
    Truncated(#[source] std::io::Error),
    /// Another number of entries than the shape says.
    #[error("expected {expected} entries, found {found}")]
    Entries {
        /// Entries of the shape.
        expected: usize,
        /// Entries found.
        found: usize,
    },
    /// A type of entries that is no number.
    #[error("expected numbers, found dtype {found}")]
    Type {
        /// The type.
        found: String,
    },
    /// A type of entries that is not unsigned bytes.
    #[error("expected unsigned bytes (dtype uint8), found dtype {found}")]
    NoBytes {
        /// The type.
        found: String,
    },
    /// An integer beyond 64 bits with sign.
    #[error("{found} is too large")]
    Large {
        /// The entry.
        found: i128,
    },
    /// A number that is not whole.
    #[error("expected whole numbers, found {found}")]
    Fraction {
        /// The entry.
        found: f64,
    },
}

/// An array of whole numbers, in C order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WholeNumbers {
    /// Length of each axis.
    pub shape: Vec<usize>,
    /// All values; as many as the product of the lengths.
    pub values: Vec<i64>,
}

impl WholeNumbers {
    /// Reads an array of integers, or of floating-point numbers that are whole. Memory is bounded by a small multiple of the
    /// length of `bytes`.
    ///
    /// # Errors
    /// With what was expected and found, if the bytes are not such an array in C order.
    pub fn parse(bytes: &[u8]) -> Result<Self, NpyError> {
        let Open { file, shape, entries } = open(bytes)?;
        let values = whole_numbers(file)?;
        if values.len() != entries {
            return Err(NpyError::Entries { expected: entries, found: values.len() });
        }
        Ok(Self { shape, values })
    }
}

/// Returns the lengths of an array's axes, from its header alone: what is no such array need not be unpacked.
///
/// # Errors
/// If the bytes do not begin like an array in C order.
pub fn shape(bytes: &[u8]) -> Result<Vec<usize>, NpyError> {
    open(bytes).map(|open| open.shape)
}

/// An array of unsigned bytes, in C order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ByteArray<'a> {
    /// Length of each axis.
    pub shape: Vec<usize>,
    /// All values, where they lie in the file; as many as the product of the lengths.
    pub values: &'a [u8],
}

impl<'a> ByteArray<'a> {
    /// Reads an array of unsigned bytes without a copy.
    ///
    /// # Errors
    /// With what was expected and found, if the bytes are not such an array in C order.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, NpyError> {
        let Open { file, shape, entries } = open(bytes)?;
        let found = file.dtype().descr().to_string();
        if !matches!(found.trim_matches('\''), "|u1" | "<u1" | ">u1" | "=u1" | "u1") {
            return Err(NpyError::NoBytes { found });
        }
        // Behind the header there are the entries and nothing else.
        let header = bytes.len() - header_end(bytes).ok_or(NpyError::HeaderLength)?.len();
        let values = &bytes[header..];
        if values.len() != entries {
            return Err(NpyError::Entries { expected: entries, found: values.len() });
        }
        Ok(Self { shape, values })
    }
}

/// An array whose header was checked.
struct Open<'a> {
    file: NpyFile<&'a [u8]>,
    /// The lengths of its axes.
    shape: Vec<usize>,
    /// Their product.
    entries: usize,
}

fn open(bytes: &[u8]) -> Result<Open<'_>, NpyError> {
    check_header(bytes)?;
    let file = NpyFile::new(bytes).map_err(NpyError::Header)?;
    if file.order() != Order::C {
        return Err(NpyError::FortranOrder);
    }
    let mut entries = 1usize;
    let mut shape = Vec::new();
    for &length in file.shape() {
        let length = usize::try_from(length).map_err(|_| NpyError::ShapeTooLarge)?;
        entries = entries.checked_mul(length).ok_or(NpyError::ShapeTooLarge)?;
        shape.push(length);
    }
    // Every entry takes at least a byte: a header that promises more than the file holds is refused before anything
    // of that size is allocated.
    if entries > bytes.len() {
        return Err(NpyError::Promise { entries, bytes: bytes.len() });
    }
    Ok(Open { file, shape, entries })
}

fn whole_numbers(file: NpyFile<&[u8]>) -> Result<Vec<i64>, NpyError> {
    macro_rules! integers {
        ($file:ident, $($kind:ty),+) => {$(
            let $file = match $file.try_data::<$kind>() {
                Ok(data) => {
                    return data
                        .map(|value| {
                            let value = value.map_err(NpyError::Truncated)?;
                            i64::try_from(value).map_err(|_| NpyError::Large { found: value.into() })
                        })
                        .collect();
                }
                Err(file) => file,
            };
        )+};
    }
    macro_rules! floats {
        ($file:ident, $($kind:ty),+) => {$(
            let $file = match $file.try_data::<$kind>() {
                Ok(data) => {
                    return data
                        .map(|value| whole(f64::from(value.map_err(NpyError::Truncated)?)))
                        .collect();
                }
                Err(file) => file,
            };
        )+};
    }
    integers!(file, u8, i8, u16, i16, u32, i32, u64, i64);
    floats!(file, f32, f64);
    Err(NpyError::Type { found: file.dtype().descr().to_string() })
}

fn whole(value: f64) -> Result<i64, NpyError> {
    const MAX_EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() <= MAX_EXACT {
        #[expect(clippy::cast_possible_truncation, reason = "whole and below 2^53")]
        return Ok(value as i64);
    }
    Err(NpyError::Fraction { found: value })
}

/// Returns what lies behind the header.
fn header_end(bytes: &[u8]) -> Option<&[u8]> {
    let header = header(bytes)?;
    let start = if bytes[6] == 1 { 10 } else { 12 };
    bytes.get(start + header.len()..)
}

/// Returns the header, whose length is two bytes in version 1 and four from version 2 on; none if it is longer than the file.
fn header(bytes: &[u8]) -> Option<&[u8]> {
    let (length, start) = match bytes.get(6)? {
        1 => (bytes.get(8..10)?, 10),
        _ => (bytes.get(8..12)?, 12),
    };
    let length = length.iter().rev().fold(0, |length, &byte| length << 8 | usize::from(byte));
    bytes.get(start..)?.get(..length)
}

/// Checks the header before `npyz` parses it: it allocates the header's length before it reads, some kilobytes for each number of a
/// tuple, and takes time exponential in the depth of nested brackets. An array of numbers has one dictionary, with one tuple in it.
fn check_header(bytes: &[u8]) -> Result<(), NpyError> {
    let header = header(bytes).ok_or(NpyError::HeaderLength)?;
    if header.len() > MAX_HEADER {
        return Err(NpyError::LongHeader { bytes: header.len() });
    }
    let count = |byte| header.iter().filter(|&&found| found == byte).count();
    if count(b'{') > 1 || count(b'(') > 1 || count(b'[') > 0 {
        return Err(NpyError::Structured);
    }
    let tuple = header.split(|&byte| byte == b'(').nth(1).and_then(|rest| rest.split(|&byte| byte == b')').next());
    let axes =
        tuple.map_or(0, |tuple| tuple.split(|&byte| byte == b',').filter(|axis| !axis.trim_ascii().is_empty()).count());
    if axes > MAX_AXES {
        return Err(NpyError::Axes { found: axes });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_where_they_are() {
        let file = |descr: &str, shape: &str, values: &[u8]| {
            let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
            [b"\x93NUMPY\x01\x00", [header.len() as u8, 0].as_slice(), header.as_bytes(), values].concat()
        };
        let good = file("|u1", "(2, 3)", &[1, 2, 3, 4, 5, 6]);
        let found = ByteArray::parse(&good).expect("an array");
        assert_eq!((found.shape, found.values), (vec![2, 3], &[1, 2, 3, 4, 5, 6][..]));
        let refused = |bytes: &[u8]| ByteArray::parse(bytes).expect_err("refused").to_string();
        assert!(refused(&file("<i2", "(3,)", &[0; 6])).contains("uint8"));
        assert_eq!(shape(&good).expect("a header"), [2, 3]);
        assert!(refused(&file("|u1", "(2, 3)", &[0; 7])).contains("expected 6 entries, found 7"));
        assert!(refused(&file("|u1", "(2, 3000)", &[0; 6])).contains("promises 6000"));
        assert!(refused(&good[..20]).contains("header"));
    }

    #[test]
    fn headers_that_would_take_memory_or_time_are_refused() {
        // Both found by fuzzing.
        assert!(WholeNumbers::parse(b"\x93NUMPY\x02\x00\xff\xff\xff\x7f{'descr'").is_err());
        let header = format!("{{'descr': '<i4', 'fortran_order': False, 'shape': (3, ), {}", "{".repeat(60));
        let bytes = [b"\x93NUMPY\x01\x00", [header.len() as u8, 0].as_slice(), header.as_bytes()].concat();
        assert!(WholeNumbers::parse(&bytes).is_err_and(|error| matches!(error, NpyError::Structured)));
    }

    #[test]
    fn headers_with_many_axes_are_refused() {
        let file = |ones: usize, version: u8| {
            let header = format!("{{'descr': '|u1', 'fortran_order': False, 'shape': ({}3,), }}\n", "1, ".repeat(ones));
            let length = (header.len() as u32).to_le_bytes();
            let length = if version == 1 { &length[..2] } else { &length[..] };
            [b"\x93NUMPY".as_slice(), &[version, 0], length, header.as_bytes(), &[1, 2, 3]].concat()
        };
        assert_eq!(WholeNumbers::parse(&file(31, 1)).expect("as many as NumPy has").values, [1, 2, 3]);
        let refused = |bytes: &[u8]| WholeNumbers::parse(bytes).expect_err("refused").to_string();
        assert_eq!(refused(&file(32, 1)), "expected at most 32 axes, found 33");
        assert_eq!(refused(&file(3000, 2)), "expected at most 32 axes, found 3001");
        // A megabyte of header cost 420 MB and seconds.
        assert!(refused(&file(350_000, 2)).contains("at most 10000 bytes, found 1050"));
    }
}

/// The README's examples, compiled and run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
