//! The idx format of the MNIST files: a big-endian header, then bytes.
//!
//! The reader accepts untrusted input: it borrows from its input, so it allocates nothing, and it never panics. It
//! checks only the format; the loader of a known dataset checks the content.
//!
//! ```
//! let bytes = [0, 0, 8, 1, 0, 0, 0, 2, 7, 3];
//! assert_eq!(speed_data::idx::read_labels(&bytes)?, [7, 3]);
//! assert!(speed_data::idx::read_labels(&bytes[..9]).is_err());
//! # Ok::<(), speed_data::idx::IdxError>(())
//! ```

/// Magic number of unsigned bytes in three dimensions: images.
pub(crate) const IMAGES_MAGIC: u32 = 0x0000_0803;
/// Magic number of unsigned bytes in one dimension: labels.
pub(crate) const LABELS_MAGIC: u32 = 0x0000_0801;

const WORD: usize = 4;

/// The images of an idx3 file: `count` images of `height` x `width` bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct IdxImages<'a> {
    /// Number of images.
    pub count: usize,
    /// Rows of each image, at least 1.
    pub height: usize,
    /// Columns of each image, at least 1.
    pub width: usize,
    /// `count * height * width` values, image after image, row after row.
    pub pixels: &'a [u8],
}

/// The fault of bytes that are not an idx file of the required kind, with the expected and the found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct IdxError(String);

fn kind(magic: u32) -> &'static str {
    if magic == IMAGES_MAGIC { "images" } else { "labels" }
}

/// Reads the images of an idx3 file of unsigned bytes.
pub(crate) fn read_images(bytes: &[u8]) -> Result<IdxImages<'_>, IdxError> {
    let ([count, height, width], pixels) = read(bytes, IMAGES_MAGIC)?;
    if height == 0 || width == 0 {
        return Err(IdxError(format!(
            "empty images: expected at least one pixel, found a header for {height}x{width} pixels"
        )));
    }
    // The data is as long as the product, so no factor exceeds a usize.
    Ok(IdxImages { count: count as usize, height: height as usize, width: width as usize, pixels })
}

/// Reads the labels of an idx1 file of unsigned bytes, one byte each, any value.
///
/// # Errors
/// [`IdxError`] unless header and length are exactly right.
pub fn read_labels(bytes: &[u8]) -> Result<&[u8], IdxError> {
    read::<1>(bytes, LABELS_MAGIC).map(|(_, labels)| labels)
}

fn read<const DIMENSIONS: usize>(bytes: &[u8], magic: u32) -> Result<([u32; DIMENSIONS], &[u8]), IdxError> {
    let header = WORD * (1 + DIMENSIONS);
    let short = || IdxError(format!("truncated header: expected {header} bytes, found {}", bytes.len()));
    // The magic number is checked first: a label file has a shorter header, and "labels" is more helpful than
    // "truncated".
    let found = word(bytes, 0).ok_or_else(short)?;
    if found != magic {
        let is_known = [IMAGES_MAGIC, LABELS_MAGIC].contains(&found);
        let found_kind = if is_known { format!(" ({})", kind(found)) } else { String::new() };
        let expected = format!("{magic:#010x} ({})", kind(magic));
        return Err(IdxError(format!("wrong magic number: expected {expected}, found {found:#010x}{found_kind}")));
    }
    let mut sizes = [0; DIMENSIONS];
    for (i, size) in sizes.iter_mut().enumerate() {
        *size = word(bytes, i + 1).ok_or_else(short)?;
    }
    // Three factors below 2^32 fit in 128 bits.
    let expected = header as u128 + sizes.iter().map(|&size| u128::from(size)).product::<u128>();
    let found = bytes.len() as u128;
    if expected != found {
        let fault = if found < expected { "truncated" } else { "bytes after the end" };
        return Err(IdxError(format!("{fault}: the header promises {expected} bytes in all, found {found}")));
    }
    Ok((sizes, &bytes[header..]))
}

fn word(bytes: &[u8], i: usize) -> Option<u32> {
    let word = bytes.get(WORD * i..WORD * (i + 1))?;
    word.try_into().ok().map(u32::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, RngExt};

    fn file(words: &[u32], data: &[u8]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_be_bytes()).chain(data.iter().copied()).collect()
    }

    #[test]
    fn good_files_are_read() {
        let bytes = file(&[IMAGES_MAGIC, 2, 3, 1], &[1, 2, 3, 4, 5, 6]);
        let images = read_images(&bytes).expect("a valid file");
        assert_eq!((images.count, images.height, images.width), (2, 3, 1));
        assert_eq!(images.pixels, [1, 2, 3, 4, 5, 6]);
        assert_eq!(read_labels(&file(&[LABELS_MAGIC, 0], &[])), Ok(&[][..]));
        assert_eq!(read_labels(&file(&[LABELS_MAGIC, 3], &[9, 0, 255])), Ok(&[9, 0, 255][..]));
    }

    #[test]
    fn hostile_headers_are_refused_without_allocating() {
        let max = u32::MAX;
        let bytes = file(&[IMAGES_MAGIC, max, max, max], &[0; 10]);
        let expected = 16 + u128::from(max) * u128::from(max) * u128::from(max);
        let refused = |bytes: &[u8]| read_images(bytes).err().expect("refused").to_string();
        assert!(refused(&bytes).contains(&format!("promises {expected} bytes in all, found 26")));
        // 2^32 * 2^32 would be 0 in 64 bits, and 65536 * 65536 is 0 in 32 bits.
        let bytes = file(&[IMAGES_MAGIC, 1 << 31, 1 << 31, 4], &[]);
        assert!(refused(&bytes).contains("found 16"));
        let bytes = file(&[IMAGES_MAGIC, 1, 1 << 16, 1 << 16], &[]);
        assert!(refused(&bytes).contains("found 16"));
        // Four billion empty images would pass a check of the length alone.
        let bytes = file(&[IMAGES_MAGIC, max, 0, 28], &[]);
        assert!(refused(&bytes).contains("a header for 0x28 pixels"));
        let error = read_labels(&file(&[LABELS_MAGIC, max], &[1])).expect_err("refused").to_string();
        assert!(error.contains("truncated: the header promises"), "{error}");
    }

    #[test]
    fn every_truncation_and_every_extension_is_refused() {
        let images = file(&[IMAGES_MAGIC, 2, 2, 2], &[7; 8]);
        let labels = file(&[LABELS_MAGIC, 5], &[7; 5]);
        for end in 0..images.len() {
            assert!(read_images(&images[..end]).is_err(), "{end}");
        }
        for end in 0..labels.len() {
            assert!(read_labels(&labels[..end]).is_err(), "{end}");
        }
        assert!(read_images(&[&images[..], &[0]].concat()).is_err());
        let error = read_labels(&[&labels[..], &[0]].concat()).expect_err("a byte too many");
        assert_eq!(error.to_string(), "bytes after the end: the header promises 13 bytes in all, found 14");
    }

    #[test]
    fn random_bytes_behind_a_valid_magic_never_panic() {
        let mut stream = speed_core::random::Streams::new(1).stream("fuzz", 0);
        let mut accepted = 0;
        for _ in 0..20_000 {
            let mut bytes = vec![0; stream.random_range(0..40)];
            stream.fill_bytes(&mut bytes);
            // Small sizes, so that some inputs are valid and the good path is fuzzed too.
            bytes.iter_mut().take(16).for_each(|byte| *byte = if *byte < 220 { 0 } else { *byte % 4 });
            if let (Some(start), true) = (bytes.get_mut(..4), stream.random()) {
                let magic = if stream.random() { IMAGES_MAGIC } else { LABELS_MAGIC };
                start.copy_from_slice(&magic.to_be_bytes());
            }
            if let Ok(images) = read_images(&bytes) {
                assert_eq!(images.pixels.len(), images.count * images.height * images.width);
                accepted += 1;
            }
            accepted += usize::from(read_labels(&bytes).is_ok());
        }
        assert!(accepted > 0, "the fuzz never reached the good path");
    }
}
