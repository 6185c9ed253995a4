//! Faults of JPEG files.

/// The fault of a JPEG file that is incomplete or of an unsupported kind.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JpegError {
    /// The file ends before its end marker.
    #[error("it is cut off: expected {expected} at byte {at}, found the end of the file")]
    Cut {
        /// The missing part.
        expected: &'static str,
        /// The length of the file in bytes.
        at: usize,
    },
    /// The coded data of a scan or restart interval ends too early.
    #[error("its coded data ends early: expected {expected} units of {blocks} blocks in scan {scan}, found {found}")]
    Short {
        /// The scan, from 1.
        scan: usize,
        /// Blocks of 8 x 8 values in a unit.
        blocks: usize,
        /// Units of the scan.
        expected: usize,
        /// Units before the end.
        found: usize,
    },
    /// Coded data that encoders never write.
    #[error(
        "its coded data is damaged: expected {expected} in unit {unit} of {units} in scan {scan}, found other bits"
    )]
    Damaged {
        /// The scan, from 1.
        scan: usize,
        /// The unit, from 0.
        unit: usize,
        /// Units of the scan.
        units: usize,
        /// A description of valid data.
        expected: &'static str,
    },
    /// Coded data that continues after the last unit.
    #[error("its coded data is damaged: expected a marker after unit {units} of scan {scan}, found more bytes")]
    Long {
        /// The scan, from 1.
        scan: usize,
        /// Units before the additional bytes.
        units: usize,
    },
    /// A marker at the wrong place, or bytes in a marker's place.
    #[error("expected {expected} at byte {at}, found {found:02x}")]
    Marker {
        /// The permitted markers.
        expected: &'static str,
        /// The place.
        at: usize,
        /// The byte found.
        found: u8,
    },
    /// A segment whose content is impossible.
    #[error("its {segment} at byte {at} is damaged: expected {expected}")]
    Segment {
        /// The kind of segment.
        segment: &'static str,
        /// The place of its content.
        at: usize,
        /// A description of valid content.
        expected: &'static str,
    },
    /// Scans that complete the coefficients are missing.
    #[error(
        "it is incomplete: expected every coefficient in full, found component {component} without scans of some of them"
    )]
    Scans {
        /// The component, from 1.
        component: usize,
    },
    /// A file with more scans than any encoder writes.
    #[error("expected at most {max} scans, found more")]
    ManyScans {
        /// Largest number of scans.
        max: usize,
    },
    /// An unsupported kind of JPEG file.
    #[error("expected 8 bits, Huffman codes, and grey, YCbCr or RGB, found {found}")]
    Kind {
        /// The kind.
        found: &'static str,
    },
    /// A picture that would take too much memory.
    #[error("expected a picture that fits in memory, found a larger one")]
    Huge,
}

impl JpegError {
    /// Returns the next step, which ends a message.
    pub(crate) fn next_step(&self) -> &'static str {
        match self {
            Self::Kind { .. } => "; save it as RGB, in baseline JPEG or PNG",
            _ => "; copy or create the file again, or remove it",
        }
    }
}
