//! Decoding of DICOM files of one frame.
//!
//! The order of the steps is pydicom's (`pixel_array`, `apply_modality_lut`, `apply_voi_lut`): the stored bits are read with their sign; Rescale
//! Slope and Intercept are applied; the first window (PS3.3 C.11.2.1.2, linear or linear exact) maps the values to 0 to 255; and MONOCHROME1 is
//! inverted. Without a window, the least value of the picture becomes 0 and the largest 255. RGB of 8 bits is copied.
//!
//! The decoder reads uncompressed little-endian files. The element reader of dicom-rs finds the elements; the values are borrowed from the
//! file, so lengths that are wrong allocate nothing. Messages contain numbers and names of attributes but no text of the file, because it may
//! identify a patient.

use std::collections::BTreeMap;
use std::io::Cursor;

use dicom_parser::StatefulDecode;
use dicom_parser::dataset::LazyDataToken;
use dicom_parser::dataset::lazy_read::LazyDataSetReader;
use dicom_transfer_syntax_registry::entries::{EXPLICIT_VR_LITTLE_ENDIAN, IMPLICIT_VR_LITTLE_ENDIAN};
use dicom_transfer_syntax_registry::{TransferSyntax, TransferSyntaxIndex, TransferSyntaxRegistry};
use image::{DynamicImage, GrayImage, RgbImage};

use super::size::{MAX_SIDE, MAX_UNPACKED};

/// Place of the mark `DICM`, after which the elements begin.
const MARK: usize = 128;
/// Largest number of sequences and items within each other.
const MAX_DEPTH: usize = 64;
/// Largest absolute value of a number that is written as text.
const MAX_NUMBER: f64 = 1e30;

/// An element of the data set: its tag, and its name in messages.
type Attribute = ((u16, u16), &'static str);

const TRANSFER_SYNTAX: Attribute = ((0x0002, 0x0010), "Transfer Syntax UID");
const PATIENT_ID: Attribute = ((0x0010, 0x0020), "Patient ID");
const SAMPLES: Attribute = ((0x0028, 0x0002), "Samples per Pixel");
const PHOTOMETRIC: Attribute = ((0x0028, 0x0004), "Photometric Interpretation");
const PLANAR: Attribute = ((0x0028, 0x0006), "Planar Configuration");
const FRAMES: Attribute = ((0x0028, 0x0008), "Number of Frames");
const ROWS: Attribute = ((0x0028, 0x0010), "Rows");
const COLUMNS: Attribute = ((0x0028, 0x0011), "Columns");
const BITS_ALLOCATED: Attribute = ((0x0028, 0x0100), "Bits Allocated");
const BITS_STORED: Attribute = ((0x0028, 0x0101), "Bits Stored");
const HIGH_BIT: Attribute = ((0x0028, 0x0102), "High Bit");
const SIGN: Attribute = ((0x0028, 0x0103), "Pixel Representation");
const WINDOW_CENTER: Attribute = ((0x0028, 0x1050), "Window Center");
const WINDOW_WIDTH: Attribute = ((0x0028, 0x1051), "Window Width");
const INTERCEPT: Attribute = ((0x0028, 0x1052), "Rescale Intercept");
const SLOPE: Attribute = ((0x0028, 0x1053), "Rescale Slope");
const WINDOW_FUNCTION: Attribute = ((0x0028, 0x1056), "VOI LUT Function");
const MODALITY_TABLE: Attribute = ((0x0028, 0x3000), "Modality LUT Sequence");
const WINDOW_TABLE: Attribute = ((0x0028, 0x3010), "VOI LUT Sequence");
const PIXELS: Attribute = ((0x7fe0, 0x0010), "Pixel Data");

/// The colours of [`PHOTOMETRIC`] that are refused by name.
const OTHER_COLOURS: [&str; 7] =
    ["PALETTE COLOR", "YBR_FULL", "YBR_FULL_422", "YBR_PARTIAL_420", "YBR_ICT", "YBR_RCT", "XYB"];
const SAVE_GREY_OR_RGB: &str = "save the picture with these values, or as PNG";

/// Decodes a file whose mark was found.
pub(super) fn decode(file: &[u8]) -> Result<DynamicImage, String> {
    let (syntax, data_set) = transfer_syntax(file)?;
    let mut attributes = Attributes::default();
    let mut pixels = None;
    walk(data_set, &syntax, |tag, value| {
        match tag {
            (0x0028, _) => _ = attributes.0.insert(tag, value),
            tag if tag == PIXELS.0 => pixels = Some(value),
            _ => {}
        }
        pixels.is_none()
    })?;
    let pixels =
        pixels.ok_or_else(|| refusal(PIXELS, "pixels", "none", "leave the file out, because it is not a picture"))?;
    let form = Form::read(&attributes)?;
    let bytes = form.rows as usize * form.columns as usize * form.samples * (form.bits_allocated as usize / 8);
    // A value of an odd length is padded.
    if pixels.len() != bytes.next_multiple_of(2) && pixels.len() != bytes {
        let (expected, found) = (format!("{bytes} bytes of {}", form.size()), format!("{} bytes", pixels.len()));
        return Err(refusal(PIXELS, expected, found, "copy or export the file again"));
    }
    let pixels = &pixels[..bytes];
    let picture = if form.samples == 3 {
        let area = pixels.len() / 3;
        let interleaved = match attributes.whole(PLANAR)?.unwrap_or(0) {
            0 => pixels.to_vec(),
            1 => (0..area).flat_map(|place| [0, 1, 2].map(|channel| pixels[channel * area + place])).collect(),
            other => return Err(refusal(PLANAR, "0 or 1", other, SAVE_GREY_OR_RGB)),
        };
        RgbImage::from_raw(form.columns, form.rows, interleaved).map(DynamicImage::ImageRgb8)
    } else {
        let levels = grey(pixels, &form, &attributes)?;
        GrayImage::from_raw(form.columns, form.rows, levels).map(DynamicImage::ImageLuma8)
    };
    picture.ok_or_else(|| damaged("a size"))
}

/// Returns the patient id of a file whose mark was found. Ids are compared as text, so an id in another encoding is refused: files of one
/// patient in two encodings would be files of two patients.
pub(super) fn patient_id(file: &[u8]) -> Result<String, String> {
    const NEXT: &str = "give a CSV file with the columns file and patient";
    let (syntax, data_set) = transfer_syntax(file)?;
    let mut id: &[u8] = &[];
    walk(data_set, &syntax, |tag, value| {
        if tag == PATIENT_ID.0 {
            id = value;
        }
        tag < PATIENT_ID.0
    })?;
    let is_blank = id.iter().all(|byte| matches!(byte, b' ' | b'\0'));
    let expected = "an id in ASCII or UTF-8";
    match text(id).filter(|id| !id.contains(char::is_control)) {
        Some(id) => Ok(id.to_owned()),
        None => Err(refusal(PATIENT_ID, expected, if is_blank { "none" } else { "another encoding" }, NEXT)),
    }
}

fn refusal((tag, name): Attribute, expected: impl ToString, found: impl ToString, next: &str) -> String {
    let ((group, element), expected, found) = (tag, expected.to_string(), found.to_string());
    format!("DICOM, {name} ({group:04x},{element:04x}): expected {expected}, found {found}; {next}")
}

fn damaged(what: &str) -> String {
    format!(
        "DICOM: expected {what}, found other bytes; copy the file again, or export it again without private elements"
    )
}

/// Returns the transfer syntax and the bytes of the data set.
fn transfer_syntax(file: &[u8]) -> Result<(TransferSyntax, &[u8]), String> {
    const LENGTH: &str = "the length of the file meta information (0002,0000) after the mark DICM";
    let head = file.get(MARK + 4..).and_then(|rest| rest.split_first_chunk::<12>());
    let Some((&[2, 0, 0, 0, b'U', b'L', 4, 0, length @ ..], rest)) = head else { return Err(damaged(LENGTH)) };
    let length = u32::from_le_bytes(length) as usize;
    let (information, data_set) = rest.split_at_checked(length).ok_or_else(|| damaged(LENGTH))?;
    let mut uid = None;
    walk(information, &EXPLICIT_VR_LITTLE_ENDIAN.erased(), |tag, value| {
        if tag == TRANSFER_SYNTAX.0 {
            uid = text(value);
        }
        uid.is_none()
    })?;
    let syntax = match uid {
        Some("1.2.840.10008.1.2") => IMPLICIT_VR_LITTLE_ENDIAN.erased(),
        Some("1.2.840.10008.1.2.1") => EXPLICIT_VR_LITTLE_ENDIAN.erased(),
        uid => {
            let known = uid.and_then(|uid| TransferSyntaxRegistry.get(uid));
            let found = known.map_or("an unknown one", |syntax| syntax.name());
            let expected = "uncompressed little-endian values (Implicit or Explicit VR)";
            let next = "decompress the file, for example with `gdcmconv --raw` or `dcmdjpeg`";
            return Err(refusal(TRANSFER_SYNTAX, expected, found, next));
        }
    };
    Ok((syntax, data_set))
}

/// Calls `visit` with the tag and the value of every element outside of sequences, until it returns false. The value of a sequence that is
/// not empty is given as no bytes.
fn walk<'a>(
    bytes: &'a [u8],
    syntax: &TransferSyntax,
    mut visit: impl FnMut((u16, u16), &'a [u8]) -> bool,
) -> Result<(), String> {
    const ELEMENTS: &str = "complete elements, and no private sequence of an unknown kind (UN)";
    let mut reader = LazyDataSetReader::new_with_ts(Cursor::new(bytes), syntax).map_err(|_| damaged(ELEMENTS))?;
    // Sequences and items alternate, so a sequence is open at an odd depth. The reader may panic after a delimiter without its start, so such a
    // delimiter ends the reading.
    let mut depth = 0;
    let mut opened = None;
    while let Some(token) = reader.advance() {
        // The reader's own messages are not shown, because they may quote the file.
        match token.map_err(|_| damaged(ELEMENTS))? {
            LazyDataToken::ElementHeader(_) => {}
            LazyDataToken::SequenceStart { tag, .. } if depth % 2 == 0 && depth < MAX_DEPTH => {
                if depth == 0 {
                    opened = Some((tag.group(), tag.element()));
                }
                depth += 1;
            }
            LazyDataToken::ItemStart { .. } if depth % 2 == 1 => {
                if depth == 1
                    && let Some(tag) = opened.take()
                    && !visit(tag, &[])
                {
                    return Ok(());
                }
                depth += 1;
            }
            LazyDataToken::ItemEnd if depth > 0 && depth % 2 == 0 => depth -= 1,
            LazyDataToken::SequenceEnd if depth % 2 == 1 => depth -= 1,
            LazyDataToken::LazyValue { header, decoder } => {
                let place = usize::try_from(decoder.position()).ok();
                let length = header.len.get();
                let value = place.zip(length).and_then(|(place, length)| bytes.get(place..)?.get(..length as usize));
                let (Some(value), Some(length)) = (value, length) else { return Err(damaged(ELEMENTS)) };
                decoder.skip_bytes(length).map_err(|_| damaged(ELEMENTS))?;
                if depth == 0 && !visit((header.tag.group(), header.tag.element()), value) {
                    return Ok(());
                }
            }
            LazyDataToken::SequenceStart { .. } if depth >= MAX_DEPTH => {
                return Err(damaged(&format!("at most {MAX_DEPTH} sequences and items within each other")));
            }
            _ => return Err(damaged(ELEMENTS)),
        }
    }
    if depth == 0 { Ok(()) } else { Err(damaged(ELEMENTS)) }
}

/// Returns a value's text without the padding.
fn text(value: &[u8]) -> Option<&str> {
    let text = str::from_utf8(value).ok()?.trim_matches([' ', '\0']);
    (!text.is_empty()).then_some(text)
}

/// The elements that describe the picture.
#[derive(Default)]
struct Attributes<'a>(BTreeMap<(u16, u16), &'a [u8]>);

impl Attributes<'_> {
    fn has(&self, (tag, _): Attribute) -> bool {
        self.0.contains_key(&tag)
    }

    /// Returns the value of an attribute, or `None` if it is missing or empty.
    fn value(&self, (tag, _): Attribute) -> Option<&[u8]> {
        self.0.get(&tag).copied().filter(|value| !value.is_empty())
    }

    fn text(&self, at: Attribute) -> Option<&str> {
        self.value(at).and_then(text)
    }

    fn whole(&self, at: Attribute) -> Result<Option<u16>, String> {
        let Some(value) = self.value(at) else { return Ok(None) };
        let bytes = value.try_into().map_err(|_| {
            refusal(
                at,
                "one whole number of 16 bits",
                format!("{} bytes", value.len()),
                "copy or export the file again",
            )
        })?;
        Ok(Some(u16::from_le_bytes(bytes)))
    }

    fn within(&self, at: Attribute, range: std::ops::RangeInclusive<u16>, next: &str) -> Result<u16, String> {
        let [least, most] = [range.start(), range.end()];
        let expected = if least == most { least.to_string() } else { format!("{least} to {most}") };
        match self.whole(at)? {
            Some(found) if range.contains(&found) => Ok(found),
            Some(found) => Err(refusal(at, expected, found, next)),
            None => Err(refusal(at, expected, "none", next)),
        }
    }

    /// Returns the first of the numbers that are written as text.
    fn decimal(&self, at: Attribute) -> Result<Option<f64>, String> {
        let Some(value) = self.value(at) else { return Ok(None) };
        let first = text(value).and_then(|text| text.split('\\').next()?.trim().parse::<f64>().ok());
        match first {
            Some(number) if number.abs() <= MAX_NUMBER => Ok(Some(number)),
            _ => Err(refusal(at, "a decimal number", "other text", "export the file again")),
        }
    }
}

struct Form {
    rows: u32,
    columns: u32,
    samples: usize,
    bits_allocated: u16,
    bits_stored: u16,
    is_signed: bool,
    is_inverted: bool,
}

impl Form {
    fn read(attributes: &Attributes<'_>) -> Result<Self, String> {
        let frames = attributes.decimal(FRAMES)?.unwrap_or(1.0);
        if frames != 1.0 {
            return Err(refusal(FRAMES, 1, frames, "save each frame as a file"));
        }
        const GREY_OR_RGB: &str = "MONOCHROME1 or MONOCHROME2 with 1 sample, or RGB with 3";
        let samples = attributes.within(SAMPLES, 1..=4, SAVE_GREY_OR_RGB)?;
        let is_inverted = match (attributes.text(PHOTOMETRIC), samples) {
            (Some("MONOCHROME1"), 1) => true,
            (Some("MONOCHROME2"), 1) | (Some("RGB"), 3) => false,
            (found, _) => {
                let known = ["MONOCHROME1", "MONOCHROME2", "RGB"].into_iter().chain(OTHER_COLOURS);
                let found = known.into_iter().find(|&known| Some(known) == found).unwrap_or("another one or none");
                let found = format!("{found} with {samples}");
                return Err(refusal(PHOTOMETRIC, GREY_OR_RGB, found, SAVE_GREY_OR_RGB));
            }
        };
        const SMALLER: &str = "resize the picture";
        let side = |at| Ok::<_, String>(u32::from(attributes.within(at, 1..=MAX_SIDE as u16, SMALLER)?));
        let (rows, columns) = (side(ROWS)?, side(COLUMNS)?);
        let bits_allocated = match attributes.whole(BITS_ALLOCATED)? {
            Some(bits @ 8) => bits,
            Some(bits @ 16) if samples == 1 => bits,
            found => {
                let found = found.map_or_else(|| "none".to_owned(), |found| format!("{found} with {samples} samples"));
                return Err(refusal(BITS_ALLOCATED, "8 or 16, or 8 with 3 samples", found, SAVE_GREY_OR_RGB));
            }
        };
        let least_stored = if samples == 3 { 8 } else { 1 };
        let bits_stored = attributes.within(BITS_STORED, least_stored..=bits_allocated, SAVE_GREY_OR_RGB)?;
        attributes.within(HIGH_BIT, bits_stored - 1..=bits_stored - 1, SAVE_GREY_OR_RGB)?;
        let most = if samples == 3 { 0 } else { 1 };
        let is_signed = attributes.within(SIGN, 0..=most, SAVE_GREY_OR_RGB)? == 1;
        let unpacked = u64::from(rows) * u64::from(columns) * u64::from(samples) * u64::from(bits_allocated / 8);
        let form = Self { rows, columns, samples: samples.into(), bits_allocated, bits_stored, is_signed, is_inverted };
        if unpacked > MAX_UNPACKED {
            let (expected, found) = (format!("at most {MAX_UNPACKED} bytes"), format!("{unpacked} of {}", form.size()));
            return Err(refusal(PIXELS, expected, found, SMALLER));
        }
        Ok(form)
    }

    fn size(&self) -> String {
        let Self { rows, columns, samples, bits_allocated, .. } = self;
        format!("{rows} rows, {columns} columns and {samples} samples of {bits_allocated} bits")
    }

    /// Returns a stored value. Bits above [`BITS_STORED`] may contain anything.
    fn value(&self, bits: u16) -> f64 {
        let unused = 32 - u32::from(self.bits_stored);
        let bits = u32::from(bits) << unused;
        if self.is_signed { f64::from(bits.cast_signed() >> unused) } else { f64::from(bits >> unused) }
    }
}

/// Maps the stored values of a grey picture to 0 to 255.
fn grey(pixels: &[u8], form: &Form, attributes: &Attributes<'_>) -> Result<Vec<u8>, String> {
    const SAVE_WINDOW: &str = "save the picture with a linear window, or as PNG";
    // A table of values goes before a window, so a picture with both is refused too.
    for (table, expected) in
        [(MODALITY_TABLE, "Rescale Slope and Intercept"), (WINDOW_TABLE, "Window Center and Width")]
    {
        if attributes.has(table) {
            return Err(refusal(table, expected, "a table", SAVE_WINDOW));
        }
    }
    let slope = attributes.decimal(SLOPE)?.unwrap_or(1.0);
    let intercept = attributes.decimal(INTERCEPT)?.unwrap_or(0.0);
    let values = || {
        let (bytes, pairs) = if form.bits_allocated == 8 { (pixels, &[][..]) } else { (&[][..], pixels.as_chunks().0) };
        let stored = bytes.iter().map(|&byte| byte.into()).chain(pairs.iter().map(|&pair| u16::from_le_bytes(pair)));
        stored.map(|bits| form.value(bits) * slope + intercept)
    };
    let [least, width] = match (attributes.decimal(WINDOW_CENTER)?, attributes.decimal(WINDOW_WIDTH)?) {
        (Some(center), Some(width)) => match attributes.text(WINDOW_FUNCTION) {
            None | Some("LINEAR") if width >= 1.0 => [center - 0.5 - (width - 1.0) / 2.0, width - 1.0],
            Some("LINEAR_EXACT") if width > 0.0 => [center - width / 2.0, width],
            None | Some("LINEAR" | "LINEAR_EXACT") => {
                return Err(refusal(WINDOW_WIDTH, "at least 1, or above 0 if exact", width, SAVE_WINDOW));
            }
            Some("SIGMOID") => return Err(refusal(WINDOW_FUNCTION, "LINEAR or LINEAR_EXACT", "SIGMOID", SAVE_WINDOW)),
            Some(_) => return Err(refusal(WINDOW_FUNCTION, "LINEAR or LINEAR_EXACT", "another one", SAVE_WINDOW)),
        },
        _ => {
            let least = values().fold(f64::INFINITY, f64::min);
            [least, values().fold(f64::NEG_INFINITY, f64::max) - least]
        }
    };
    let level = |value: f64| {
        let part = if value <= least { 0.0 } else { ((value - least) / width).min(1.0) };
        let level = (255.0 * part).round() as u8;
        if form.is_inverted { 255 - level } else { level }
    };
    Ok(values().map(level).collect())
}

#[cfg(test)]
mod tests;
