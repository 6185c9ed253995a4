//! Datasets that come as published files.

use std::path::Path;

use crate::catalog::{self, Catalog, Content};
use crate::verify::{self, Loaded};
use crate::{DataError, Dataset, ImageShape, Split, idx, mnist};

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
