//! Downloads: resumable, limited in size, checked, and put in place atomically.

mod event;
mod part;
#[cfg(test)]
mod tests;
mod transfer;

use crate::catalog::{Catalog, Checksum, FileSpec};
use crate::error::io_error;
use crate::{DataError, catalog, verify};
pub use event::{FetchEvent, FetchProgress};
use part::PartialFile;
use speed_core::printable_path;
use std::fs;
use std::path::{Path, PathBuf};
use transfer::Stopped;

/// Number of requests to one mirror for one file; each resumes the previous one.
const TRIES: usize = 10;

/// The files that [`fetch`] found, and the files that it downloaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FetchReport {
    /// Valid files that existed before.
    pub kept: Vec<PathBuf>,
    /// New files.
    pub downloaded: Vec<PathBuf>,
}

/// Downloads the missing files of dataset `name` into `dir/NAME`, from each of `mirrors` in turn until one gives a
/// valid file. A mirror is the address of a directory that holds `FILE.gz` for each file. If no mirror is given, the
/// built-in ones are used.
///
/// A download is written to `FILE.gz.part`, which a later call resumes (HTTP Range), and is renamed to `FILE.gz` only
/// after it passes every check of the loader. Valid files stay unchanged. A proxy is taken from the standard
/// environment variables (`ALL_PROXY`, `HTTPS_PROXY`, `HTTP_PROXY`, and `NO_PROXY`), except for this machine's own
/// addresses.
///
/// # Errors
/// If the dataset is unknown; if an invalid file is in the place of a file, before anything is downloaded; if another
/// process downloads the same file; if no mirror gave a valid file, with instructions to place the files by hand; or if
/// reading or writing fails.
pub fn fetch(
    name: &str,
    dir: &Path,
    mirrors: &[String],
    on_progress: &mut dyn FnMut(FetchProgress),
) -> Result<FetchReport, DataError> {
    let catalog = catalog::find(name)?;
    let built_in: Vec<String>;
    let mirrors = if mirrors.is_empty() {
        built_in = catalog.mirrors.iter().map(|&mirror| mirror.to_owned()).collect();
        &built_in
    } else {
        mirrors
    };
    fetch_catalog(catalog, dir, mirrors, on_progress)
}

fn fetch_catalog(
    catalog: &'static Catalog,
    dir: &Path,
    mirrors: &[String],
    on_progress: &mut dyn FnMut(FetchProgress),
) -> Result<FetchReport, DataError> {
    let mut report = FetchReport::default();
    let mut missing = Vec::new();
    for file in catalog.files {
        let Some(path) = verify::find(catalog, file, dir) else {
            missing.push(file);
            continue;
        };
        verify::read(catalog, file, &path).map_err(|error| {
            DataError::Other(format!("{error}; it is not overwritten: move it away, then fetch again"))
        })?;
        report.kept.push(path);
    }

    let folder = dir.join(catalog.name);
    let target = |file: &FileSpec| folder.join(file.stored_name());
    for (i, file) in missing.iter().enumerate() {
        fs::create_dir_all(&folder).map_err(io_error("create", &folder))?;
        let mut emit = |event| on_progress(FetchProgress { file: file.name, event });
        let job = Job { catalog, file, target: target(file) };
        if let Err(attempts) = job.run(mirrors, &mut emit)? {
            let wanted = missing[i..].iter().map(|file| (target(file), file.checksum));
            return Err(DataError::Other(by_hand(catalog, &attempts, wanted)));
        }
        report.downloaded.push(job.target);
    }
    Ok(report)
}

fn by_hand(catalog: &Catalog, attempts: &Attempts, wanted: impl Iterator<Item = (PathBuf, Checksum)>) -> String {
    let mut text = format!("cannot download {}:", catalog.name);
    if attempts.is_empty() {
        text += "\n  no mirror was given";
    }
    text.extend(attempts.iter().map(|(url, reason)| format!("\n  {url}: {reason}")));
    if !catalog.archive.is_empty() {
        text += &format!("\n  these files are part of {}", catalog.archive);
    }
    text += "\ndownload these files by hand and put them here:";
    text.extend(wanted.map(|(path, checksum)| format!("\n  {}\n    {checksum}", printable_path(&path))));
    text + &format!("\nthen run `speed data check {}`", catalog.name)
}

struct Job {
    catalog: &'static Catalog,
    file: &'static FileSpec,
    target: PathBuf,
}

/// Address and reason of every mirror that failed.
type Attempts = Vec<(String, String)>;

impl Job {
    /// Tries the mirrors in turn. The outer error is a fault of this machine, the inner one a fault of the mirrors.
    fn run(&self, mirrors: &[String], emit: &mut dyn FnMut(FetchEvent)) -> Result<Result<(), Attempts>, DataError> {
        let mut part = PartialFile::open(&self.target)?;
        // A process that was killed before its last step may have left a complete file.
        if part.len > 0 && self.finish(&part)?.is_ok() {
            return Ok(Ok(()));
        }
        let mut attempts = Vec::new();
        for mirror in mirrors {
            let url = format!("{}/{}", mirror.trim_end_matches('/'), self.file.stored_name());
            match self.try_mirror(&url, &mut part, emit)? {
                Ok(()) => return Ok(Ok(())),
                Err(reason) => {
                    emit(FetchEvent::Failed { url: url.clone(), reason: reason.clone() });
                    attempts.push((url, reason));
                }
            }
        }
        Ok(Err(attempts))
    }

    fn try_mirror(
        &self,
        url: &str,
        part: &mut PartialFile,
        emit: &mut dyn FnMut(FetchEvent),
    ) -> Result<Result<(), String>, DataError> {
        // Compression can make a file longer, by less than a thousandth.
        let limit = self.file.bytes + self.file.bytes / 1000 + 1024;
        let mut reason = String::new();
        for _ in 0..TRIES {
            let from = part.len;
            emit(FetchEvent::Request { url: url.to_owned(), from });
            let resumed = match transfer::append(url, part, limit, emit) {
                Ok(resumed) => resumed,
                Err(Stopped::Local(error)) => return Err(error),
                Err(Stopped::Remote(error)) if part.len > from => {
                    reason = error;
                    continue;
                }
                Err(Stopped::BadRange) if from > 0 => {
                    part.clear()?;
                    continue;
                }
                Err(Stopped::BadRange) => return Ok(Err("refused a request for the complete file".to_owned())),
                Err(Stopped::Remote(error)) => return Ok(Err(error)),
            };
            match self.finish(part)? {
                Ok(()) => return Ok(Ok(())),
                // The first bytes may come from another mirror or a broken disk, so the download starts again.
                Err(error) if resumed => reason = error,
                Err(error) => {
                    part.clear()?;
                    return Ok(Err(error));
                }
            }
            part.clear()?;
        }
        Ok(Err(format!("gave up after {TRIES} attempts: {reason}")))
    }

    /// Checks a complete download and puts it in place, or returns its fault.
    fn finish(&self, part: &PartialFile) -> Result<Result<(), String>, DataError> {
        match verify::read(self.catalog, self.file, &part.path) {
            Ok(_) => {}
            Err(DataError::BadFile { problem, .. }) => return Ok(Err(problem.to_string())),
            Err(error) => return Err(error),
        }
        part.put_in_place(&self.target)?;
        Ok(Ok(()))
    }
}
