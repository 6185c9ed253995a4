//! The pictures of one directory, with a subdirectory for each class, or without labels.

use std::path::{Path, PathBuf};

use speed_core::printable;

use super::files::{EMPTY, Others, PassedOver};
use super::{Reading, add_class, folders, read_half, unlabelled_files, wrong_classes};
use crate::error::bad_file;
use crate::{DataError, Split};

/// The pictures of a directory that has a subdirectory for each class.
#[derive(Debug)]
#[non_exhaustive]
pub struct LabelledPictures {
    /// The pictures and their classes, in an order that depends only on a hash of their names.
    pub images: Split,
    /// The file of every picture, in the order of `images`.
    pub files: Vec<PathBuf>,
    /// The names of the classes.
    pub class_names: Vec<String>,
    /// The expected classes that have no pictures.
    pub empty: Vec<String>,
    /// The skipped files.
    pub passed_over: Option<PassedOver>,
}

/// Loads the pictures `folder/CLASS/*`, as [`load`](super::load) loads those of one split. With `classes`, their order is the
/// order of the labels, a class may have no pictures, and any other subdirectory is an error. Otherwise the classes are the
/// subdirectories in the order of their names.
///
/// # Errors
/// [`DataError::BadFile`], or a failure of reading, with the file or directory.
pub fn load_labelled(
    folder: &Path,
    reading: Reading,
    classes: Option<&[String]>,
) -> Result<LabelledPictures, DataError> {
    let mut others = Others::default();
    let found = folders(folder, &mut others)?;
    let class_names = classes.map_or_else(|| found.clone(), <[String]>::to_vec);
    if let Some(other) = found.iter().find(|class| !class_names.contains(class)) {
        let known = printable(&class_names.join(", "));
        let problem = format!("expected a folder of one of the classes {known}, found another one");
        return Err(bad_file(&folder.join(other), problem));
    }
    if !(2..=256).contains(&class_names.len()) {
        return Err(bad_file(folder, wrong_classes(class_names.len())));
    }
    let (mut files, mut empty) = (Vec::new(), Vec::new());
    for (label, class) in (0..=u8::MAX).zip(&class_names) {
        let before = files.len();
        if found.contains(class) {
            add_class(folder, class, label, &mut files, &mut others)?;
        }
        if files.len() == before {
            empty.push(class.clone());
        }
    }
    match empty.first() {
        Some(class) if classes.is_none() => return Err(bad_file(&folder.join(class), EMPTY)),
        _ if files.is_empty() => return Err(bad_file(folder, EMPTY)),
        _ => {}
    }
    files.sort_unstable();
    let images = read_half(folder, &files, class_names.len(), reading, &mut None)?;
    let files = files.into_iter().map(|(_, path, _)| path).collect();
    Ok(LabelledPictures { images, files, class_names, empty, passed_over: others.passed_over() })
}

/// The pictures of a directory and its subdirectories, without labels.
#[derive(Debug)]
#[non_exhaustive]
pub struct UnlabelledPictures {
    /// The pictures, in the order of `files`; every label is 0.
    pub images: Split,
    /// The pictures in the order of their names, directory by directory.
    pub files: Vec<PathBuf>,
    /// The skipped files.
    pub passed_over: Option<PassedOver>,
}

/// Loads the pictures of a directory and its subdirectories for a model of `classes` classes.
///
/// # Errors
/// The errors of [`find`](super::find) and of reading, with the file or directory.
pub fn load_unlabelled(folder: &Path, reading: Reading, classes: usize) -> Result<UnlabelledPictures, DataError> {
    let mut others = Others::default();
    let files = unlabelled_files(folder, &mut others)?;
    let images = read_half(folder, &files, classes, reading, &mut None)?;
    let files = files.into_iter().map(|(_, path, _)| path).collect();
    Ok(UnlabelledPictures { images, files, passed_over: others.passed_over() })
}
