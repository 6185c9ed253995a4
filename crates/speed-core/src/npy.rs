//! Arrays of numbers from untrusted `.npy` files (NumPy's format). No input makes this crate panic, allocate much more
//! than the file's length, or run for long.

use std::ops::Range;

use half::f16;
use npyz::{NpyFile, NpyHeader, Order};

/// Longest header, in bytes: NumPy's own limit for untrusted files (`numpy.lib.format`, `max_header_size`).
const MAX_HEADER: usize = 10_000;
/// Largest number of axes: NumPy's own limit before version 2.
const MAX_AXES: usize = 32;

/// Bytes that are not an array of the wanted numbers in C order, with the expected and the found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NpyError(String);

impl NpyError {
    fn header(error: impl std::fmt::Display) -> Self {
        Self(format!("not an .npy array: {error}"))
    }

    fn truncated(error: impl std::fmt::Display) -> Self {
        Self(format!("truncated: {error}"))
    }
}

/// An array of numbers, in C order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Array<T> {
    /// Length of each axis.
    pub shape: Vec<usize>,
    /// All values, in C order.
    pub values: Vec<T>,
}

/// An array of integers.
pub type WholeNumbers = Array<i64>;

impl WholeNumbers {
    /// Parses an array of integers, or of floating-point numbers with integer values. Memory is bounded by a small
    /// multiple of the length of `bytes`.
    ///
    /// # Errors
    /// If the bytes are not such an array in C order. The error states the expected and the found.
    pub fn parse(bytes: &[u8]) -> Result<Self, NpyError> {
        parse(bytes, whole_numbers)
    }
}

/// An array of floating-point numbers; NaN and infinite values are kept.
pub type RealNumbers = Array<f32>;

impl RealNumbers {
    /// Parses an array of floating-point numbers of 2, 4 or 8 bytes; those of 8 bytes are rounded to 4. Memory is bounded by
    /// a small multiple of the length of `bytes`.
    ///
    /// # Errors
    /// If the bytes are not such an array in C order. The error states the expected and the found.
    pub fn parse(bytes: &[u8]) -> Result<Self, NpyError> {
        parse(bytes, real_numbers)
    }
}

fn parse<'a, T>(
    bytes: &'a [u8],
    read: impl FnOnce(NpyFile<&'a [u8]>) -> Result<Vec<T>, NpyError>,
) -> Result<Array<T>, NpyError> {
    let Open { file, shape, entries, data } = open(bytes)?;
    let width = file.dtype().num_bytes();
    let values = read(file)?;
    check_entries(entries, values.len())?;
    match data.len().saturating_sub(entries.saturating_mul(width.unwrap_or(0))) {
        0 => Ok(Array { shape, values }),
        bytes => Err(NpyError(format!(
            "expected nothing after {entries} entries, found {bytes} more bytes: save each array in its own file"
        ))),
    }
}

fn check_entries(expected: usize, found: usize) -> Result<(), NpyError> {
    if expected == found { Ok(()) } else { Err(NpyError(format!("expected {expected} entries, found {found}"))) }
}

/// Returns the converted entries of a file that has one of these types.
macro_rules! read {
    ($file:ident, $($kind:ty),+ => $convert:expr) => {$(
        let $file = match $file.try_data::<$kind>() {
            Ok(data) => return data.map(|value| value.map_err(NpyError::truncated).and_then($convert)).collect(),
            Err(file) => file,
        };
    )+};
}

fn real_numbers(file: NpyFile<&[u8]>) -> Result<Vec<f32>, NpyError> {
    read!(file, f16 => |value| Ok(value.to_f32()));
    read!(file, f32 => Ok);
    read!(file, f64 => |value| Ok(value as f32));
    let found = file.dtype().descr();
    Err(NpyError(format!("expected floating-point numbers of 2, 4 or 8 bytes, found dtype {found}")))
}

/// Returns whether an array has floating-point numbers, from its header alone.
///
/// # Errors
/// If the bytes do not begin like an array in C order.
pub fn has_reals(bytes: &[u8]) -> Result<bool, NpyError> {
    let Open { file, .. } = open(bytes)?;
    let found = file.dtype().descr().to_string();
    Ok(matches!(found.trim_matches('\'').trim_start_matches(['<', '>', '=', '|']), "f2" | "f4" | "f8"))
}

/// Returns the lengths of an array's axes from its header alone, so an unsuitable array need not be decoded.
///
/// # Errors
/// If the bytes do not begin like an array in C order.
pub fn shape(bytes: &[u8]) -> Result<Vec<usize>, NpyError> {
    open(bytes).map(|open| open.shape)
}

/// An array of unsigned bytes, in C order.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ByteArray<'a> {
    /// Length of each axis.
    pub shape: Vec<usize>,
    /// All values, borrowed from the file's bytes, in C order.
    pub values: &'a [u8],
}

impl<'a> ByteArray<'a> {
    /// Parses an array of unsigned bytes without a copy.
    ///
    /// # Errors
    /// If the bytes are not such an array in C order. The error states the expected and the found.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, NpyError> {
        let Open { file, shape, entries, data: values } = open(bytes)?;
        let found = file.dtype().descr().to_string();
        if !matches!(found.trim_matches('\''), "|u1" | "<u1" | ">u1" | "=u1" | "u1") {
            return Err(NpyError(format!(
                "expected unsigned bytes (dtype uint8), found dtype {found}: save values of 0 to 255 with array.astype(numpy.uint8), \
                 floats of 0 to 1 with numpy.rint(255 * array).astype(numpy.uint8)"
            )));
        }
        // The header must be followed by the entries and nothing else.
        check_entries(entries, values.len())?;
        Ok(Self { shape, values })
    }
}

/// An array with a checked header.
struct Open<'a> {
    file: NpyFile<&'a [u8]>,
    shape: Vec<usize>,
    entries: usize,
    /// The bytes after the header.
    data: &'a [u8],
}

fn open(bytes: &[u8]) -> Result<Open<'_>, NpyError> {
    let (head, data) = check_header(bytes)?;
    let head = NpyHeader::from_reader(&*head).map_err(NpyError::header)?;
    // If at most one axis is longer than 1, C order and Fortran order are the same.
    if head.order() != Order::C && head.shape().iter().filter(|&&length| length != 1).count() > 1 {
        let next = "save it with numpy.ascontiguousarray";
        return Err(NpyError(format!("expected C order, found Fortran order: {next}")));
    }
    let file = NpyFile::with_header(head, data);
    let too_large = || NpyError("the shape is too large".to_owned());
    let mut entries = 1usize;
    let mut shape = Vec::new();
    for &length in file.shape() {
        let length = usize::try_from(length).map_err(|_| too_large())?;
        entries = entries.checked_mul(length).ok_or_else(too_large)?;
        shape.push(length);
    }
    // Every entry takes at least one byte. A header that promises more entries than the file has bytes is refused
    // before an allocation of that size.
    if entries > bytes.len() {
        let bytes = bytes.len();
        return Err(NpyError::truncated(format_args!(
            "the header promises {entries} entries, the file has {bytes} bytes"
        )));
    }
    Ok(Open { file, shape, entries, data })
}

fn whole_numbers(file: NpyFile<&[u8]>) -> Result<Vec<i64>, NpyError> {
    read!(file, u8, i8, u16, i16, u32, i32 => |value| Ok(value.into()));
    read!(file, u64 => |value| i64::try_from(value).map_err(|_| NpyError(format!("{value} is too large"))));
    read!(file, i64 => Ok);
    read!(file, f16 => |value| whole(value.into(), f16::MANTISSA_DIGITS));
    read!(file, f32 => |value| whole(value.into(), f32::MANTISSA_DIGITS));
    read!(file, f64 => |value| whole(value, f64::MANTISSA_DIGITS));
    Err(NpyError(format!(
        "expected numbers, found dtype {}: save integers with array.astype(numpy.int64), or the indices of a mask with \
         numpy.flatnonzero(mask)",
        file.dtype().descr()
    )))
}

/// Returns the integer that `value` holds exactly, for a floating-point type with `digits` binary digits. A larger
/// value may be a rounded neighbour.
fn whole(value: f64, digits: u32) -> Result<i64, NpyError> {
    let max = f64::from(digits).exp2();
    if value.fract() != 0.0 || !value.is_finite() {
        return Err(NpyError(format!("expected integers, found {value}")));
    }
    if value.abs() > max {
        return Err(NpyError(format!(
            "expected integers up to {max} in this floating-point type, found {value}: save the array with an integer type"
        )));
    }
    Ok(value as i64)
}

/// Returns the byte range of the header's text, or `None` if it is longer than the file. The length field has two bytes
/// in version 1 and four bytes in later versions.
fn header_text(bytes: &[u8]) -> Option<Range<usize>> {
    let start = if *bytes.get(6)? == 1 { 10 } else { 12 };
    let length = bytes.get(8..start)?.iter().rev().fold(0, |length, &byte| length << 8 | usize::from(byte));
    let end = start.checked_add(length)?;
    (end <= bytes.len()).then_some(start..end)
}

/// Splits a file into header and entries. The header is checked before `npyz` parses it, because `npyz` allocates the
/// header's length before it reads, allocates some kilobytes for each number of a tuple, and takes time exponential in
/// the depth of nested brackets. An array of numbers has one dictionary with one tuple. The L that Python 2 wrote after
/// long integers is removed.
fn check_header(bytes: &[u8]) -> Result<(Vec<u8>, &[u8]), NpyError> {
    let text = header_text(bytes).ok_or_else(|| NpyError::header("the header is longer than the file"))?;
    if text.len() > MAX_HEADER {
        let bytes = text.len();
        return Err(NpyError(format!(
            "not an array of numbers: expected a header of at most {MAX_HEADER} bytes, found {bytes}"
        )));
    }
    let (mut header, data) = (bytes[..text.end].to_vec(), &bytes[text.end..]);
    let text = &mut header[text.start..];
    let count = |byte| text.iter().filter(|&&found| found == byte).count();
    if count(b'{') > 1 || count(b'(') > 1 || count(b'[') > 0 {
        return Err(NpyError("expected integers, found a structured array".to_owned()));
    }
    if let Some(tuple) =
        text.split_mut(|&byte| byte == b'(').nth(1).and_then(|rest| rest.split_mut(|&byte| byte == b')').next())
    {
        let axes = tuple.split(|&byte| byte == b',').filter(|axis| !axis.trim_ascii().is_empty()).count();
        if axes > MAX_AXES {
            return Err(NpyError(format!("expected at most {MAX_AXES} axes, found {axes}")));
        }
        for place in 1..tuple.len() {
            if tuple[place] == b'L' && tuple[place - 1].is_ascii_digit() {
                tuple[place] = b' ';
            }
        }
    }
    Ok((header, data))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_where_they_are() {
        let file = |descr: &str, shape: &str, values: &[u8]| array(descr, shape, false, values);
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
        assert!(refused(&bytes).contains("structured array"));
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
        // Without the limit, a megabyte of header took 420 MB and several seconds.
        assert!(refused(&file(350_000, 2)).contains("at most 10000 bytes, found 1050"));
    }

    fn array(descr: &str, shape: &str, is_fortran: bool, values: &[u8]) -> Vec<u8> {
        let order = if is_fortran { "True" } else { "False" };
        let header = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}\n");
        [b"\x93NUMPY\x01\x00", [header.len() as u8, 0].as_slice(), header.as_bytes(), values].concat()
    }

    fn refused(bytes: &[u8]) -> String {
        WholeNumbers::parse(bytes).expect_err("refused").to_string()
    }

    #[test]
    fn bytes_after_the_entries_are_refused() {
        for (descr, width) in [("|u1", 1), ("<i2", 2), (">i4", 4), ("<i8", 8), ("<f2", 2), ("<f4", 4), ("<f8", 8)] {
            let good = array(descr, "(2, 3)", false, &vec![0; 6 * width]);
            assert_eq!(WholeNumbers::parse(&good).expect(descr).values, [0; 6]);
            for more in [1, width, 6 * width] {
                let text = refused(&[&good[..], &vec![0; more]].concat());
                assert!(text.contains(&format!("nothing after 6 entries, found {more} more bytes")), "{descr}: {text}");
            }
            assert!(refused(&good[..good.len() - 1]).contains("truncated"));
        }
        // Two arrays in one file, as numpy.save writes them to an open file.
        let empty = array("<i8", "(0,)", false, &[]);
        assert!(WholeNumbers::parse(&empty).expect("an empty array").values.is_empty());
        assert!(refused(&[&empty[..], &empty].concat()).contains("nothing after 0 entries"));
    }

    #[test]
    fn half_floats_are_read_and_possibly_rounded_floats_refused() {
        let half = |values: &[f32]| {
            let values: Vec<u8> = values.iter().flat_map(|&value| f16::from_f32(value).to_le_bytes()).collect();
            array("<f2", &format!("({},)", values.len() / 2), false, &values)
        };
        assert_eq!(WholeNumbers::parse(&half(&[3.0, -2.0, 2048.0])).expect("whole").values, [3, -2, 2048]);
        assert!(refused(&half(&[0.5])).contains("integers, found 0.5"));
        assert!(refused(&half(&[f32::INFINITY])).contains("integers, found inf"));
        // 2049 is saved as 2048, and 2051 as 2052.
        assert!(refused(&half(&[2051.0])).contains("up to 2048 in this floating-point type, found 2052"));
        let single = |value: f32| array("<f4", "(1,)", false, &value.to_le_bytes());
        assert_eq!(WholeNumbers::parse(&single(16_777_216.0)).expect("whole").values, [1 << 24]);
        assert!(refused(&single(16_777_218.0)).contains("up to 16777216"));
        assert!(refused(&array("<f8", "(1,)", false, &1e16_f64.to_le_bytes())).contains("found 10000000000000000"));
    }

    #[test]
    fn real_numbers_of_every_width_are_read() {
        let half: Vec<u8> = [0.5, -2.0].iter().flat_map(|&value| f16::from_f32(value).to_le_bytes()).collect();
        let single: Vec<u8> = [0.5_f32, -2.0].iter().flat_map(|value| value.to_be_bytes()).collect();
        let double: Vec<u8> = [0.5_f64, -2.0].iter().flat_map(|value| value.to_le_bytes()).collect();
        for (descr, bytes) in [("<f2", half), (">f4", single), ("<f8", double)] {
            let file = array(descr, "(2,)", false, &bytes);
            assert!(has_reals(&file).expect("a header"), "{descr}");
            assert_eq!(RealNumbers::parse(&file).expect(descr).values, [0.5, -2.0]);
            assert!(RealNumbers::parse(&file[..file.len() - 1]).is_err());
            assert!(RealNumbers::parse(&[&file[..], &[0]].concat()).is_err());
        }
        let bytes = array("|u1", "(2,)", false, &[1, 2]);
        assert!(!has_reals(&bytes).expect("a header"));
        assert!(RealNumbers::parse(&bytes).expect_err("integers").to_string().contains("floating-point"));
    }

    #[test]
    fn headers_of_python_2_are_read() {
        let bytes: Vec<u8> = (0..6).collect();
        for shape in ["(2L, 3L)", "(2L, 3L,)", "(2L,3)"] {
            assert_eq!(WholeNumbers::parse(&array("|u1", shape, false, &bytes)).expect(shape).shape, [2, 3]);
            assert_eq!(ByteArray::parse(&array("|u1", shape, false, &bytes)).expect(shape).values, bytes);
        }
        assert_eq!(super::shape(&array("|u1", "(6L,)", false, &bytes)).expect("a header"), [6]);
        assert!(refused(&array("|u1", "(2LL, 3)", false, &bytes)).contains("not an .npy array"));
    }

    #[test]
    fn the_order_counts_where_there_are_two_axes() {
        assert!(refused(&array("|u1", "(2, 3)", true, &[0; 6])).contains("ascontiguousarray"));
        for shape in ["(6,)", "(1, 6)", "(6, 1)"] {
            assert_eq!(WholeNumbers::parse(&array("|u1", shape, true, &[7; 6])).expect(shape).values, [7; 6]);
        }
    }

    #[test]
    fn other_types_are_refused_with_the_next_step() {
        assert!(refused(&array("|b1", "(2,)", false, &[0, 1])).contains("numpy.flatnonzero(mask)"));
        assert!(refused(&array("<c8", "(1,)", false, &[0; 8])).contains("dtype '<c8'"));
        let text = ByteArray::parse(&array("<f4", "(1,)", false, &[0; 4])).expect_err("floats").to_string();
        assert!(text.contains("numpy.rint(255 * array).astype(numpy.uint8)"), "{text}");
    }
}
