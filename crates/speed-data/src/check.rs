//! The report of `speed data check NAME`.

use crate::catalog::{Checksum, Content};
use crate::{DataError, catalog, verify};
use std::path::{Path, PathBuf};

/// The state of every file of a dataset.
#[derive(Debug)]
#[non_exhaustive]
pub struct CheckReport {
    /// The dataset.
    pub name: &'static str,
    /// The reports of its files.
    pub files: Vec<FileReport>,
}

/// The result of the checks of one file.
#[derive(Debug)]
#[non_exhaustive]
pub struct FileReport {
    /// The file's name without `.gz`.
    pub name: &'static str,
    /// The required checksum.
    pub checksum: Checksum,
    /// The file found, or its first fault.
    pub outcome: Result<GoodFile, DataError>,
}

/// A file that passed every check: compression, header, counts, sizes, labels and checksum.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GoodFile {
    /// The path of the file.
    pub path: PathBuf,
    /// Bytes of the uncompressed content.
    pub content_bytes: u64,
    /// Number of images, 0 for a file of labels.
    pub images: usize,
    /// Number of labels, 0 for a file of images.
    pub labels: usize,
}

impl CheckReport {
    /// Returns whether every file exists and is valid.
    pub fn is_ok(&self) -> bool {
        self.files.iter().all(|file| file.outcome.is_ok())
    }
}

/// Checks every file of dataset `name` in `dir` or `dir/NAME` and reports on each, good or bad.
///
/// # Errors
/// If the dataset is unknown; faults of files are part of the report.
pub fn check(name: &str, dir: &Path) -> Result<CheckReport, DataError> {
    let catalog = catalog::find(name)?;
    let outcome = |file: &'static catalog::FileSpec| {
        let path = verify::find_required(catalog, file, dir)?;
        let content_bytes = verify::read(catalog, file, &path)?.bytes();
        let labelled = file.content.images().iter().sum();
        let (images, labels) = match file.content {
            Content::Images { count, .. } => (count, 0),
            Content::Labels { .. } => (0, labelled),
            Content::Svhn { .. } | Content::Cifar { .. } => (labelled, labelled),
        };
        Ok(GoodFile { path, content_bytes, images, labels })
    };
    let report = |file: &'static catalog::FileSpec| FileReport {
        name: file.name,
        checksum: file.checksum,
        outcome: outcome(file),
    };
    Ok(CheckReport { name: catalog.name, files: catalog.files.iter().map(report).collect() })
}
