//! Built-in digits: 28 x 28 images of ten classes, drawn from a seed.
//!
//! They replace MNIST where downloads are not allowed: white strokes on black, sized and centred as in MNIST. Each
//! image picks a way of writing its digit (a seven with or without a bar, an open or a closed four), moves the control
//! points of its strokes, bends the plane smoothly, applies a random affine map and draws the strokes with a pen of
//! varying width. The task is easier than MNIST but not trivial: the tests require the accuracies of simple classifiers
//! to be in a range.
//!
//! Only `+ - * /` and square roots are used, so a seed gives the same bytes on every machine.

mod glyphs;
mod render;
mod warp;

use rand::RngExt;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use speed_core::random::{Stream, Streams};

use crate::{Dataset, ImageShape, Split};

/// Numbers of digits to draw, each at most [`MAX_IMAGES`] if read from a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DigitsConfig {
    /// Number of training images.
    #[serde(deserialize_with = "count")]
    pub train: usize,
    /// Number of test images.
    #[serde(deserialize_with = "count")]
    pub test: usize,
}

/// The largest number of images of a half in a configuration (0.8 GB of memory). It prevents a typing error from
/// exhausting the machine's memory.
pub const MAX_IMAGES: usize = 1_000_000;

fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    let count = usize::deserialize(deserializer)?;
    if count > MAX_IMAGES {
        return Err(D::Error::custom(format_args!("too many digits: expected at most {MAX_IMAGES}, found {count}")));
    }
    Ok(count)
}

const CLASSES: u8 = 10;
const SHAPE: ImageShape = ImageShape { channels: 1, height: render::SIDE, width: render::SIDE };

/// Draws `config.train` training and `config.test` test digits; each label is uniform on the ten classes.
///
/// Image `i` of a half has its own random stream, so it does not depend on the number of images. The halves use
/// different streams, so no training image is a test image.
pub fn generate(config: DigitsConfig, streams: &Streams) -> Dataset {
    let split = |half: &str, len: usize| {
        let mut pixels = Vec::with_capacity(len * SHAPE.pixels());
        let mut labels = Vec::with_capacity(len);
        for i in 0..len {
            let mut stream = streams.stream(half, i as u64);
            let label = stream.random_range(0..CLASSES);
            pixels.extend_from_slice(&draw(label, &mut stream));
            labels.push(label);
        }
        Split::new(SHAPE, usize::from(CLASSES), pixels, labels)
            .expect("one image of SHAPE a label, labels below CLASSES")
    };
    let (train, test) = (split("digits/train", config.train), split("digits/test", config.test));
    Dataset::new("digits", train, test).expect("both halves have SHAPE and CLASSES")
}

fn draw(label: u8, stream: &mut Stream) -> [u8; render::SIDE * render::SIDE] {
    let strokes = glyphs::write(label, stream);
    let strokes = warp::distort(strokes, stream);
    render::render(&strokes, stream)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dataset(train: usize, test: usize) -> Dataset {
        generate(DigitsConfig { train, test }, &Streams::new(7))
    }

    fn distance(a: &[f64], b: &[u8]) -> f64 {
        a.iter().zip(b).map(|(a, &b)| (a - f64::from(b)).powi(2)).sum()
    }

    fn accuracy(test: &Split, classify: impl Fn(&[u8]) -> u8) -> f64 {
        let right = (0..test.len()).filter(|&i| classify(test.pixels(i)) == test.label(i)).count();
        right as f64 / test.len() as f64
    }

    #[test]
    fn a_classifier_of_class_means_is_clearly_imperfect() {
        let data = dataset(3000, 2000);
        let mut means = vec![vec![0.0; 784]; 10];
        for class in 0..10u8 {
            let members: Vec<_> = (0..3000).filter(|&i| data.train.label(i) == class).collect();
            for &i in &members {
                means[usize::from(class)].iter_mut().zip(data.train.pixels(i)).for_each(|(m, &p)| *m += f64::from(p));
            }
            means[usize::from(class)].iter_mut().for_each(|m| *m /= members.len() as f64);
        }
        let accuracy = accuracy(&data.test, |image| {
            (0..10).min_by(|&a, &b| distance(&means[a], image).total_cmp(&distance(&means[b], image))).expect("ten")
                as u8
        });
        assert!((0.65..0.85).contains(&accuracy), "nearest class mean: {accuracy}");
    }

    #[test]
    fn the_nearest_of_1000_images_is_good_but_not_perfect() {
        let data = dataset(1000, 1000);
        let square = |a: &[u8], b: &[u8]| a.iter().zip(b).map(|(&a, &b)| u32::from(a.abs_diff(b)).pow(2)).sum::<u32>();
        let accuracy = accuracy(&data.test, |image| {
            let nearest = (0..1000).min_by_key(|&i| square(data.train.pixels(i), image)).expect("1000 images");
            data.train.label(nearest)
        });
        assert!((0.93..0.98).contains(&accuracy), "nearest neighbour: {accuracy}");
    }

    #[test]
    fn an_image_does_not_depend_on_how_many_are_made() {
        let (few, many) = (dataset(20, 5), dataset(200, 9));
        assert_eq!(many.train.slice(0..20), few.train);
        assert_eq!(many.test.slice(0..5), few.test);
        assert_ne!(few.train.slice(0..5), few.test, "training and test images have streams of their own");
        assert_ne!(generate(DigitsConfig { train: 20, test: 0 }, &Streams::new(8)).train, few.train);
    }

    #[test]
    fn images_look_like_mnist_in_ink_and_place() {
        let data = dataset(2000, 0);
        let mut total = 0.0;
        for i in 0..data.train.len() {
            let image = data.train.pixels(i);
            let ink: f64 = image.iter().map(|&p| f64::from(p)).sum();
            let mean = |coordinate: fn(usize) -> usize| {
                image.iter().enumerate().map(|(at, &p)| coordinate(at) as f64 * f64::from(p)).sum::<f64>() / ink
            };
            let (x, y) = (mean(|at| at % 28), mean(|at| at / 28));
            assert!((x - 13.5).abs() < 3.0 && (y - 13.5).abs() < 3.0, "image {i} is centred at {x}, {y}");
            let border = (0..784).filter(|at| at % 28 == 0 || at % 28 == 27 || at / 28 == 0 || at / 28 == 27);
            let cut = border.filter(|&at| image[at] > 127).count();
            assert!(cut <= 3, "image {i} is cut off at {cut} pixels of the border");
            assert!(image.iter().any(|&p| p > 200), "image {i} has no clear stroke");
            total += ink / 784.0;
        }
        // MNIST's mean pixel is 33.3 of 255.
        let mean = total / data.train.len() as f64;
        assert!((25.0..42.0).contains(&mean), "mean pixel {mean}");
    }

    #[test]
    fn the_config_knows_no_other_key_and_no_absurd_number() {
        use serde::de::value::{Error, MapDeserializer};
        let read = |pairs: &[(&'static str, usize)]| {
            DigitsConfig::deserialize(MapDeserializer::<_, Error>::new(pairs.iter().copied()))
        };
        assert_eq!(read(&[("train", 3), ("test", 4)]), Ok(DigitsConfig { train: 3, test: 4 }));
        assert!(read(&[("train", 3), ("test", 4), ("trian", 5)]).is_err());
        assert!(read(&[("train", 3)]).is_err());
        let text = read(&[("train", 3), ("test", MAX_IMAGES + 1)]).expect_err("too many").to_string();
        assert_eq!(text, "too many digits: expected at most 1000000, found 1000001");
        assert!(read(&[("train", MAX_IMAGES), ("test", 0)]).is_ok());
    }

    #[test]
    fn a_seed_gives_the_same_bytes_for_ever() {
        // Published results name a seed. After an intended change of the digits, put the new value here.
        assert_eq!(
            hex::encode(dataset(500, 0).train.digest()),
            "9f89283c5eb8a10cea0c89721e47d34556502eac644473ccb9006438954286d0"
        );
    }
}
