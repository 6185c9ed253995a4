//! The files of a directory of pictures: names, skipped files, and the bytes of a picture.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use image::DynamicImage;
use image::imageops::FilterType;
use speed_core::{printable_path, read_regular};

use super::decode::decode;
use super::size::Size;
use crate::DataError;
use crate::error::{bad_file, io_error};

/// Largest number of bytes of a picture's file.
pub(super) const MAX_FILE: u64 = 64 << 20;

/// The skipped files: notes, lists, and hidden pictures.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PassedOver {
    /// The number of skipped files. It includes hidden pictures, because their owner may not know that they are hidden.
    pub count: usize,
    /// The first of the `count` files in the order of reading.
    pub first: PathBuf,
    /// The number of hidden files and files of operating systems that are not pictures; `count` does not include them.
    pub hidden: usize,
}

impl fmt::Display for PassedOver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { count, first, hidden } = self;
        let first = printable_path(first);
        match count {
            1 => write!(f, "1 file is not read as a picture and was passed over: {first}")?,
            _ => write!(f, "{count} files are not read as pictures and were passed over, first {first}")?,
        }
        match hidden {
            0 => Ok(()),
            1 => write!(f, " (and 1 hidden file)"),
            _ => write!(f, " (and {hidden} hidden files)"),
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Others {
    pub(super) count: usize,
    pub(super) first: Option<PathBuf>,
    pub(super) hidden: usize,
}

impl Others {
    pub(super) fn add(&mut self, path: PathBuf) {
        self.count += 1;
        self.first.get_or_insert(path);
    }

    pub(super) fn passed_over(self) -> Option<PassedOver> {
        let Self { count, first, hidden } = self;
        first.map(|first| PassedOver { count, first, hidden })
    }
}

const NAME: &str = "expected a name in Unicode, found other bytes; rename the file or folder";
pub(super) const EMPTY: &str = if cfg!(feature = "dicom") {
    "expected PNG, JPEG or DICOM pictures in the folder, found none"
} else {
    "expected PNG or JPEG pictures in the folder, found none"
};

pub(super) fn names(folder: &Path) -> Result<Vec<String>, DataError> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(io_error("read", folder))? {
        let name = entry.map_err(io_error("read", folder))?.file_name().into_string();
        names.push(name.map_err(|name| bad_file(&folder.join(name), NAME))?);
    }
    names.sort_unstable();
    Ok(names)
}

pub(super) fn read_picture(path: &Path) -> Result<DynamicImage, DataError> {
    let bytes = read_regular(path, MAX_FILE).map_err(io_error("read", path))?;
    decode(bytes).map_err(|problem| bad_file(path, problem))
}

pub(super) fn resized(picture: DynamicImage, size: Option<Size>) -> DynamicImage {
    match size {
        Some(Size { height, width }) => picture.resize_exact(width, height, FilterType::Triangle),
        None => picture,
    }
}

pub(super) fn write(picture: &DynamicImage, is_colour: bool, pixels: &mut Vec<u8>) {
    if is_colour {
        let picture = picture.to_rgb8();
        (0..3).for_each(|channel| pixels.extend(picture.pixels().map(|pixel| pixel.0[channel])));
    } else {
        pixels.extend(picture.to_luma8().pixels().map(|pixel| pixel.0[0]));
    }
}
