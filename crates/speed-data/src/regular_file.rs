//! Regular files: opening a pipe or a device could block.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// Opens a regular file.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    // Checked before opening, because opening a pipe would block until it has a writer.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    File::open(path)
}

/// Reads a regular file of at most `limit` bytes.
pub(crate) fn read_limited(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if open_regular(path)?.take(limit + 1).read_to_end(&mut bytes)? as u64 > limit {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("more than {limit} bytes")));
    }
    Ok(bytes)
}
