//! Faults of MATLAB files.

/// The fault of bytes that are no MATLAB file of level 5 with images and labels.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MatError {
    /// The header is another one.
    #[error("no MATLAB file of level 5: expected version 0x0100 and `IM` at byte 124, found {found:02x?}{}", hdf5(.found))]
    Header {
        /// The bytes there.
        found: [u8; 4],
    },
    /// The file ends within something.
    #[error("truncated: it ends within {part}")]
    Truncated {
        /// The part.
        part: String,
    },
    /// A compressed element cannot be unpacked.
    #[error("damaged: {reason}")]
    Damaged {
        /// The decoder's words.
        reason: String,
    },
    /// More is unpacked than such a file can have.
    #[error("too long: more than {limit} bytes are unpacked from it")]
    TooLong {
        /// The limit.
        limit: u64,
    },
    /// A part of an array is not what it must be.
    #[error("{part}: expected {expected}, found {found}")]
    Element {
        /// The part.
        part: String,
        /// What it must be.
        expected: String,
        /// What it is.
        found: String,
    },
    /// There is no such array.
    #[error("there is no array `{name}`")]
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
    /// A label that no byte can hold.
    #[error("label {index}: expected a whole number from 0 to 255, found {value}")]
    Label {
        /// Its index.
        index: usize,
        /// Its value.
        value: f64,
    },
    /// Not one label an image.
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
