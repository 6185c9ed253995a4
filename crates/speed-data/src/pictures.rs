//! A dataset of pictures: a folder for each half, in it a folder for each class, in it PNG and JPEG files.

use std::fmt;
use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use image::imageops::FilterType;
use image::{DynamicImage, ImageDecoder, ImageError, ImageReader, Limits};
use sha2::{Digest, Sha256};

use crate::error::{PictureProblem, io_error};
use crate::places::read_limited;
use crate::{DataError, Dataset, ImageShape, Split};

/// Rows or columns of a picture at most, bytes of a file, and bytes that a decoder may take: nothing larger is resized to what a network
/// reads.
const MAX_SIDE: u32 = 10_000;
const MAX_FILE: u64 = 64 << 20;
const MAX_UNPACKED: u64 = 320 << 20;
/// Bytes of pixels of a half at most.
const MAX_PIXELS: u64 = 8 << 30;

/// Height and width, written `32x20`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Rows.
    pub height: u32,
    /// Columns.
    pub width: u32,
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.height, self.width)
    }
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let sides = text.split_once('x').and_then(|(height, width)| Some((height.parse().ok()?, width.parse().ok()?)));
        match sides {
            Some((height, width)) if (1..=MAX_SIDE).contains(&height) && (1..=MAX_SIDE).contains(&width) => {
                Ok(Self { height, width })
            }
            _ => Err(format!("expected HEIGHTxWIDTH, each 1 to {MAX_SIDE}, found {text:?}")),
        }
    }
}

/// How pictures are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Resizes every picture; without it they must have one size.
    pub size: Option<Size>,
    /// Whether colours are kept.
    pub is_colour: bool,
    /// Values of a picture at most, as it is learnt from: the first one that has more ends the reading.
    pub max_values: usize,
}

impl Reading {
    fn channels(self) -> usize {
        if self.is_colour { 3 } else { 1 }
    }

    /// Returns the shape that every picture is resized to, if they are.
    #[must_use]
    pub fn shape(self) -> Option<ImageShape> {
        let Size { height, width } = self.size?;
        Some(ImageShape { channels: self.channels(), height: height as usize, width: width as usize })
    }
}

/// Loads `folder/train/CLASS/*` and `folder/test/CLASS/*`: files whose names end in png, jpg or jpeg. Classes are the folders of
/// `train` in the order of their names, each with pictures in both halves. Pictures in other formats and folders within a class are
/// refused; notes and the like are passed over. Pictures come in the order of a hash of their names, so that teachers, who hold consecutive
/// ones, hold all classes; it depends on nothing else.
///
/// # Errors
/// [`DataError::Pictures`] and [`DataError::Io`], with the file or folder.
pub fn load(folder: &Path, reading: Reading) -> Result<Dataset, DataError> {
    let [train, test] = ["train", "test"].map(|half| folder.join(half));
    let classes = folders(&train)?;
    if !(2..=256).contains(&classes.len()) {
        return Err(wrong(&train, PictureProblem::Classes { found: classes.len() }));
    }
    if let Some(other) = folders(&test)?.into_iter().find(|class| !classes.contains(class)) {
        return Err(wrong(&test.join(other), PictureProblem::OtherClass));
    }
    if let Some(class) = classes.iter().find(|class| !test.join(class).is_dir()) {
        return Err(wrong(&test, PictureProblem::NoTest { class: class.clone() }));
    }
    let mut first = None;
    let train = read_half(&train, &classes, reading, &mut first)?;
    let test = read_half(&test, &classes, reading, &mut first)?;
    Dataset::new("pictures", train, test)
}

fn wrong(path: &Path, problem: PictureProblem) -> DataError {
    DataError::Pictures { path: path.to_path_buf(), problem }
}

/// Lists the names in a folder in order, but hidden ones.
fn names(folder: &Path) -> Result<Vec<String>, DataError> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(io_error("read", folder))? {
        let name = entry.map_err(io_error("read", folder))?.file_name().into_string();
        let name = name.map_err(|name| wrong(&folder.join(name), PictureProblem::Name))?;
        names.extend((!name.starts_with('.')).then_some(name));
    }
    names.sort_unstable();
    Ok(names)
}

fn folders(folder: &Path) -> Result<Vec<String>, DataError> {
    Ok(names(folder)?.into_iter().filter(|name| folder.join(name).is_dir()).collect())
}

fn read_half(
    folder: &Path,
    classes: &[String],
    reading: Reading,
    first: &mut Option<Size>,
) -> Result<Split, DataError> {
    let mut files: Vec<([u8; 32], PathBuf, u8)> = Vec::new();
    for (label, class) in classes.iter().enumerate() {
        let class_folder = folder.join(class);
        let mut pictures = Vec::new();
        for name in names(&class_folder)? {
            match kind(&class_folder.join(&name)) {
                Kind::Picture => pictures.push(name),
                Kind::NotRead(what) => return Err(wrong(&class_folder.join(name), PictureProblem::NotRead { what })),
                Kind::Other => {}
            }
        }
        if pictures.is_empty() {
            return Err(wrong(&class_folder, PictureProblem::Empty));
        }
        let label = u8::try_from(label).expect("at most 256 classes");
        let place = |name: &String| Sha256::digest(format!("{class}/{name}")).into();
        files.extend(pictures.iter().map(|name| (place(name), class_folder.join(name), label)));
    }
    if files.is_empty() {
        return Err(wrong(folder, PictureProblem::Empty));
    }
    files.sort_unstable();
    let channels = reading.channels();
    let (mut pixels, mut labels) = (Vec::new(), Vec::new());
    for (_, path, label) in &files {
        let size = append(path, reading, first, &mut pixels)?;
        if pixels.len() as u64 > MAX_PIXELS {
            return Err(wrong(folder, PictureProblem::TooMany { limit: MAX_PIXELS }));
        }
        debug_assert_eq!(pixels.len() / (labels.len() + 1), channels * (size.height * size.width) as usize);
        labels.push(*label);
    }
    let Size { height, width } = first.expect("the size of the pictures that were read");
    let shape = ImageShape { channels, height: height as usize, width: width as usize };
    Split::new(shape, classes.len(), pixels, labels)
}

/// What lies in a class's folder.
enum Kind {
    Picture,
    /// What would be missed if nothing were said.
    NotRead(&'static str),
    /// Notes and lists.
    Other,
}

fn kind(path: &Path) -> Kind {
    let ending = path.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
    match ending.as_deref() {
        Some("png" | "jpg" | "jpeg") => Kind::Picture,
        Some("avif" | "bmp" | "gif" | "heic" | "jxl" | "ppm" | "tif" | "tiff" | "webp") => {
            Kind::NotRead("a picture in another format")
        }
        _ if path.is_dir() => Kind::NotRead("a folder"),
        _ => Kind::Other,
    }
}

/// Adds a picture, channel by channel.
fn append(path: &Path, reading: Reading, first: &mut Option<Size>, pixels: &mut Vec<u8>) -> Result<Size, DataError> {
    let bytes = read_limited(path, MAX_FILE).map_err(io_error("read", path))?;
    let picture = upright(bytes).map_err(|error| wrong(path, undecoded(&error)))?;
    let picture = match reading.size {
        Some(Size { height, width }) => picture.resize_exact(width, height, FilterType::Triangle),
        None => picture,
    };
    let found = Size { height: picture.height(), width: picture.width() };
    let values = reading.channels() * found.height as usize * found.width as usize;
    if values > reading.max_values {
        let (channels, max) = (reading.channels(), reading.max_values);
        return Err(wrong(path, PictureProblem::Large { found, channels, max }));
    }
    let expected = *first.get_or_insert(found);
    if found != expected {
        return Err(wrong(path, PictureProblem::Size { expected, found }));
    }
    write(&picture, reading.is_colour, pixels);
    Ok(found)
}

fn undecoded(error: &ImageError) -> PictureProblem {
    match error {
        ImageError::Limits(_) => PictureProblem::Huge { max_side: MAX_SIDE, max_bytes: MAX_UNPACKED },
        other => PictureProblem::Decode { reason: other.to_string().trim_end().to_owned() },
    }
}

/// Decodes a picture, and turns it as its camera was held.
fn upright(bytes: Vec<u8>) -> Result<DynamicImage, ImageError> {
    let mut limits = Limits::default();
    (limits.max_image_width, limits.max_image_height) = (Some(MAX_SIDE), Some(MAX_SIDE));
    limits.max_alloc = Some(MAX_UNPACKED);
    let mut reader = ImageReader::new(Cursor::new(bytes)).with_guessed_format()?;
    reader.limits(limits.clone());
    let mut decoder = reader.into_decoder()?;
    limits.reserve(decoder.total_bytes())?;
    let orientation = decoder.orientation()?;
    let mut picture = DynamicImage::from_decoder(decoder)?;
    picture.apply_orientation(orientation);
    Ok(picture)
}

fn write(picture: &DynamicImage, is_colour: bool, pixels: &mut Vec<u8>) {
    if is_colour {
        let picture = picture.to_rgb8();
        (0..3).for_each(|channel| pixels.extend(picture.pixels().map(|pixel| pixel.0[channel])));
    } else {
        pixels.extend(picture.to_luma8().pixels().map(|pixel| pixel.0[0]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::{Rgb, RgbImage};
    use tempfile::TempDir;

    const COLOUR: Reading = Reading { size: None, is_colour: true, max_values: 1000 };

    fn picture(folder: &TempDir, name: &str, [width, height]: [u32; 2], colour: [u8; 3]) {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
        RgbImage::from_pixel(width, height, Rgb(colour)).save(path).expect("a picture");
    }

    /// Two classes of pictures 4 wide and 3 high.
    fn folder() -> TempDir {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for (name, colour) in [
            ("train/dog/1.png", [10, 20, 30]),
            ("train/dog/2.PNG", [11, 20, 30]),
            ("train/cat/1.png", [12, 20, 30]),
            ("test/dog/9.png", [13, 20, 30]),
            ("test/cat/9.png", [14, 20, 30]),
        ] {
            picture(&folder, name, [4, 3], colour);
        }
        fs::write(folder.path().join("train/dog/notes.txt"), "no picture").expect("a file");
        fs::write(folder.path().join("train/.hidden"), "").expect("a file");
        folder
    }

    fn refused(folder: &TempDir, words: &str) {
        let text = load(folder.path(), COLOUR).expect_err("refused").to_string();
        assert!(text.contains(words), "{words:?} is not in {text:?}");
    }

    #[test]
    fn classes_are_folders_in_order_and_pictures_are_mixed() {
        let data = load(folder().path(), COLOUR).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(data.train.shape(), ImageShape { channels: 3, height: 3, width: 4 });
        assert_eq!((data.train.len(), data.test.len(), data.train.classes()), (3, 2, 2));
        for image in 0..3 {
            let pixels = data.train.pixels(image);
            // The cat's red is 12.
            assert_eq!(data.train.label(image) == 0, pixels[0] == 12);
            assert!(pixels[12..24].iter().all(|green| *green == 20) && pixels[24..].iter().all(|blue| *blue == 30));
        }
        assert_eq!(
            [0, 1].map(|image| usize::from(data.test.pixels(image)[0])),
            [0, 1].map(|image| 14 - usize::from(data.test.label(image)))
        );
        let grey =
            load(folder().path(), Reading { is_colour: false, ..COLOUR }).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(grey.train.shape().channels, 1);
    }

    #[test]
    fn other_sizes_are_refused_or_resized() {
        let folder = folder();
        picture(&folder, "train/cat/2.png", [5, 3], [1, 2, 3]);
        refused(&folder, "expected 3x4 like the other pictures, found 3x5");
        let size = Some(Size { height: 6, width: 2 });
        let data = load(folder.path(), Reading { size, ..COLOUR }).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(data.train.shape(), ImageShape { channels: 3, height: 6, width: 2 });
    }

    #[test]
    fn what_is_no_dataset_is_named() {
        let empty = tempfile::tempdir().expect("a temporary folder");
        assert!(matches!(load(empty.path(), COLOUR), Err(DataError::Io { .. })));
        let folder = folder();
        fs::write(folder.path().join("train/cat/3.jpg"), "no picture").expect("a file");
        refused(&folder, "3.jpg: cannot be read as a PNG or JPEG picture");
        fs::remove_file(folder.path().join("train/cat/3.jpg")).expect("a file");
        picture(&folder, "test/cow/1.png", [4, 3], [1, 2, 3]);
        refused(&folder, "cow: there is no such class of training pictures");
        fs::remove_dir_all(folder.path().join("test/cow")).expect("a folder");
        fs::create_dir(folder.path().join("train/ant")).expect("a folder");
        refused(&folder, "class \"ant\" of the training pictures has none");
        fs::create_dir(folder.path().join("test/ant")).expect("a folder");
        refused(&folder, "ant: there is no PNG or JPEG picture in it");
        for half in ["train", "test"] {
            fs::remove_dir(folder.path().join(half).join("ant")).expect("a folder");
        }
        // What would be missed if nothing were said.
        fs::write(folder.path().join("train/cat/4.webp"), "a picture").expect("a file");
        refused(
            &folder,
            "4.webp: expected PNG or JPEG pictures in a class's folder, found a picture in another format",
        );
        fs::remove_file(folder.path().join("train/cat/4.webp")).expect("a file");
        fs::create_dir(folder.path().join("train/cat/more")).expect("a folder");
        refused(&folder, "more: expected PNG or JPEG pictures in a class's folder, found a folder");
        fs::remove_dir(folder.path().join("train/cat/more")).expect("a folder");
        for half in ["train", "test"] {
            fs::remove_dir_all(folder.path().join(half).join("dog")).expect("a folder");
        }
        refused(&folder, "2 to 256 classes, found 1");
    }

    #[test]
    fn photographs_are_refused_at_the_first_one_and_names_are_shown_safely() {
        let folder = folder();
        picture(&folder, "train/cat/0\u{1b}[31m\nforged.png", [40, 30], [1, 2, 3]);
        let text = load(folder.path(), Reading { max_values: 30, ..COLOUR }).expect_err("too large").to_string();
        assert!(text.contains("expected at most 30 values") && text.contains("data.size"), "{text}");
        let text = load(folder.path(), COLOUR).expect_err("too large").to_string();
        assert!(text.contains("0\\u{1b}[31m\\u{a}forged.png") && !text.contains(char::is_control), "{text}");
    }

    #[test]
    fn a_picture_of_a_huge_size_is_not_unpacked() {
        let folder = folder();
        let path = folder.path().join("train/cat/1.png");
        let mut bytes = fs::read(&path).expect("a picture");
        // Width and height in the header; their checksum is wrong then too, whichever is seen first.
        bytes[16..24].copy_from_slice(&[0x40, 0, 0, 0, 0x40, 0, 0, 0]);
        fs::write(&path, bytes).expect("a file");
        let text = load(folder.path(), COLOUR).expect_err("refused").to_string();
        assert!(
            text.contains("1.png: expected a picture of at most 10000") || text.contains("1.png: cannot be read"),
            "{text}"
        );
    }

    #[test]
    fn sizes_are_written_height_first() {
        let size = |text: &str| text.parse::<Size>();
        assert_eq!(size("32x20").expect("a size"), Size { height: 32, width: 20 });
        for text in ["32", "0x3", "x", "3x10001", "-1x3", "axb", "3x4x5"] {
            assert!(size(text).is_err(), "{text}");
        }
    }
}
