//! The size of a picture, and the limits on it.

use std::fmt;
use std::str::FromStr;

/// Largest number of rows or columns of a picture before it is resized.
pub(super) const MAX_SIDE: u32 = 10_000;
/// Largest number of bytes that a decoder may allocate for a picture.
pub(super) const MAX_UNPACKED: u64 = 320 << 20;

/// Height and width, written `32x20`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Rows.
    pub height: u32,
    /// Columns.
    pub width: u32,
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.height, self.width)
    }
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let sides = text.split_once('x').and_then(|(height, width)| Some((height.parse().ok()?, width.parse().ok()?)));
        match sides {
            Some((height, width)) if (1..=MAX_SIDE).contains(&height) && (1..=MAX_SIDE).contains(&width) => {
                Ok(Self { height, width })
            }
            _ => Err(format!("expected HEIGHTxWIDTH, each 1 to {MAX_SIDE}, found {text:?}")),
        }
    }
}
