//! Untrusted files: only regular ones, because opening a pipe or a device could block, and never more of them than allowed.

use std::fs::{self, File};
use std::io::{Error, ErrorKind, Read as _, Result};
use std::path::Path;

/// Opens a regular file for reading.
///
/// # Errors
/// If it is not a regular file, or cannot be opened.
pub fn open_regular(path: &Path) -> Result<File> {
    // Checked before opening, because opening a pipe would block until it has a writer.
    if !fs::metadata(path)?.is_file() {
        return Err(Error::new(ErrorKind::InvalidInput, "it is not a regular file"));
    }
    File::open(path)
}

/// Reads a regular file of at most `limit` bytes.
///
/// # Errors
/// If it is not such a file, or cannot be read.
pub fn read_regular(path: &Path, limit: u64) -> Result<Vec<u8>> {
    read_limited(&mut open_regular(path)?, limit)
}

/// Reads the rest of an open file of at most `limit` bytes. Its length is checked before anything is read, and again while reading,
/// because the file may grow.
///
/// # Errors
/// If it is longer, or cannot be read.
pub fn read_limited(file: &mut File, limit: u64) -> Result<Vec<u8>> {
    let check = |found: u64| match found {
        found if found > limit => {
            Err(Error::new(ErrorKind::FileTooLarge, format!("expected at most {limit} bytes, found {found}")))
        }
        _ => Ok(()),
    };
    let length = file.metadata()?.len();
    check(length)?;
    // The space is reserved at once, so that a growing buffer leaves no copies of a part of a key in memory.
    let mut bytes = Vec::new();
    let space = usize::try_from(length).unwrap_or(usize::MAX).saturating_add(1);
    bytes.try_reserve_exact(space).map_err(|_| Error::from(ErrorKind::OutOfMemory))?;
    file.take(limit + 1).read_to_end(&mut bytes)?;
    check(bytes.len() as u64)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_within_the_limit_are_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        fs::write(&path, [7; 10]).expect("a file");
        assert_eq!(read_regular(&path, 10).expect("short enough"), [7; 10]);
        assert_eq!(read_regular(&path, 9).expect_err("too long").kind(), ErrorKind::FileTooLarge);
        // A sparse file of four terabytes is refused before anything is read.
        File::create(&path).and_then(|file| file.set_len(4 << 40)).expect("a sparse file");
        assert_eq!(read_regular(&path, 1 << 30).expect_err("too long").kind(), ErrorKind::FileTooLarge);
        assert_eq!(read_regular(folder.path(), 10).expect_err("a folder").kind(), ErrorKind::InvalidInput);
        #[cfg(unix)]
        {
            assert_eq!(read_regular(Path::new("/dev/zero"), 10).expect_err("endless").kind(), ErrorKind::InvalidInput);
            let pipe = folder.path().join("pipe");
            let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo");
            assert!(made.success());
            assert_eq!(read_regular(&pipe, 10).expect_err("it would block").kind(), ErrorKind::InvalidInput);
        }
    }
}
