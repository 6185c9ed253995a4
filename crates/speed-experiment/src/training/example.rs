//! Example images for a first model: three organisations, public images, and test images.

use std::collections::BTreeSet;
use std::path::Path;

use rand::seq::SliceRandom;
use speed_core::random::{Stream, Streams};
use speed_data::Split;
use speed_data::digits::{DigitsConfig, generate};
use speed_data::partition::{blocks, unequal};
use speed_student::Picture;

use super::{check_new, exists};
use crate::error::ExperimentError;
use crate::report::png;
use crate::store::write_folder;

/// The directories of the organisations.
pub const ORGANISATIONS: [&str; 3] = ["north", "east", "south"];
/// Number of labelled images of every organisation.
pub const OWN_IMAGES: usize = 600;
/// Number of public images without labels.
pub const PUBLIC_IMAGES: usize = 400;
/// Number of labelled test images.
pub const TEST_IMAGES: usize = 1000;
const SIDE: usize = 24;

/// Digits that are drawn for every image of two classes, so that half of the images can be of the rare class.
const DRAWN: usize = 8;
const RARE_DIGIT: u8 = 8;
const TWO_CLASSES: [&str; 2] = ["negative", "positive"];

/// The options of example images.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExampleOptions {
    /// The seed of the digits, and of their division among the organisations.
    pub seed: u64,
    /// The Dirichlet parameter by which each class is divided among the organisations; `None` for equal mixtures.
    pub skew: Option<f64>,
    /// The share of the rare class among two classes, above 0 and at most 0.5; `None` for ten digits.
    pub rare: Option<f64>,
}

/// The images of every organisation that were written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExampleReport {
    /// Number of labelled images of each of [`ORGANISATIONS`].
    pub images: [usize; 3],
    /// Number of classes of which each has images.
    pub classes: [usize; 3],
}

/// Writes built-in digits of 24 x 24 pixels as PNG files into the new directory `out`: `north`, `east` and `south` with a
/// directory for each class that they have, `public` without labels, and `test` with a directory for each class.
///
/// # Errors
/// If the directory exists or cannot be written, or an option is out of range.
pub fn write_example(out: &Path, options: ExampleOptions) -> Result<ExampleReport, ExperimentError> {
    check_new(out)?;
    let ExampleOptions { seed, skew, rare } = options;
    if let Some(rare) = rare.filter(|rare| !(*rare > 0.0 && *rare <= 0.5)) {
        let expected = format_args!("expected above 0 and at most 0.5, found {rare}");
        return Err(ExperimentError::option("--rare", expected));
    }
    let streams = Streams::new(seed);
    let (own, others) = (ORGANISATIONS.len() * OWN_IMAGES, PUBLIC_IMAGES + TEST_IMAGES);
    let drawn = if rare.is_some() { DRAWN } else { 1 };
    let digits = generate(DigitsConfig { train: drawn * own, test: drawn * others }, &streams);
    let (train, public, test) = match rare {
        None => (digits.train, digits.test.slice(0..PUBLIC_IMAGES), digits.test.slice(PUBLIC_IMAGES..others)),
        Some(rare) => {
            let (public, test) = (0..PUBLIC_IMAGES * DRAWN, PUBLIC_IMAGES * DRAWN..others * DRAWN);
            let stream = &mut streams.stream("rare class", 0);
            (
                with_rare(&digits.train, own, rare, stream)?,
                with_rare(&digits.test.slice(public), PUBLIC_IMAGES, rare, stream)?,
                with_rare(&digits.test.slice(test), TEST_IMAGES, rare, stream)?,
            )
        }
    };
    let organisations = match skew {
        None => blocks(own, ORGANISATIONS.len())?.into_iter().map(Iterator::collect).collect(),
        Some(skew) => {
            let divided = unequal(train.labels(), train.classes(), &[1; ORGANISATIONS.len()], skew, &streams);
            divided.map_err(|error| ExperimentError::option("--skew", error))?
        }
    };
    let name_of = |class: u8| match rare {
        None => class.to_string(),
        Some(_) => TWO_CLASSES[usize::from(class)].to_owned(),
    };
    let (mut files, mut report) = (Vec::new(), ExampleReport { images: [0; 3], classes: [0; 3] });
    for (number, (organisation, own)) in ORGANISATIONS.iter().zip(organisations).enumerate() {
        let images = train.select(&own);
        report.images[number] = images.len();
        report.classes[number] = images.labels().iter().collect::<BTreeSet<_>>().len();
        add(&images, &mut files, |image, class| format!("{organisation}/{}/{image:04}.png", name_of(class)))?;
    }
    add(&public, &mut files, |image, _| format!("public/{image:04}.png"))?;
    add(&test, &mut files, |image, class| format!("test/{}/{image:04}.png", name_of(class)))?;
    if write_folder(out, files, false)? { Ok(report) } else { Err(exists(out)) }
}

/// Returns `count` of the digits: two classes, of which the rare one has this share, at least one image.
fn with_rare(digits: &Split, count: usize, rare: f64, stream: &mut Stream) -> Result<Split, ExperimentError> {
    let positives = ((rare * count as f64).round() as usize).max(1);
    let mut left = [count - positives, positives];
    let is_positive = |image: usize| usize::from(digits.label(image) == RARE_DIGIT);
    let take = |image: &usize| {
        let left = &mut left[is_positive(*image)];
        let takes = *left > 0;
        *left -= usize::from(takes);
        takes
    };
    let mut chosen: Vec<usize> = (0..digits.len()).filter(take).collect();
    // The last of them are all of one class.
    chosen.shuffle(stream);
    let pixels = chosen.iter().flat_map(|&image| digits.pixels(image)).copied().collect();
    let labels = chosen.iter().map(|&image| is_positive(image) as u8).collect();
    Ok(Split::new(digits.shape(), TWO_CLASSES.len(), pixels, labels)?)
}

/// Adds the PNG files of images. The margin of a digit has more than two empty pixels, which are cut off.
fn add(
    images: &Split,
    files: &mut Vec<(String, Vec<u8>)>,
    name: impl Fn(usize, u8) -> String,
) -> Result<(), ExperimentError> {
    let shape = images.shape();
    let [top, left] = [shape.height, shape.width].map(|side| (side - SIDE) / 2);
    for image in 0..images.len() {
        let rows = images.pixels(image).chunks_exact(shape.width).skip(top).take(SIDE);
        let pixels = rows.flat_map(|row| &row[left..left + SIDE]).copied().collect();
        let picture = Picture { width: SIDE, height: SIDE, channels: 1, pixels };
        files.push((name(image, images.label(image)), png(picture)?));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of PNG files in a directory, or 0 if it does not exist.
    fn files(path: &Path) -> usize {
        std::fs::read_dir(path).map_or(0, Iterator::count)
    }

    #[test]
    fn unequal_organisations_have_a_rare_class_at_its_rate() {
        let place = tempfile::tempdir().expect("a directory");
        let write = |name: &str, skew, rare| {
            let out = place.path().join(name);
            write_example(&out, ExampleOptions { seed: 1, skew, rare }).map(|report| (out, report))
        };
        let (out, report) = write("rare", Some(0.2), Some(0.05)).expect("written");
        assert_eq!(report.images.iter().sum::<usize>(), ORGANISATIONS.len() * OWN_IMAGES);
        let count = |class: &str| ORGANISATIONS.map(|name| files(&out.join(name).join(class)));
        let [negative, positive] = TWO_CLASSES.map(count);
        assert_eq!((negative.iter().sum::<usize>(), positive.iter().sum::<usize>()), (1710, 90));
        assert_eq!(report.images, [0, 1, 2].map(|i| negative[i] + positive[i]));
        assert_eq!(TWO_CLASSES.map(|class| files(&out.join("test").join(class))), [950, 50]);
        assert_eq!(files(&out.join("public")), PUBLIC_IMAGES);

        let (_, report) = write("skew", Some(0.1), None).expect("written");
        assert!(report.classes.iter().sum::<usize>() < 28, "{report:?}");
        for (name, skew, rare, option) in [("a", Some(0.0), None, "--skew"), ("b", None, Some(0.6), "--rare")] {
            let error = write(name, skew, rare).expect_err("refused").to_string();
            assert!(error.contains(option), "{error}");
        }
    }
}
