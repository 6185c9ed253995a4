//! Street digits: colour images of 32 x 32 pixels in the style of house numbers, made from handwriting and a seed.
//!
//! They replace SVHN, under their own name, where its images are not available. The digit to be read is in the middle
//! of each image; its neighbours in the number are cut off at the sides. Ink and wall have arbitrary colours, often
//! close to each other. Numbers are seen from the side, out of focus, in uneven light, and with sensor noise.
//!
//! Only `+ - * /` and square roots are used, so the same handwriting and seed give the same bytes on every machine.

mod camera;
mod canvas;
mod glyphs;
mod number;
mod wall;

use rand::RngExt;
use speed_core::random::{Stream, Streams};

use crate::{DataError, Dataset, ImageShape, Split};
use canvas::SIDE;
use glyphs::Glyphs;

/// The shape of every image.
pub const SHAPE: ImageShape = ImageShape { channels: 3, height: SIDE, width: SIDE };

/// Makes `train` and `test` street digits from the images of `handwriting`, which are white on black in one channel:
/// training images from training images, test images from test images.
///
/// Image `i` of a half has its own random stream, so it does not depend on the number of images; its label is uniform
/// on the classes.
///
/// # Errors
/// If `handwriting` has more than one channel, or a class without an image.
pub fn generate(handwriting: &Dataset, [train, test]: [usize; 2], streams: &Streams) -> Result<Dataset, DataError> {
    let split = |name: &str, handwriting: &Split, count: usize| {
        let glyphs = Glyphs::from_split(handwriting)?;
        let mut pixels = Vec::with_capacity(count * SHAPE.pixels());
        let mut labels = Vec::with_capacity(count);
        for image in 0..count {
            let mut stream = streams.stream(name, image as u64);
            let label = stream.random_range(0..glyphs.by_class.len());
            photograph(&glyphs, label, &mut stream, &mut pixels);
            labels.push(u8::try_from(label).expect("a class of a split"));
        }
        Split::new(SHAPE, handwriting.classes(), pixels, labels)
    };
    let train = split("street/train", &handwriting.train, train)?;
    let test = split("street/test", &handwriting.test, test)?;
    Dataset::new("street-digits", train, test)
}

/// Adds one image's bytes, channel by channel.
fn photograph(glyphs: &Glyphs<'_>, label: usize, stream: &mut Stream, pixels: &mut Vec<u8>) {
    let mut canvas = [[0.0; 3]; SIDE * SIDE];
    let paint = wall::paint(&mut canvas, stream);
    number::write(&mut canvas, glyphs, label, paint, stream);
    camera::take(&mut canvas, stream);
    for channel in 0..3 {
        pixels.extend(canvas.iter().map(|colour| (255.0 * colour[channel].clamp(0.0, 1.0) + 0.5) as u8));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digits::{self, DigitsConfig};
    use sha2::{Digest, Sha256};

    fn handwriting() -> Dataset {
        digits::generate(DigitsConfig { train: 200, test: 100 }, &Streams::new(3))
    }

    fn sha256(split: &Split) -> String {
        let all: Vec<u8> = (0..split.len()).flat_map(|image| split.pixels(image).to_vec()).collect();
        hex::encode(Sha256::digest(all))
    }

    #[test]
    fn an_image_depends_on_seed_and_place_alone() {
        let (handwriting, streams) = (handwriting(), Streams::new(7));
        let data = generate(&handwriting, [12, 5], &streams).expect("street digits");
        assert_eq!((data.train.shape(), data.train.len(), data.test.len()), (SHAPE, 12, 5));
        let more = generate(&handwriting, [20, 9], &streams).expect("street digits");
        for image in 0..12 {
            assert_eq!(
                (data.train.pixels(image), data.train.label(image)),
                (more.train.pixels(image), more.train.label(image))
            );
        }
        assert_ne!(data.train.pixels(0), data.test.pixels(0));
        let other = generate(&handwriting, [12, 5], &Streams::new(8)).expect("street digits");
        assert_ne!(data.train.pixels(0), other.train.pixels(0));
        // These bytes are part of the meaning of a seed, so they must be the same on every machine and in every arithmetic.
        assert_eq!(sha256(&data.train), "4a6fb0002642272ff24baa227e7d5f04b4ea024e4f573dd80e0ad7dbafcc67ac");
    }

    #[test]
    fn labels_are_those_of_the_digit_in_the_middle() {
        // Handwriting whose ink tells its class: class 1 is a spot in the middle, class 0 is blank.
        let shape = ImageShape { channels: 1, height: 28, width: 28 };
        let spot = (0..784)
            .map(|place| if (9..19).contains(&(place / 28)) && (9..19).contains(&(place % 28)) { 255 } else { 0 });
        let pixels: Vec<u8> = std::iter::repeat_n(0, 784).chain(spot).collect();
        let half = || Split::new(shape, 2, pixels.clone(), vec![0, 1]).expect("a split");
        let handwriting = Dataset::new("blocks", half(), half()).expect("a dataset");
        let data = &generate(&handwriting, [400, 1], &Streams::new(1)).expect("street digits").train;
        let ones = data.labels().iter().filter(|label| **label == 1).count();
        // 60 are six standard deviations of 400 fair coins: one false alarm in 10^8.
        assert!((140..=260).contains(&ones), "{ones}");
        // The contrast between middle and top distinguishes a spot from a blank.
        let contrast = |image: usize| {
            let mean = |rows: std::ops::Range<usize>| {
                let bytes = rows.flat_map(|y| (14..18).map(move |x| f64::from(data.pixels(image)[32 * y + x])));
                let all: Vec<f64> = bytes.collect();
                all.iter().sum::<f64>() / all.len() as f64
            };
            (mean(14..18) - mean(0..2)).abs()
        };
        let of = |label: u8| {
            let all: Vec<f64> = (0..400).filter(|&i| data.label(i) == label).map(contrast).collect();
            all.iter().sum::<f64>() / all.len() as f64
        };
        assert!(of(1) > 2.0 * of(0), "{} {}", of(1), of(0));
    }

    #[test]
    fn handwriting_of_every_class_is_needed() {
        let few = digits::generate(DigitsConfig { train: 3, test: 3 }, &Streams::new(3));
        let error = generate(&few, [1, 1], &Streams::new(1)).expect_err("refused").to_string();
        assert!(error.contains("an image of every class, found 3 images"), "{error}");
        let colour = generate(&handwriting(), [30, 30], &Streams::new(1)).expect("street digits");
        assert!(generate(&colour, [1, 1], &Streams::new(1)).is_err());
    }
}
