//! Decoding of the files of pictures.

use std::io::Cursor;

use flate2::Crc;
use image::metadata::Orientation;
use image::{DynamicImage, GrayImage, ImageDecoder, ImageError, ImageReader, Limits, RgbImage};
use speed_core::printable;
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

use super::jpeg;
use super::kind::{Format, not_read};
use super::size::{MAX_SIDE, MAX_UNPACKED};

/// Decodes a picture and rotates it by the camera's orientation.
pub(super) fn decode(bytes: Vec<u8>) -> Result<DynamicImage, String> {
    match Format::detect(&bytes) {
        Some(Format::Jpeg) => jpeg(&bytes),
        #[cfg(feature = "dicom")]
        Some(Format::Dicom) => super::dicom::decode(&bytes),
        Some(Format::Other(what)) => Err(not_read(what)),
        Some(Format::Png) => {
            check_png(&bytes)?;
            let picture = png(bytes).map_err(|error| match error {
                ImageError::Limits(_) => format!(
                    "expected a picture of at most {MAX_SIDE} rows and columns and {MAX_UNPACKED} bytes unpacked, found more"
                ),
                other => undecoded(&other.to_string()),
            })?;
            match largest_of_16_bits(&picture) {
                Some(found) if (1..FULL_RANGE).contains(&found) => Err(format!(
                    "a picture of 16 bits whose largest value is {found} of 65535: its values may have 10 to 14 bits, and would be read as \
                     nearly black; save it with values over all 16 bits, or with 8 bits"
                )),
                _ => Ok(picture),
            }
        }
        None => Err(undecoded("expected the signature of a PNG or JPEG file, found other bytes")),
    }
}

/// The least largest value of a picture of 16 bits that is taken to use their range. Cameras and scanners store 10 to 14 bits in 16, and the
/// file does not say so.
const FULL_RANGE: u16 = 1 << 14;

/// Returns the largest value of a picture of 16 bits, without its transparency.
fn largest_of_16_bits(picture: &DynamicImage) -> Option<u16> {
    match picture {
        DynamicImage::ImageLuma16(pixels) => pixels.pixels().map(|pixel| pixel.0[0]).max(),
        DynamicImage::ImageLumaA16(pixels) => pixels.pixels().map(|pixel| pixel.0[0]).max(),
        DynamicImage::ImageRgb16(pixels) => pixels.pixels().flat_map(|pixel| pixel.0).max(),
        DynamicImage::ImageRgba16(pixels) => {
            pixels.pixels().flat_map(|pixel| [pixel.0[0], pixel.0[1], pixel.0[2]]).max()
        }
        _ => None,
    }
}

fn undecoded(reason: &str) -> String {
    format!("cannot be read as a PNG or JPEG picture: {}", reason.trim_end())
}

/// Checks that all chunks exist and match their checksums, because the decoder stops after the last row of pixels.
fn check_png(bytes: &[u8]) -> Result<(), String> {
    const SIGNATURE: usize = 8;
    let mut rest = &bytes[SIGNATURE..];
    loop {
        let cut = || undecoded("it is cut off: expected the end chunk (IEND), found the end of the file");
        let (length, after) = rest.split_first_chunk().ok_or_else(cut)?;
        let length = u32::from_be_bytes(*length) as usize;
        let (chunk, after) = length.checked_add(4).and_then(|length| after.split_at_checked(length)).ok_or_else(cut)?;
        let (sum, after) = after.split_first_chunk().ok_or_else(cut)?;
        let mut found = Crc::new();
        found.update(chunk);
        if found.sum() != u32::from_be_bytes(*sum) {
            let name = String::from_utf8_lossy(&chunk[..4]);
            return Err(undecoded(&format!("chunk {}: its checksum is wrong", printable(&name))));
        }
        if chunk.starts_with(b"IEND") {
            return Ok(());
        }
        rest = after;
    }
}

fn png(bytes: Vec<u8>) -> Result<DynamicImage, ImageError> {
    let mut limits = Limits::default();
    (limits.max_image_width, limits.max_image_height) = (Some(MAX_SIDE), Some(MAX_SIDE));
    limits.max_alloc = Some(MAX_UNPACKED);
    let mut reader = ImageReader::new(Cursor::new(bytes)).with_guessed_format()?;
    reader.limits(limits.clone());
    let mut decoder = reader.into_decoder()?;
    limits.reserve(decoder.total_bytes())?;
    let orientation = decoder.orientation()?;
    let mut picture = DynamicImage::from_decoder(decoder)?;
    picture.apply_orientation(orientation);
    Ok(picture)
}

fn jpeg(bytes: &[u8]) -> Result<DynamicImage, String> {
    let expected = jpeg::check(bytes).map_err(|reason| undecoded(&reason))?;
    let wanted = if expected == ColorSpace::Luma { expected } else { ColorSpace::RGB };
    let side = MAX_SIDE as usize;
    let options = DecoderOptions::default().set_strict_mode(true).set_max_width(side).set_max_height(side);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options.jpeg_set_out_colorspace(wanted));
    let refused = |error: zune_jpeg::errors::DecodeErrors| undecoded(&format!("{error:?}"));
    decoder.decode_headers().map_err(refused)?;
    let (width, height) = decoder.dimensions().ok_or_else(|| undecoded("expected a size, found none"))?;
    let pixels = decoder.decode().map_err(refused)?;
    // From here on, the decoder's colour space is known for certain.
    if decoder.input_colorspace() != Some(expected) {
        return Err(undecoded("its markers define contradictory colours: save it again"));
    }
    let [width, height] = [width, height].map(|side| u32::try_from(side).unwrap_or(u32::MAX));
    let picture = match wanted {
        ColorSpace::Luma => GrayImage::from_raw(width, height, pixels).map(DynamicImage::ImageLuma8),
        _ => RgbImage::from_raw(width, height, pixels).map(DynamicImage::ImageRgb8),
    };
    let mut picture = picture.ok_or_else(|| undecoded("its number of pixels differs from its size"))?;
    let orientation = decoder.exif().and_then(|exif| Orientation::from_exif_chunk(exif));
    picture.apply_orientation(orientation.unwrap_or(Orientation::NoTransforms));
    Ok(picture)
}
