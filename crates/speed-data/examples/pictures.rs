//! Draws the first images of a dataset side by side, with one row for each class.
//!
//! ```console
//! $ cargo run --release -p speed-data --example pictures -- street.png [FOLDER OF MNIST]
//! ```
#![expect(clippy::print_stderr, reason = "an example reports errors")]

use std::error::Error;
use std::path::Path;

use image::{Rgb, RgbImage};
use speed_core::random::Streams;
use speed_data::digits::{self, DigitsConfig};
use speed_data::{ImageShape, Split, mnist, street};

const COLUMNS: usize = 8;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(file) = arguments.first() else {
        eprintln!("usage: pictures FILE.png [FOLDER OF MNIST]");
        return Ok(());
    };
    let streams = Streams::new(1);
    let handwriting = match arguments.get(1) {
        Some(folder) => mnist::load(Path::new(folder))?,
        None => digits::generate(DigitsConfig { train: 5000, test: 1000 }, &streams),
    };
    let street = street::generate(&handwriting, [400, 0], &streams)?;
    sheet(&street.train).save(file)?;
    Ok(())
}

fn sheet(images: &Split) -> RgbImage {
    let ImageShape { channels, height, width } = images.shape();
    let size = [COLUMNS * (width + 2), images.classes() * (height + 2)].map(|size| size as u32);
    let mut sheet = RgbImage::from_pixel(size[0], size[1], Rgb([255; 3]));
    for class in 0..images.classes() {
        let of_class = (0..images.len()).filter(|&image| usize::from(images.label(image)) == class);
        for (column, image) in of_class.take(COLUMNS).enumerate() {
            let pixels = images.pixels(image);
            for place in 0..height * width {
                let channel = |c: usize| pixels[c.min(channels - 1) * height * width + place];
                let x = column * (width + 2) + place % width;
                let y = class * (height + 2) + place / width;
                sheet.put_pixel(x as u32, y as u32, Rgb([channel(0), channel(1), channel(2)]));
            }
        }
    }
    sheet
}
