//! Pictures and arrays for a trained network, in the form of the images that it was trained on.

use std::fs;
use std::path::{Path, PathBuf};

use image::{DynamicImage, GrayImage, RgbImage};
use speed_core::Digest;

use super::files::{EMPTY, Others, PassedOver, names, read_picture, resized, write};
use super::kind::{Kind, kind, not_read};
use super::size::Size;
use crate::error::{bad_file, io_error};
use crate::{DataError, ImageShape};

/// Largest depth of directories in [`find`]: a larger one is probably a mistake.
const MAX_DEPTH: usize = 32;

/// The preparation of single images for a trained network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preparation {
    /// The shape of the network's images.
    pub shape: ImageShape,
    /// Smallest height and width of an image before resizing; a smaller image is refused.
    pub least_side: usize,
    /// Whether images of other sizes are resized; otherwise they are refused.
    pub resizes: bool,
    /// Whether colours are converted to grey and grey to colours; otherwise images of other channels are refused.
    pub converts: bool,
}

impl Preparation {
    /// Reads a PNG or JPEG picture, with the same steps as [`load`](super::load). Returns its bytes channel by channel.
    ///
    /// # Errors
    /// [`DataError::BadFile`], or a failure of reading, with the file.
    pub fn read(&self, path: &Path) -> Result<Vec<u8>, DataError> {
        self.prepare(read_picture(path)?).map_err(|problem| bad_file(path, problem))
    }

    /// Prepares the bytes of an image of an array, channel by channel.
    ///
    /// # Errors
    /// A message with both shapes if the image has another size or other channels, unless the preparation changes them, or is
    /// too small.
    ///
    /// # Panics
    /// If the number of bytes is not that of the shape.
    pub fn prepare_bytes(&self, found: ImageShape, bytes: &[u8]) -> Result<Vec<u8>, String> {
        assert_eq!(bytes.len(), found.pixels(), "bytes of an image of {found}");
        if found == self.shape {
            return Ok(bytes.to_vec());
        }
        let area = found.height * found.width;
        let sides = [found.width, found.height].map(u32::try_from);
        let picture = match (sides, found.channels) {
            ([Ok(width), Ok(height)], 1) => {
                GrayImage::from_raw(width, height, bytes.to_vec()).map(DynamicImage::ImageLuma8)
            }
            ([Ok(width), Ok(height)], 3) => {
                let pixels = (0..area).flat_map(|place| [0, 1, 2].map(|channel| bytes[channel * area + place]));
                RgbImage::from_raw(width, height, pixels.collect()).map(DynamicImage::ImageRgb8)
            }
            _ => None,
        };
        let picture = picture.ok_or_else(|| self.other_shape(found))?;
        self.prepare(picture)
    }

    fn other_shape(&self, found: ImageShape) -> String {
        let expected = format!("expected an image of {}, found {found} (channels x height x width)", self.shape);
        expected + "; the model changes neither its size nor its channels"
    }

    fn prepare(&self, picture: DynamicImage) -> Result<Vec<u8>, String> {
        let ImageShape { channels, height, width } = self.shape;
        let is_colour = picture.color().has_color();
        let found = ImageShape {
            channels: if is_colour { 3 } else { 1 },
            height: picture.height() as usize,
            width: picture.width() as usize,
        };
        if found.channels != channels && !self.converts {
            return Err(self.other_shape(found));
        }
        if found.height.min(found.width) < self.least_side {
            let expected =
                format!("expected at least {0}x{0} pixels, found {1}x{2}", self.least_side, found.height, found.width);
            return Err(expected + " (height x width): leave the picture out");
        }
        let size = if self.resizes {
            let [height, width] = [height, width].map(|side| u32::try_from(side).unwrap_or(u32::MAX));
            Some(Size { height, width })
        } else if (found.height, found.width) == (height, width) {
            None
        } else {
            return Err(self.other_shape(found));
        };
        let mut bytes = Vec::with_capacity(self.shape.pixels());
        write(&resized(picture, size), channels == 3, &mut bytes);
        Ok(bytes)
    }
}

/// Reads and decodes a PNG or JPEG picture, to find a damaged one, and returns the SHA-256 of its size and its pixels in RGB, to find
/// equal ones.
///
/// # Errors
/// [`DataError::BadFile`], or a failure of reading, with the file.
pub fn check(path: &Path) -> Result<Digest, DataError> {
    let picture = read_picture(path)?.to_rgb8();
    let size = [picture.width(), picture.height()].map(u32::to_le_bytes).concat();
    Ok(Digest::of([&size, picture.as_raw().as_slice()].concat()))
}

/// The pictures of a directory and its subdirectories.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FoundPictures {
    /// The pictures in the order of their names, directory by directory.
    pub files: Vec<PathBuf>,
    /// The files that are not pictures.
    pub passed_over: Option<PassedOver>,
}

/// Finds the PNG and JPEG pictures of a directory and its subdirectories. Links to directories are not followed.
///
/// # Errors
/// [`DataError::BadFile`] for pictures in other formats, a name that is not Unicode text, or a directory without
/// pictures; or a failure of reading.
pub fn find(folder: &Path) -> Result<FoundPictures, DataError> {
    let (mut files, mut others) = (Vec::new(), Others::default());
    add(folder, 0, &mut files, &mut others)?;
    if files.is_empty() {
        return Err(bad_file(folder, EMPTY));
    }
    Ok(FoundPictures { files, passed_over: others.passed_over() })
}

fn add(folder: &Path, depth: usize, files: &mut Vec<PathBuf>, others: &mut Others) -> Result<(), DataError> {
    if depth > MAX_DEPTH {
        return Err(bad_file(folder, format!("expected at most {MAX_DEPTH} folders within folders, found more")));
    }
    for name in names(folder)? {
        let path = folder.join(&name);
        if fs::symlink_metadata(&path).map_err(io_error("read", &path))?.is_dir() {
            if name.starts_with('.') {
                others.hidden += 1;
            } else {
                add(&path, depth + 1, files, others)?;
            }
            continue;
        }
        match kind(&path, &name)? {
            Kind::Picture => files.push(path),
            Kind::NotRead(_) if path.is_dir() => others.add(path),
            Kind::NotRead(what) => return Err(bad_file(&path, not_read(what))),
            Kind::Other => others.add(path),
            Kind::Hidden => others.hidden += 1,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use image::{Luma, Rgb};

    use super::*;
    use crate::pictures::{Reading, load};

    fn save(path: &Path, [width, height]: [u32; 2], seed: u32) {
        let colour = |x: u32, y: u32| Rgb([(seed + 40 * x) as u8, (90 * y) as u8, (seed + 7 * x * y) as u8]);
        fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
        RgbImage::from_fn(width, height, colour).save(path).expect("a picture");
    }

    #[test]
    fn a_prepared_picture_is_the_picture_of_the_training() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for (seed, name) in
            ["train/cat/1.png", "train/dog/1.png", "test/cat/1.png", "test/dog/1.png"].iter().enumerate()
        {
            save(&folder.path().join(name), [5 + seed as u32, 7], 30 * seed as u32);
        }
        for (is_colour, channels) in [(true, 3), (false, 1)] {
            let reading =
                Reading { size: Some(Size { height: 4, width: 3 }), least_side: 1, is_colour, max_values: 1000 };
            let data = load(folder.path(), reading).unwrap_or_else(|error| panic!("{error}")).dataset;
            assert_eq!(data.class_names, ["cat", "dog"]);
            let shape = ImageShape { channels, height: 4, width: 3 };
            let prepared = Preparation { shape, least_side: 1, resizes: true, converts: true };
            for image in 0..2 {
                let class = &data.class_names[usize::from(data.test.label(image))];
                let found = prepared.read(&folder.path().join(format!("test/{class}/1.png"))).expect("a picture");
                assert_eq!(found, data.test.pixels(image), "{class}");
            }
        }
    }

    #[test]
    fn images_of_other_shapes_are_refused_unless_the_preparation_changes_them() {
        let grey = ImageShape { channels: 1, height: 2, width: 3 };
        let strict = Preparation { shape: grey, least_side: 1, resizes: false, converts: false };
        assert_eq!(strict.prepare_bytes(grey, &[1, 2, 3, 4, 5, 6]).expect("its shape"), [1, 2, 3, 4, 5, 6]);
        for found in [ImageShape { channels: 3, ..grey }, ImageShape { width: 4, ..grey }] {
            let text = strict.prepare_bytes(found, &vec![0; found.pixels()]).expect_err("refused").to_string();
            assert!(text.contains(&format!("expected an image of 1x2x3, found {found}")), "{text}");
        }
        let lenient = Preparation { resizes: true, converts: true, ..strict };
        let found = ImageShape { channels: 3, height: 4, width: 6 };
        assert_eq!(lenient.prepare_bytes(found, &[100; 72]).expect("resized"), [100; 6]);
        let text = Preparation { least_side: 5, ..lenient }.prepare_bytes(found, &[100; 72]).expect_err("too small");
        assert!(text.contains("at least 5x5 pixels, found 4x6"), "{text}");
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("a.png");
        GrayImage::from_fn(3, 2, |x, y| Luma([(10 * x + y) as u8])).save(&path).expect("a picture");
        assert_eq!(strict.read(&path).expect("a picture"), [0, 10, 20, 1, 11, 21]);
        save(&path, [3, 2], 0);
        assert!(strict.read(&path).expect_err("colours").to_string().contains("found 3x2x3"));
    }

    #[test]
    fn pictures_are_found_in_order() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let at = |name: &str| folder.path().join(name);
        for name in ["b/2.png", "b/10.png", "a.png", "c/d/1.png", ".hidden/1.png"] {
            save(&at(name), [2, 2], 0);
        }
        fs::write(at("b/notes.txt"), "no picture").expect("a file");
        let found = find(folder.path()).expect("pictures");
        assert_eq!(found.files, ["a.png", "b/10.png", "b/2.png", "c/d/1.png"].map(at));
        let passed_over = found.passed_over.expect("a note");
        assert_eq!((passed_over.count, passed_over.first, passed_over.hidden), (1, at("b/notes.txt"), 1));
        fs::write(at("b/3.gif"), "GIF89a").expect("a file");
        assert!(find(folder.path()).expect_err("refused").to_string().contains("a GIF picture"));
        let empty = tempfile::tempdir().expect("a temporary folder");
        assert!(find(empty.path()).expect_err("refused").to_string().contains("found none"));
    }
}
