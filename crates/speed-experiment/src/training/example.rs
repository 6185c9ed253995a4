//! Example images for a first model: three organisations, public images, and test images.

use std::path::Path;

use speed_core::random::Streams;
use speed_data::Split;
use speed_data::digits::{DigitsConfig, generate};

use super::{check_new, exists};
use crate::error::ExperimentError;
use crate::report::{Picture, png};
use crate::store::write_folder;

/// The directories of the organisations.
pub const ORGANISATIONS: [&str; 3] = ["north", "east", "south"];
/// Number of labelled images of every organisation.
pub const OWN_IMAGES: usize = 600;
/// Number of public images without labels.
pub const PUBLIC_IMAGES: usize = 400;
/// Number of labelled test images.
pub const TEST_IMAGES: usize = 1000;
/// Rows and columns of an image.
const SIDE: usize = 24;

/// Writes built-in digits of 24 x 24 pixels as PNG files into the new directory `out`: `north`, `east` and `south` with a
/// directory for each class, `public` without labels, and `test` with a directory for each class.
///
/// # Errors
/// If the directory exists or cannot be written.
pub fn write_example(out: &Path, seed: u64) -> Result<(), ExperimentError> {
    check_new(out)?;
    let own = ORGANISATIONS.len() * OWN_IMAGES;
    let digits = generate(DigitsConfig { train: own, test: PUBLIC_IMAGES + TEST_IMAGES }, &Streams::new(seed));
    let mut files = Vec::new();
    for (number, organisation) in ORGANISATIONS.iter().enumerate() {
        let images = digits.train.slice(number * OWN_IMAGES..(number + 1) * OWN_IMAGES);
        add(&images, &mut files, |image, class| format!("{organisation}/{class}/{image:04}.png"))?;
    }
    add(&digits.test.slice(0..PUBLIC_IMAGES), &mut files, |image, _| format!("public/{image:04}.png"))?;
    let test = digits.test.slice(PUBLIC_IMAGES..digits.test.len());
    add(&test, &mut files, |image, class| format!("test/{class}/{image:04}.png"))?;
    if write_folder(out, files)? { Ok(()) } else { Err(exists(out)) }
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
