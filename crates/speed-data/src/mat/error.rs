//! Errors of MATLAB files.

/// The fault of bytes that are not a MATLAB file of level 5 with images and labels.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum MatError {
    /// The header is not the expected one.
    #[error("not a MATLAB file of level 5: expected version 0x0100 and `IM` at byte 124, found {found:02x?}{}", hdf5(.found))]
    Header {
        /// The bytes found.
        found: [u8; 4],
    },
    /// The file ends within a part.
    #[error("truncated: it ends within {part}")]
    Truncated {
        /// The part.
        part: String,
    },
    /// A compressed element cannot be decompressed.
    #[error("damaged: {reason}")]
    Damaged {
        /// The decoder's message.
        reason: String,
    },
    /// The decompressed data exceeds the limit for such a file.
    #[error("too long: expected at most {limit} unpacked bytes, found more")]
    TooLong {
        /// The limit.
        limit: u64,
    },
    /// A part of an array is not as required.
    #[error("{part}: expected {expected}, found {found}")]
    Element {
        /// The part.
        part: String,
        /// The required value.
        expected: String,
        /// The value found.
        found: String,
    },
    /// A required array is missing.
    #[error("array `{name}` is missing")]
    Missing {
        /// Its name.
        name: &'static str,
    },
    /// There are two arrays of one name.
    #[error("there are two arrays `{name}`")]
    Repeated {
        /// Their name.
        name: String,
    },
    /// A label that does not fit in a byte.
    #[error("label {index}: expected an integer from 0 to 255, found {value}")]
    Label {
        /// Its index.
        index: usize,
        /// Its value.
        value: f64,
    },
    /// The numbers of images and labels differ.
    #[error("{images} images and {labels} labels")]
    Counts {
        /// Number of images.
        images: usize,
        /// Number of labels.
        labels: usize,
    },
}

fn hdf5(found: &[u8; 4]) -> &'static str {
    match found {
        [0, 2, ..] => " (level 7.3, an HDF5 file: save it with `-v7`)",
        [_, _, b'M', b'I'] => " (written on a big-endian machine)",
        _ => "",
    }
}
