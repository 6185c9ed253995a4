//! The report behind `speed data check NAME`.

use crate::catalog::Content;
use crate::{DataError, catalog, verify};
use std::path::{Path, PathBuf};

/// The state of every file of a dataset.
#[derive(Debug)]
pub struct CheckReport {
    /// The dataset.
    pub name: &'static str,
    /// Its files, in the order training images, training labels, test images, test labels.
    pub files: Vec<FileReport>,
}

/// One file that passed or failed.
#[derive(Debug)]
pub struct FileReport {
    /// The file's name without `.gz`.
    pub name: &'static str,
    /// SHA-256 that the uncompressed content must have, in hexadecimal.
    pub sha256: &'static str,
    /// The dataset found, or its first fault.
    pub outcome: Result<GoodFile, DataError>,
}

/// A file that passed every check: gzip, header, counts, sizes, labels and checksum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GoodFile {
    /// Its place.
    pub path: PathBuf,
    /// Bytes on disk.
    pub stored_bytes: u64,
    /// Bytes of the uncompressed content.
    pub content_bytes: u64,
    /// Images in it, 0 for a file of labels.
    pub images: usize,
    /// Labels in it, 0 for a file of images.
    pub labels: usize,
}

impl CheckReport {
    /// Returns whether every file is there and valid.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.files.iter().all(|file| file.outcome.is_ok())
    }
}

/// Checks every file of dataset `name` in `dir` or `dir/NAME` and reports on each, good or bad.
///
/// # Errors
/// [`DataError::UnknownDataset`] only; what is wrong with a file is part of the report.
pub fn check(name: &str, dir: &Path) -> Result<CheckReport, DataError> {
    let catalog = catalog::find(name)?;
    let outcome = |file: &'static catalog::FileSpec| {
        let path = verify::find_required(catalog, file, dir)?;
        let checked = verify::read(catalog, file, &path)?;
        let (images, labels) = match file.content {
            Content::Images { count, .. } => (count, 0),
            Content::Labels { count, .. } => (0, count),
        };
        let content_bytes = checked.content.len() as u64;
        Ok(GoodFile { path, stored_bytes: checked.stored_bytes, content_bytes, images, labels })
    };
    let report =
        |file: &'static catalog::FileSpec| FileReport { name: file.name, sha256: file.sha256, outcome: outcome(file) };
    Ok(CheckReport { name: catalog.name, files: catalog.files.iter().map(report).collect() })
}
