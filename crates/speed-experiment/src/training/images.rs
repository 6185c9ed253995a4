//! The images of a training: a directory of pictures or an array, with or without labels.

use std::collections::HashMap;
use std::hash::Hash;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use speed_core::{alike, printable, printable_path};
use speed_data::pictures::{self, PassedOver};
use speed_data::{ImageShape, Split, arrays};

use crate::config::Config;
use crate::encoder::{PictureEncoder, read_pictures};
use crate::error::ExperimentError;
use crate::image_warnings::dark;
use crate::patients::relative;
use crate::progress::Progress;

/// Height and width of images that all networks train on in seconds or minutes, in pixels.
const LARGE: usize = 64;

/// The images of a training and the way to read them.
#[derive(Clone, Debug, Default)]
pub struct ImagesOptions {
    /// A directory of pictures, or an `.npy` array.
    pub path: PathBuf,
    /// The labels of an array.
    pub labels: Option<PathBuf>,
    /// Pictures only: the size to which all of them are resized, HEIGHTxWIDTH; or the size of the encoder's pictures, if it leaves
    /// them open.
    pub size: Option<String>,
    /// Pictures only: whether they are converted to grey.
    pub grey: bool,
    /// The encoder that turns the images into vectors; `None` learns from pixels.
    pub encoder: Option<PathBuf>,
}

/// Images with their names.
pub(super) struct NamedImages {
    pub(super) images: Split,
    /// The paths of pictures relative to their directory, with `/`, or the positions in an array.
    pub(super) names: Vec<String>,
    /// The names of the classes; empty without labels.
    pub(super) class_names: Vec<String>,
    pub(super) warnings: Vec<String>,
}

impl ImagesOptions {
    pub(super) fn is_array(&self) -> bool {
        self.path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("npy"))
    }

    pub(super) fn entries(&self) -> Vec<String> {
        let source = if self.is_array() { "arrays" } else { "pictures" };
        // The folder is given by the path.
        let mut entries = vec![format!("data.source=\"{source}\""), "data.folder=\".\"".to_owned()];
        // The encoder is given by its path too.
        entries.extend(self.encoder.as_ref().map(|_| "features.encoder=\"encoder\"".to_owned()));
        let section = if self.encoder.is_some() { "features" } else { "data" };
        entries.extend(self.size.as_ref().map(|size| format!("{section}.size=\"{size}\"")));
        entries.extend(self.grey.then(|| "data.colour=false".to_owned()));
        entries
    }

    pub(super) fn large(&self, shape: ImageShape) -> Option<String> {
        let ImageShape { height, width, .. } = shape;
        let times = (height * width).div_ceil(LARGE * LARGE);
        let is_large = self.size.is_none() && self.encoder.is_none() && times > 4;
        is_large.then(|| {
            format!(
                "images of {height}x{width} take about {times} times the work of {LARGE}x{LARGE}: compare with --size {LARGE}x{LARGE}, which may learn \
                 as much (all parties of a round need the same)"
            )
        })
    }

    pub(super) fn of(&self, path: &Path) -> Self {
        Self { path: path.to_path_buf(), labels: None, ..self.clone() }
    }

    pub(super) fn read_encoder(&self, config: &Config) -> Result<Option<PictureEncoder>, ExperimentError> {
        self.encoder.as_ref().map(|path| PictureEncoder::open(path, &config.encoder_settings())).transpose()
    }

    /// Returns the vectors of images with these names, or the images themselves without an encoder.
    pub(super) fn encoded(
        &self,
        images: Split,
        names: &[String],
        encoder: Option<&PictureEncoder>,
        threads: NonZeroUsize,
        progress: &dyn Progress,
    ) -> Result<Split, ExperimentError> {
        let Some(encoder) = encoder else { return Ok(images) };
        let name = |image: usize| match self.is_array() {
            true => format!("{}, image {image}", printable_path(&self.path)),
            false => printable_path(&self.path.join(&names[image])),
        };
        encoder.encode(&images, &name, threads, progress)
    }

    /// Reads labelled images. `classes` fixes the names and the order of the classes.
    pub(super) fn labelled(
        &self,
        config: &Config,
        classes: Option<&[String]>,
        encoder: Option<&PictureEncoder>,
    ) -> Result<NamedImages, ExperimentError> {
        let missing = |key: &str, message: &str| ExperimentError::key(printable_path(&self.path), key, message);
        if self.is_array() {
            let labels = self.labels.as_ref();
            let labels = labels.ok_or_else(|| missing("--labels", "an array needs an array of labels"))?;
            let classes = classes.ok_or_else(|| missing("--classes", "an array needs the names of its classes"))?;
            let images = arrays::load_labelled(&self.path, labels, classes.len())?;
            let names = (0..images.len()).map(|index| index.to_string()).collect();
            let warnings = dark(&printable_path(&self.path), &images).into_iter().collect();
            return Ok(NamedImages { images, names, class_names: classes.to_vec(), warnings });
        }
        if self.labels.is_some() {
            let message = "is read with an array (.npy) only: the folder of a picture is its class";
            return Err(missing("--labels", message));
        }
        let load = |reading| pictures::load_labelled(&self.path, reading, classes);
        let found = read_pictures(encoder, config.reading(), load)?;
        let mut warnings = skipped(&self.path, found.passed_over.as_ref());
        warnings.extend(found.empty.iter().map(|class| format!("no images of the class {}", printable(class))));
        if classes.is_none() {
            check_numbers(&self.path, &found.class_names)?;
        }
        let twice = alike(&found.class_names).into_iter();
        warnings.extend(
            twice.map(|(other, class)| format!("{} and {} are two classes", printable(other), printable(class))),
        );
        warnings.extend(dark(&printable_path(&self.path), &found.images));
        let names = relative(&self.path, &found.files);
        Ok(NamedImages { images: found.images, names, class_names: found.class_names, warnings })
    }

    pub(super) fn unlabelled(
        &self,
        config: &Config,
        classes: usize,
        encoder: Option<&PictureEncoder>,
    ) -> Result<NamedImages, ExperimentError> {
        let (images, names, mut warnings) = if self.is_array() {
            let images = arrays::load_unlabelled(&self.path, classes)?;
            let names = (0..images.len()).map(|index| index.to_string()).collect();
            (images, names, Vec::new())
        } else {
            let load = |reading| pictures::load_unlabelled(&self.path, reading, classes);
            let found = read_pictures(encoder, config.reading(), load)?;
            let warnings = skipped(&self.path, found.passed_over.as_ref());
            (found.images, relative(&self.path, &found.files), warnings)
        };
        warnings.extend(copies(&self.path, &names, (0..images.len()).map(|image| images.pixels(image))));
        warnings.extend(dark(&printable_path(&self.path), &images));
        Ok(NamedImages { images, names, class_names: Vec::new(), warnings })
    }
}

/// Refuses classes that are named by numbers other than their own, because votes and labels are numbers from 0 in the order of the
/// names: folders 1 to 7, or 0, 1, 10, 2; likewise class1 to class7 and 1.0 to 7.0.
fn check_numbers(folder: &Path, names: &[String]) -> Result<(), ExperimentError> {
    let all_state_one = names.iter().all(|name| stated_number(name).is_some());
    let is_other = |(index, name): &(usize, &String)| match stated_number(name) {
        // Digits of other scripts have no value here, so the owner must confirm them.
        Some(digits) if all_state_one || digits.len() == name.trim().len() => digits.parse() != Ok(*index),
        _ => false,
    };
    let Some((index, name)) = names.iter().enumerate().find(is_other) else { return Ok(()) };
    let names = names.iter().map(|name| printable(name)).collect::<Vec<_>>().join(",");
    let message = format_args!(
        "the class {} would have the number {index} in votes and labels; give --classes {names} to confirm this order, or another one",
        printable(name)
    );
    Err(ExperimentError::key(printable_path(folder), "--classes", message))
}

fn stated_number(name: &str) -> Option<&str> {
    let whole = name.trim().trim_end_matches('0').strip_suffix('.').unwrap_or(name);
    let mut numbers = whole.split(|c: char| !c.is_numeric()).filter(|digits| !digits.is_empty());
    numbers.next().filter(|_| numbers.next().is_none())
}

pub(super) fn skipped(path: &Path, passed_over: Option<&PassedOver>) -> Vec<String> {
    passed_over.map(|files| format!("{}: {files}", printable_path(path))).into_iter().collect()
}

/// Returns the warning about images with the pixels, or the digest of pixels, of an earlier one.
pub(super) fn copies<P: Eq + Hash>(
    path: &Path,
    names: &[String],
    pixels: impl IntoIterator<Item = P>,
) -> Option<String> {
    let mut first = HashMap::new();
    let of_image = |(image, pixels)| (image, *first.entry(pixels).or_insert(image));
    let copies: Vec<(usize, usize)> =
        pixels.into_iter().enumerate().map(of_image).filter(|(image, earlier)| image != earlier).collect();
    let &(copy, earlier) = copies.first()?;
    let (copy, earlier) = (printable(&names[copy]), printable(&names[earlier]));
    Some(format!(
        "{}: {} of {} images have the pixels of an earlier one, as {copy} those of {earlier}: a label for one serves both",
        printable_path(path),
        copies.len(),
        names.len()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_with_numbers_other_than_their_own_need_confirmation() {
        let check = |names: &[&str]| {
            check_numbers(Path::new("pictures"), &names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
        };
        for names in [
            &["0", "1", "2"][..],
            &["class0", "class1"],
            &["0.0", "1.0"],
            &["cat", "dog"],
            &["COVID-19", "healthy"],
            &["adenocarcinoma T1", "benign"],
            &["2 cells of 8", "4 cells of 8"],
        ] {
            assert!(check(names).is_ok(), "{names:?}");
        }
        for names in [
            &["1", "2"][..],
            &["0", "1", "10", "2"],
            &["7", "cat"],
            &["class1", "class2"],
            &["1.0", "2.0"],
            &["grade 0", "grade 1", "grade 10", "grade 2"],
            &["\u{661}", "\u{662}"],
        ] {
            assert!(check(names).is_err(), "{names:?}");
        }
    }
}
