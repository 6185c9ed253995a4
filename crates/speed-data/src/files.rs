//! Datasets that are published as files.

use std::io::BufReader;
use std::path::Path;

use speed_core::open_regular;

use crate::catalog::{self, Catalog, Content};
use crate::error::{bad_file, io_error};
use crate::verify::{self, Loaded};
use crate::{DataError, Dataset, ImageShape, Split, idx, mnist};

/// Largest uncompressed size of a file of images in SVHN's format, in bytes.
const MAX_BYTES: u64 = 4 << 30;

/// Loads dataset `name` from its published files in `dir` or `dir/NAME`.
///
/// # Errors
/// If the dataset is unknown; other errors name the file, the expected and the found content.
pub fn load(name: &str, dir: &Path) -> Result<Dataset, DataError> {
    let catalog = catalog::find(name)?;
    if catalog.name == catalog::MNIST.name {
        return mnist::load(dir);
    }
    load_files(catalog, dir)
}

fn load_files(catalog: &'static Catalog, dir: &Path) -> Result<Dataset, DataError> {
    let (mut splits, mut images) = (Vec::new(), None);
    for file in catalog.files {
        let path = verify::find_required(catalog, file, dir)?;
        match (verify::read(catalog, file, &path)?, file.content) {
            (Loaded::Splits(found), _) => splits.extend(found),
            (Loaded::Idx(content), Content::Labels { first, .. }) => {
                let pixels = images.take().expect("images before their labels");
                splits.push(labelled(catalog, pixels, &content, first)?);
            }
            (Loaded::Idx(content), _) => images = Some(pixels(catalog, &content)),
        }
    }
    let [train, test] = <[Split; 2]>::try_from(splits).expect("two halves in a catalog");
    let dataset = Dataset::new(catalog.name, train, test)?;
    Ok(match class_names(catalog.name) {
        Some(names) => dataset.with_class_names(names),
        None => dataset,
    })
}

/// Returns the published names of a dataset's classes; `None` if its classes have numbers only.
pub fn class_names(dataset: &str) -> Option<Vec<String>> {
    let words = match dataset {
        "fashion-mnist" => "T-shirt/top Trouser Pullover Dress Coat Sandal Shirt Sneaker Bag Ankle-boot",
        "cifar-10" => "airplane automobile bird cat deer dog frog horse ship truck",
        "emnist-letters" => "A B C D E F G H I J K L M N O P Q R S T U V W X Y Z",
        _ => return None,
    };
    Some(words.split(' ').map(str::to_owned).collect())
}

fn pixels(catalog: &Catalog, content: &[u8]) -> Vec<u8> {
    let mut pixels = idx::read_images(content).expect("a checked file").pixels.to_vec();
    if catalog.is_turned {
        let ImageShape { height, width, .. } = catalog.shape;
        assert_eq!(height, width, "images that are turned");
        for image in pixels.chunks_exact_mut(height * width) {
            for (y, x) in (0..height).flat_map(|y| (0..y).map(move |x| (y, x))) {
                image.swap(y * width + x, x * width + y);
            }
        }
    }
    pixels
}

fn labelled(catalog: &Catalog, pixels: Vec<u8>, content: &[u8], first: u8) -> Result<Split, DataError> {
    let labels = idx::read_labels(content).expect("a checked file");
    Split::new(catalog.shape, catalog.classes, pixels, labels.iter().map(|label| label - first).collect())
}

/// Sizes of a dataset that are known without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The shape of every image.
    pub shape: ImageShape,
    /// The number of classes.
    pub classes: usize,
    /// Number of training images.
    pub train: usize,
    /// Number of test images.
    pub test: usize,
}

impl Facts {
    /// Returns the sizes of a published dataset.
    ///
    /// # Errors
    /// If the dataset is unknown.
    pub fn published(name: &str) -> Result<Self, DataError> {
        let catalog = catalog::find(name)?;
        let counts: Vec<usize> = catalog.files.iter().flat_map(|file| file.content.images()).collect();
        let [train, test] = counts[..] else { unreachable!("two halves in a catalog") };
        Ok(Self { shape: catalog.shape, classes: catalog.classes, train, test })
    }

    /// Returns the sizes of a loaded dataset.
    pub fn from_dataset(dataset: &Dataset) -> Self {
        let Dataset { train, test, .. } = dataset;
        Self { shape: train.shape(), classes: train.classes(), train: train.len(), test: test.len() }
    }
}

/// Loads images and labels in SVHN's format from `train_32x32.mat` and `test_32x32.mat` in `folder`. Images may have
/// any size and number; labels are 1 to 10, where 10 is the digit 0. Such files have no known checksums; [`load`]
/// checks SVHN's own files.
///
/// # Errors
/// Names the file, the expected and the found content.
pub fn load_svhn_like(folder: &Path) -> Result<Dataset, DataError> {
    let read = |name: &str| {
        let path = folder.join(name);
        let file = open_regular(&path).map_err(io_error("open", &path))?;
        let split = verify::read_svhn(&mut BufReader::with_capacity(1 << 16, file), MAX_BYTES);
        split.map_err(|problem| bad_file(&path, problem))
    };
    Dataset::new("svhn-like", read("train_32x32.mat")?, read("test_32x32.mat")?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{Checksum, FileSpec, empty};
    use crate::mat::tests::svhn_file;
    use crate::toy;
    use sha2::{Digest, Sha256};
    use std::fs;

    #[test]
    fn facts_are_those_of_the_catalog() {
        let svhn = Facts::published("svhn").expect("known");
        assert_eq!((svhn.train, svhn.test, svhn.classes, svhn.shape.channels), (73_257, 26_032, 10, 3));
        let cifar = Facts::published("cifar-10").expect("known");
        assert_eq!((cifar.train, cifar.test), (50_000, 10_000));
        let letters = Facts::published("emnist-letters").expect("known");
        assert_eq!((letters.train, letters.test, letters.classes), (124_800, 20_800, 26));
        assert!(Facts::published("svnh").is_err());
    }

    #[test]
    fn images_of_emnist_are_turned_and_its_letters_begin_at_0() {
        const SIDE: usize = 3;
        let shape = ImageShape { channels: 1, height: SIDE, width: SIDE };
        let spec = |name, content| FileSpec { name, content, bytes: 1000, checksum: Checksum::Unknown };
        let images = |count| Content::Images { count, height: SIDE, width: SIDE };
        let labels = |count| Content::Labels { count, first: 1, classes: 26 };
        let files = Box::leak(Box::new([
            spec("a", images(4)),
            spec("b", labels(4)),
            spec("c", images(2)),
            spec("d", labels(2)),
        ]));
        let mut catalog = Catalog { name: "letters", classes: 26, files, ..empty(shape) };
        let folder = tempfile::tempdir().expect("a temporary folder");
        for file in catalog.files {
            let content: Vec<u8> = match file.content {
                Content::Labels { count, .. } => {
                    [&[0, 0, 8, 1, 0, 0, 0, count as u8][..], &[26, 1, 2, 3][..count]].concat()
                }
                content => toy::file(content),
            };
            fs::write(folder.path().join(format!("{}.gz", file.name)), toy::gzip(&content)).expect("a file");
        }
        let load = |catalog: Catalog| load_files(Box::leak(Box::new(catalog)), folder.path()).expect("a dataset");
        let straight = load(Catalog { ..catalog });
        assert_eq!((straight.train.labels(), straight.test.labels()), (&[25, 0, 1, 2][..], &[25, 0][..]));
        catalog.is_turned = true;
        let turned = load(catalog);
        for image in 0..4 {
            let (rows, columns) = (straight.train.pixels(image), turned.train.pixels(image));
            for (y, x) in (0..SIDE).flat_map(|y| (0..SIDE).map(move |x| (y, x))) {
                assert_eq!(columns[x * SIDE + y], rows[y * SIDE + x]);
            }
        }
    }

    /// Returns an image in the order of SVHN's files, whose bytes identify channel, column and row.
    fn image(side: usize) -> Vec<u8> {
        (0..3 * side * side).map(|place| place as u8).collect()
    }

    #[test]
    fn files_of_svhn_are_checked_and_their_label_10_is_0() {
        const SIDE: usize = 4;
        let shape = ImageShape { channels: 3, height: SIDE, width: SIDE };
        let good = [svhn_file(SIDE, &[image(SIDE), image(SIDE)], &[10, 9]), svhn_file(SIDE, &[image(SIDE)], &[1])];
        let spec = |name, count, bytes: &Vec<u8>| {
            let checksum = Checksum::OfFile(hex::encode(Sha256::digest(bytes)).leak());
            FileSpec { name, content: Content::Svhn { count }, bytes: bytes.len() as u64, checksum }
        };
        let files = Box::leak(Box::new([spec("train.mat", 2, &good[0]), spec("test.mat", 1, &good[1])]));
        let catalog: &Catalog = Box::leak(Box::new(Catalog { name: "s", files, ..empty(shape) }));
        let folder = tempfile::tempdir().expect("a temporary folder");
        let load_with = |train: &[u8], test: &[u8]| {
            fs::write(folder.path().join("train.mat"), train).expect("a file");
            fs::write(folder.path().join("test.mat"), test).expect("a file");
            load_files(catalog, folder.path())
        };
        let data = load_with(&good[0], &good[1]).expect("good files");
        assert_eq!((data.train.labels(), data.test.labels()), (&[0, 9][..], &[1][..]));
        // Row 1, column 2 of channel 2.
        assert_eq!(data.train.pixels(1)[2 * 16 + 4 + 2], 2 * 16 + 2 * 4 + 1);

        for (train, words) in [
            (svhn_file(SIDE, &[image(SIDE)], &[1]), "were files swapped?"),
            (svhn_file(SIDE, &[image(SIDE), image(SIDE)], &[10, 8]), "SHA-256"),
            (svhn_file(SIDE, &[image(SIDE), image(SIDE)], &[0, 8]), "label 0: expected 1 to 10, found 0"),
            (svhn_file(SIDE, &[image(SIDE), image(SIDE)], &[1, 11]), "label 1: expected 1 to 10, found 11"),
            (svhn_file(2, &[image(2), image(2)], &[1, 2]), "2x2"),
            ([&good[0][..], b"more"].concat(), "within a tag"),
            (good[0][..good[0].len() - 9].to_vec(), "truncated"),
        ] {
            let text = load_with(&train, &good[1]).expect_err("a bad file").to_string();
            assert!(text.contains("train.mat") && text.contains(words), "{words:?} is not in {text:?}");
        }
    }

    #[test]
    fn files_in_the_form_of_svhn_are_read_whatever_their_size() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let write = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).expect("a file");
        write("train_32x32.mat", &svhn_file(2, &[image(2), image(2)], &[10, 3]));
        assert!(load_svhn_like(folder.path()).expect_err("no test images").to_string().contains("test_32x32.mat"));
        write("test_32x32.mat", &svhn_file(2, &[image(2)], &[4]));
        let data = load_svhn_like(folder.path()).expect("a dataset");
        assert_eq!((data.train.labels(), data.test.labels()), (&[0, 3][..], &[4][..]));
        write("test_32x32.mat", &svhn_file(3, &[image(3)], &[4]));
        assert!(load_svhn_like(folder.path()).is_err(), "images of another size");
    }
}
