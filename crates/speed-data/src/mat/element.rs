//! Elements of a file. Each has a type and a length, and an array consists of further elements.

use std::fmt::Display;
use std::io::{self, BufRead, Read};

use flate2::bufread::ZlibDecoder;

/// Bytes before the first element.
const HEADER: usize = 128;
/// Largest number of bytes of an array's list of dimensions or name.
const MAX_LIST: u32 = 64;

/// Types of elements.
const INT8: u32 = 1;
const UINT8: u32 = 2;
const INT32: u32 = 5;
const UINT32: u32 = 6;
const MATRIX: u32 = 14;
const COMPRESSED: u32 = 15;

/// Classes of arrays: the classes with numbers (doubles to 64-bit integers), the class of bytes, and the last class that has dimensions
/// and a name.
const NUMBERS: std::ops::RangeInclusive<u8> = 6..=15;
const BYTES: u8 = 9;
const LAST: u8 = 15;

/// The fault of bytes that are not a MATLAB file of level 5 with images and labels.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum MatError {
    #[error("truncated: it ends within {part}")]
    Truncated { part: String },
    #[error("{0}")]
    Invalid(String),
}

impl MatError {
    pub(super) fn too_long(limit: u64) -> Self {
        Self::Invalid(format!("too long: expected at most {limit} unpacked bytes, found more"))
    }

    pub(super) fn wrong(part: impl Display, expected: impl Display, found: impl Display) -> Self {
        Self::Invalid(format!("{part}: expected {expected}, found {found}"))
    }
}

/// Calls `visit` for every array with a name, and skips the bytes that it leaves unread. At most `limit` bytes are unpacked in total.
pub(super) fn for_each_array(
    mut file: impl BufRead,
    limit: u64,
    visit: &mut dyn FnMut(&mut Array<'_>) -> Result<(), MatError>,
) -> Result<(), MatError> {
    let mut header = [0; HEADER];
    read_exact(&mut file, &mut header, "the header")?;
    let found = [header[124], header[125], header[126], header[127]];
    if found != [0, 1, b'I', b'M'] {
        let hint = match found {
            [0, 2, ..] => " (level 7.3, an HDF5 file: save it with `-v7`)",
            [_, _, b'M', b'I'] => " (written on a big-endian machine)",
            _ => "",
        };
        let expected = "version 0x0100 and `IM` at byte 124";
        return Err(MatError::wrong("not a MATLAB file of level 5", expected, format_args!("{found:02x?}{hint}")));
    }
    let mut left = limit;
    while !file.fill_buf().map_err(|error| of_io(&error, "an element"))?.is_empty() {
        let Tag { kind, length, small } = Tag::read(&mut file)?;
        if small.is_some() || !matches!(kind, MATRIX | COMPRESSED) {
            let found = format!("type {kind}{}", if small.is_some() { " as a small element" } else { "" });
            return Err(MatError::wrong("an element", "an array (type 14 or 15)", found));
        }
        let element = (&mut file).take(length);
        match kind {
            COMPRESSED => {
                let mut unpacked = ZlibDecoder::new(element).take(left);
                let Tag { kind, length, .. } =
                    Tag::read(&mut unpacked).map_err(|error| too_long(error, &unpacked, limit))?;
                if kind != MATRIX {
                    return Err(MatError::wrong("a compressed element", "an array (type 14)", format!("type {kind}")));
                }
                let read = visit_array(&mut unpacked, length, visit);
                // The decoder's checksum comes after the last byte, so the stream is read to its end.
                let read = read.and_then(|()| at_end(&mut unpacked, "a compressed array"));
                read.map_err(|error| too_long(error, &unpacked, limit))?;
                left = unpacked.limit();
                let mut element = unpacked.into_inner().into_inner();
                at_end(&mut element, "a compressed array")?;
                if element.limit() > 0 {
                    return Err(MatError::Truncated { part: "a compressed array".to_owned() });
                }
            }
            _ => {
                let mut element = element;
                visit_array(&mut element, length, visit)?;
                let rest = element.limit() + padding(length);
                pass_over(&mut file, rest, "an element")?;
            }
        }
    }
    Ok(())
}

/// Reads an array of `length` bytes, without the padding after it.
fn visit_array(
    source: &mut dyn Read,
    length: u64,
    visit: &mut dyn FnMut(&mut Array<'_>) -> Result<(), MatError>,
) -> Result<(), MatError> {
    let mut source = source.take(length);
    let mut is_read = None;
    if let Some(mut array) = Array::open(&mut source)? {
        visit(&mut array)?;
        is_read = array.kind.map(|_| array.name);
    }
    let rest = source.limit();
    // After an array that was read, only its padding is left.
    if let Some(name) = is_read.filter(|_| rest >= 8) {
        return Err(MatError::wrong(format!("`{name}`"), "nothing after its numbers", format!("{rest} more bytes")));
    }
    pass_over(&mut source, rest, "an array")
}

/// An array whose numbers follow.
pub(super) struct Array<'a> {
    source: &'a mut dyn Read,
    class: u8,
    is_complex: bool,
    pub(super) name: String,
    pub(super) dims: Vec<usize>,
    /// The type of the numbers, if it is known already.
    kind: Option<u32>,
    /// The numbers of a small element, which are stored in its tag.
    small: Option<io::Cursor<[u8; 4]>>,
}

impl<'a> Array<'a> {
    /// Reads flags, dimensions and name; returns `None` for classes without them.
    fn open(source: &'a mut dyn Read) -> Result<Option<Self>, MatError> {
        let flags = list(source, UINT32, "flags")?;
        let &[class, flags, ..] = &flags[..] else {
            return Err(MatError::wrong("an array's flags", "8 bytes", format!("{}", flags.len())));
        };
        if !(1..=LAST).contains(&class) {
            return Ok(None);
        }
        let dims = list(source, INT32, "dimensions")?;
        let dims = dims.as_chunks().0.iter().map(|&size| usize::try_from(i32::from_le_bytes(size)));
        let dims = dims.collect::<Result<Vec<usize>, _>>();
        let dims = dims.map_err(|_| {
            MatError::wrong("an array's dimensions", "sizes of at least 0", "a negative size".to_owned())
        })?;
        let name = String::from_utf8_lossy(&list(source, INT8, "name")?).into_owned();
        Ok(Some(Self { source, class, is_complex: flags & 8 != 0, name, dims, kind: None, small: None }))
    }

    pub(super) fn wrong_dims(&self, expected: &str) -> MatError {
        MatError::wrong(format!("the dimensions of `{}`", self.name), expected, format!("{:?}", self.dims))
    }

    /// Moves to the numbers, which must be unsigned bytes.
    pub(super) fn expect_bytes(&mut self) -> Result<(), MatError> {
        let kind = self.numbers()?;
        if (self.class, kind) != (BYTES, UINT8) {
            let found = format!("class {}, type {kind}", self.class);
            return Err(MatError::wrong(format!("`{}`", self.name), "unsigned bytes (class 9, type 2)", found));
        }
        Ok(())
    }

    pub(super) fn read_bytes(&mut self, bytes: &mut [u8]) -> Result<(), MatError> {
        let part = format!("`{}`", self.name);
        match &mut self.small {
            Some(small) => read_exact(small, bytes, &part),
            None => read_exact(self.source, bytes, &part),
        }
    }

    pub(super) fn read_number(&mut self) -> Result<f64, MatError> {
        let kind = self.numbers()?;
        let mut bytes = [0; 8];
        self.read_bytes(&mut bytes[..width(kind).unwrap_or(8)])?;
        let [a, b, c, d, ..] = bytes;
        Ok(match kind {
            INT8 => f64::from(i8::from_le_bytes([a])),
            UINT8 => f64::from(a),
            3 => f64::from(i16::from_le_bytes([a, b])),
            4 => f64::from(u16::from_le_bytes([a, b])),
            INT32 => f64::from(i32::from_le_bytes([a, b, c, d])),
            UINT32 => f64::from(u32::from_le_bytes([a, b, c, d])),
            7 => f64::from(f32::from_le_bytes([a, b, c, d])),
            9 => f64::from_le_bytes(bytes),
            12 => i64::from_le_bytes(bytes) as f64,
            _ => u64::from_le_bytes(bytes) as f64,
        })
    }

    /// Returns the type of the numbers. Before the first number, it compares their count with the dimensions.
    fn numbers(&mut self) -> Result<u32, MatError> {
        if let Some(kind) = self.kind {
            return Ok(kind);
        }
        if !NUMBERS.contains(&self.class) || self.is_complex {
            let found = if self.is_complex { "complex numbers".to_owned() } else { format!("class {}", self.class) };
            return Err(MatError::wrong(format!("`{}`", self.name), "an array of real numbers", found));
        }
        let Tag { kind, length, small } = Tag::read(self.source)?;
        let width = width(kind)
            .ok_or_else(|| MatError::wrong(format!("`{}`", self.name), "a type of numbers", format!("type {kind}")))?;
        let count = self.dims.iter().try_fold(width, |count, &size| count.checked_mul(size));
        if count.map(|count| count as u64) != Some(length) {
            let expected = count
                .map_or_else(|| "the count of its dimensions, below 2^64".to_owned(), |count| format!("{count} bytes"));
            return Err(MatError::wrong(
                format!("the numbers of `{}`", self.name),
                &expected,
                format!("{length} bytes"),
            ));
        }
        self.kind = Some(kind);
        self.small = small.map(io::Cursor::new);
        Ok(kind)
    }
}

struct Tag {
    kind: u32,
    length: u64,
    /// The value of a small element, which is stored in the tag.
    small: Option<[u8; 4]>,
}

impl Tag {
    fn read(source: &mut (impl Read + ?Sized)) -> Result<Self, MatError> {
        let mut bytes = [0; 8];
        read_exact(source, &mut bytes, "a tag")?;
        let [a, b, c, d, e, f, g, h] = bytes;
        let kind = u32::from_le_bytes([a, b, c, d]);
        Ok(match kind >> 16 {
            0 => Self { kind, length: u32::from_le_bytes([e, f, g, h]).into(), small: None },
            length => Self { kind: kind & 0xffff, length: length.into(), small: Some([e, f, g, h]) },
        })
    }
}

/// Reads a short element of one type within an array.
fn list(source: &mut dyn Read, kind: u32, part: &str) -> Result<Vec<u8>, MatError> {
    let tag = Tag::read(source)?;
    if tag.kind != kind || tag.length > MAX_LIST.into() {
        let found = format!("type {}, {} bytes", tag.kind, tag.length);
        return Err(MatError::wrong(
            format!("an array's {part}"),
            format!("type {kind}, at most {MAX_LIST} bytes"),
            found,
        ));
    }
    let length = tag.length as usize;
    if let Some(small) = tag.small {
        let bytes = small.get(..length);
        return bytes.map(<[u8]>::to_vec).ok_or_else(|| {
            MatError::wrong(format!("an array's {part}"), "at most 4 bytes in a tag", format!("{length}"))
        });
    }
    let mut bytes = vec![0; length];
    read_exact(source, &mut bytes, "an array")?;
    pass_over(source, padding(tag.length), "an array")?;
    Ok(bytes)
}

fn width(kind: u32) -> Option<usize> {
    match kind {
        INT8 | UINT8 => Some(1),
        3 | 4 => Some(2),
        INT32 | UINT32 | 7 => Some(4),
        9 | 12 | 13 => Some(8),
        _ => None,
    }
}

fn padding(length: u64) -> u64 {
    length.next_multiple_of(8) - length
}

fn pass_over(source: &mut (impl Read + ?Sized), bytes: u64, part: &str) -> Result<(), MatError> {
    let passed = io::copy(&mut source.take(bytes), &mut io::sink()).map_err(|error| of_io(&error, part))?;
    if passed == bytes { Ok(()) } else { Err(MatError::Truncated { part: part.to_owned() }) }
}

fn at_end(source: &mut impl Read, part: &str) -> Result<(), MatError> {
    match source.read(&mut [0]).map_err(|error| of_io(&error, part))? {
        0 => Ok(()),
        _ => Err(MatError::wrong(part, "nothing after it", "more bytes".to_owned())),
    }
}

fn read_exact(source: &mut (impl Read + ?Sized), bytes: &mut [u8], part: &str) -> Result<(), MatError> {
    source.read_exact(bytes).map_err(|error| of_io(&error, part))
}

fn of_io(error: &io::Error, part: &str) -> MatError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => MatError::Truncated { part: part.to_owned() },
        _ => MatError::Invalid(format!("damaged: {error}")),
    }
}

/// Replaces an error at the end of the permitted bytes by one that names their limit.
fn too_long<R>(error: MatError, unpacked: &io::Take<R>, limit: u64) -> MatError {
    if unpacked.limit() == 0 && matches!(error, MatError::Truncated { .. }) { MatError::too_long(limit) } else { error }
}
