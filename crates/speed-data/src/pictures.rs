//! A dataset of PNG and JPEG files, and of DICOM files with the feature `dicom`. Each split (train or test) has a directory, which contains a directory for each
//! class.

mod decode;
#[cfg(feature = "dicom")]
mod dicom;
mod files;
mod jpeg;
mod kind;
mod labelled;
mod patient;
mod prepare;
mod size;

use std::path::{Path, PathBuf};

pub use files::PassedOver;
use files::{EMPTY, Others, names, read_picture, resized, write};
use kind::{Kind, kind, not_read};
pub use labelled::{LabelledPictures, UnlabelledPictures, load_labelled, load_unlabelled};
pub use patient::patient_id;
pub use prepare::{FoundPictures, Preparation, check, find};
use sha2::{Digest, Sha256};
pub use size::Size;

use crate::error::bad_file;
use crate::{DataError, Dataset, ImageShape, Split};

/// Largest number of bytes of all pixels of a split.
const MAX_PIXELS: u64 = 8 << 30;
const NO_CLASS: &str =
    "expected one folder for each class, found a picture outside of them; move it into the folder of its class";

/// Settings for reading pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The size to which every picture is resized; `None` requires pictures of one size.
    pub size: Option<Size>,
    /// Smallest height and width of a picture before resizing; a smaller picture is an error.
    pub least_side: u32,
    /// Whether colours are kept.
    pub is_colour: bool,
    /// Largest number of values of a picture after resizing; a picture with more is an error.
    pub max_values: usize,
}

impl Reading {
    fn channels(self) -> usize {
        if self.is_colour { 3 } else { 1 }
    }

    /// Returns the shape to which every picture is resized, or `None` without resizing.
    pub fn shape(self) -> Option<ImageShape> {
        let Size { height, width } = self.size?;
        Some(ImageShape { channels: self.channels(), height: height as usize, width: width as usize })
    }
}

/// The pictures of a directory.
#[derive(Debug)]
#[non_exhaustive]
pub struct Pictures {
    /// The pictures and their classes.
    pub dataset: Dataset,
    /// Number of pictures without labels: the first ones of the test split, whose labels are 0. It is 0 from [`load`].
    pub unlabelled: usize,
    /// The files of the training and of the test pictures, in the order of `dataset`.
    pub files: [Vec<PathBuf>; 2],
    /// The skipped files; `None` if [`PassedOver::count`] would be 0, even if there are other hidden files.
    pub passed_over: Option<PassedOver>,
}

/// Loads the pictures `folder/train/CLASS/*` and `folder/test/CLASS/*`. A PNG or JPEG picture is recognised by the first
/// bytes of its file, not by its name. With the feature `dicom`, a file with the mark `DICM` at byte 128 is a DICOM picture: Rescale Slope and
/// Intercept and the first linear window map its values to 0 to 255, or the least and the largest value without a window. The classes are the directories of `train` in the order of their names; each
/// must have pictures in both splits. Damaged pictures, pictures in other formats, directories within a class and
/// pictures outside of the classes are errors. Other files, such as notes, are skipped and counted.
///
/// The order of the pictures depends only on a hash of their names. It mixes the classes, so a teacher, who gets consecutive
/// pictures, usually gets all classes; small teachers may lack one.
///
/// # Errors
/// [`DataError::BadFile`], or a failure of reading, with the file or directory.
pub fn load(folder: &Path, reading: Reading) -> Result<Pictures, DataError> {
    load_halves(folder, reading, false)
}

/// Loads pictures as [`load`] does, with public pictures without labels: all those in `folder/public` and its
/// subdirectories, in the order of their names. The test split has the public pictures and then those of `folder/test`, which
/// may be missing.
///
/// # Errors
/// [`DataError::BadFile`], or a failure of reading, with the file or directory.
pub fn load_with_public(folder: &Path, reading: Reading) -> Result<Pictures, DataError> {
    load_halves(folder, reading, true)
}

fn load_halves(folder: &Path, reading: Reading, has_public: bool) -> Result<Pictures, DataError> {
    let [train, test] = ["train", "test"].map(|half| folder.join(half));
    let mut others = Others::default();
    let classes = folders(&train, &mut others)?;
    if !(2..=256).contains(&classes.len()) {
        return Err(bad_file(&train, wrong_classes(classes.len())));
    }
    let has_test = !has_public || test.symlink_metadata().is_ok();
    if has_test {
        check_test_classes(&test, &classes, &mut others)?;
    }
    let train_files = files_of(&train, &classes, &mut others)?;
    let mut test_files = if has_public { unlabelled_files(&folder.join("public"), &mut others)? } else { Vec::new() };
    let unlabelled = test_files.len();
    if has_test {
        test_files.extend(files_of(&test, &classes, &mut others)?);
    }
    let mut first = None;
    let train = read_half(&train, &train_files, classes.len(), reading, &mut first)?;
    let test = read_half(&test, &test_files, classes.len(), reading, &mut first)?;
    let passed_over = others.passed_over();
    let dataset = Dataset::new("pictures", train, test)?.with_class_names(classes);
    let files = [train_files, test_files].map(|files| files.into_iter().map(|(_, path, _)| path).collect());
    Ok(Pictures { dataset, unlabelled, files, passed_over })
}

fn wrong_classes(found: usize) -> String {
    format!("expected a folder for each of 2 to 256 classes, found {found}")
}

/// Lists the pictures without labels of a directory and its subdirectories in the order of their names. Their label is 0.
fn unlabelled_files(folder: &Path, others: &mut Others) -> Result<Vec<PictureFile>, DataError> {
    let found = find(folder)?;
    if let Some(PassedOver { count, first, hidden }) = found.passed_over {
        others.count += count;
        others.first.get_or_insert(first);
        others.hidden += hidden;
    }
    Ok(found.files.into_iter().map(|path| ([0; 32], path, 0)).collect())
}

fn check_test_classes(test: &Path, classes: &[String], others: &mut Others) -> Result<(), DataError> {
    if let Some(other) = folders(test, others)?.into_iter().find(|class| !classes.contains(class)) {
        return Err(bad_file(&test.join(other), "expected a class of the training pictures, found another one"));
    }
    if let Some(class) = classes.iter().find(|class| !test.join(class).is_dir()) {
        let problem =
            format!("expected test pictures of every class: class {class:?} of the training pictures has none");
        return Err(bad_file(test, problem));
    }
    Ok(())
}

/// Lists the directories of the classes in a split's directory.
fn folders(folder: &Path, others: &mut Others) -> Result<Vec<String>, DataError> {
    let mut folders = Vec::new();
    for name in names(folder)? {
        let path = folder.join(&name);
        match kind(&path, &name)? {
            Kind::NotRead(_) if path.is_dir() => folders.push(name),
            Kind::Picture | Kind::NotRead(_) => return Err(bad_file(&path, NO_CLASS)),
            Kind::Other => others.add(path),
            Kind::Hidden => others.hidden += 1,
        }
    }
    Ok(folders)
}

/// A picture's place in the order, its file and its label.
type PictureFile = ([u8; 32], PathBuf, u8);

/// Lists the pictures of a split in the order of the dataset.
fn files_of(folder: &Path, classes: &[String], others: &mut Others) -> Result<Vec<PictureFile>, DataError> {
    let mut files: Vec<PictureFile> = Vec::new();
    for (label, class) in (0..=u8::MAX).zip(classes) {
        let before = files.len();
        add_class(folder, class, label, &mut files, others)?;
        if files.len() == before {
            return Err(bad_file(&folder.join(class), EMPTY));
        }
    }
    files.sort_unstable();
    Ok(files)
}

fn add_class(
    folder: &Path,
    class: &str,
    label: u8,
    files: &mut Vec<PictureFile>,
    others: &mut Others,
) -> Result<(), DataError> {
    let class_folder = folder.join(class);
    for name in names(&class_folder)? {
        let path = class_folder.join(&name);
        match kind(&path, &name)? {
            Kind::Picture => files.push((Sha256::digest(format!("{class}/{name}")).into(), path, label)),
            Kind::NotRead(what) => return Err(bad_file(&path, not_read(what))),
            Kind::Other => others.add(path),
            Kind::Hidden => others.hidden += 1,
        }
    }
    Ok(())
}

fn read_half(
    folder: &Path,
    files: &[PictureFile],
    classes: usize,
    reading: Reading,
    first: &mut Option<Size>,
) -> Result<Split, DataError> {
    let channels = reading.channels();
    let (mut pixels, mut labels) = (Vec::new(), Vec::new());
    for (_, path, label) in files {
        let picture = read_picture(path)?;
        let own = Size { height: picture.height(), width: picture.width() };
        if own.height.min(own.width) < reading.least_side {
            let least = reading.least_side;
            let problem = format!("expected at least {least} pixels in height and width, found {own} (height x width)");
            return Err(bad_file(path, problem + "; leave the picture out"));
        }
        let picture = resized(picture, reading.size);
        let found = Size { height: picture.height(), width: picture.width() };
        if channels * found.height as usize * found.width as usize > reading.max_values {
            let max = reading.max_values;
            let problem =
                format!("{found} (height x width) in {channels} channels: expected at most {max} values to learn from");
            let next = "; resize all pictures, for example with `data.size = \"32x32\"` or `--size 32x32`";
            return Err(bad_file(path, problem + next));
        }
        let expected = *first.get_or_insert(found);
        if found != expected {
            let problem = format!("expected {expected} like the other pictures, found {found} (height x width)");
            return Err(bad_file(path, problem + "; set `data.size` or `--size` to resize all of them"));
        }
        write(&picture, reading.is_colour, &mut pixels);
        if pixels.len() as u64 > MAX_PIXELS {
            return Err(bad_file(folder, format!("expected at most {MAX_PIXELS} bytes of pixels, found more")));
        }
        debug_assert_eq!(pixels.len() / (labels.len() + 1), channels * (found.height * found.width) as usize);
        labels.push(*label);
    }
    let Size { height, width } = first.expect("the size of the pictures that were read");
    let shape = ImageShape { channels, height: height as usize, width: width as usize };
    Split::new(shape, classes, pixels, labels)
}

#[cfg(test)]
mod tests;
