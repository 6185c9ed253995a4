//! Datasets that come as published files.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use crate::catalog::{self, Catalog, Content};
use crate::error::io_error;
use crate::verify::{self, Loaded};
use crate::{DataError, Dataset, ImageShape, Split, idx, mnist};

/// Bytes that a file of images in SVHN's form may unpack to.
const MAX_BYTES: u64 = 4 << 30;

/// Loads dataset `name` from its published files in `dir` or `dir/NAME`.
///
/// # Errors
/// [`DataError::UnknownDataset`]; else it names the file, what was expected and what was found.
pub fn load(name: &str, dir: &Path) -> Result<Dataset, DataError> {
    let catalog = catalog::find(name)?;
    if catalog.name == catalog::MNIST.name {
        return mnist::load(dir);
    }
    let (mut splits, mut images) = (Vec::new(), None);
    for file in catalog.files {
        let path = verify::find_required(catalog, file, dir)?;
        match (verify::read(catalog, file, &path)?.loaded, file.content) {
            (Loaded::Splits(found), _) => splits.extend(found),
            (Loaded::Idx(content), Content::Labels { first, .. }) => {
                let pixels = images.take().expect("images before their labels");
                splits.push(labelled(catalog, pixels, &content, first)?);
            }
            (Loaded::Idx(content), _) => images = Some(pixels(catalog, &content)),
        }
    }
    let [train, test] = <[Split; 2]>::try_from(splits).expect("two halves in a catalog");
    Dataset::new(catalog.name, train, test)
}

/// Returns the pixels of a checked idx file.
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

/// What is known of a dataset without reading it.
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
    /// Returns those of a published dataset.
    ///
    /// # Errors
    /// [`DataError::UnknownDataset`].
    pub fn published(name: &str) -> Result<Self, DataError> {
        let catalog = catalog::find(name)?;
        let counts: Vec<usize> = catalog.files.iter().flat_map(|file| file.content.images()).collect();
        let [train, test] = counts[..] else { unreachable!("two halves in a catalog") };
        Ok(Self { shape: catalog.shape, classes: catalog.classes, train, test })
    }

    /// Returns those of images that are there.
    #[must_use]
    pub fn of(dataset: &Dataset) -> Self {
        let Dataset { train, test, .. } = dataset;
        Self { shape: train.shape(), classes: train.classes(), train: train.len(), test: test.len() }
    }
}

/// Loads images and labels in the form of SVHN's files, `train_32x32.mat` and `test_32x32.mat` in `folder`, of any size and number:
/// labels 1 to 10, where 10 is the digit 0. Nothing is known of such files; SVHN's own are checked by [`load`].
///
/// # Errors
/// Names the file, what was expected and what was found.
pub fn load_svhn_like(folder: &Path) -> Result<Dataset, DataError> {
    let read = |name: &str| {
        let path = folder.join(name);
        let file = File::open(&path).map_err(io_error("open", &path))?;
        let split = verify::read_svhn(&mut BufReader::with_capacity(1 << 16, file), MAX_BYTES);
        split.map_err(|problem| DataError::BadFile { path, problem, content_of: None })
    };
    Dataset::new("svhn-like", read("train_32x32.mat")?, read("test_32x32.mat")?)
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
