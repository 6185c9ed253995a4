//! An artificial dataset for tests: files of the right format with known checksums.

use std::collections::HashMap;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use rand::Rng;
use sha2::{Digest, Sha256};

use crate::ImageShape;
use crate::catalog::{Catalog, Checksum, Content, FileSpec, empty};
use crate::idx::{IMAGES_MAGIC, LABELS_MAGIC};

/// Returns a catalog of incompressible images and labels, and the compressed files by name, with a slash before and
/// `.gz` after it.
pub(crate) fn toy() -> (&'static Catalog, HashMap<String, Vec<u8>>) {
    let mut files = HashMap::new();
    let mut spec = |name: &'static str, content| {
        let bytes = file(content);
        files.insert(format!("/{name}.gz"), gzip(&bytes));
        let sha256 = hex::encode(Sha256::digest(&bytes)).leak();
        FileSpec { name, content, bytes: bytes.len() as u64, checksum: Checksum::OfContent(sha256) }
    };
    let files_of = Box::leak(Box::new([
        spec("a-images", Content::Images { count: 300, height: 28, width: 28 }),
        spec("a-labels", Content::Labels { count: 300, first: 0, classes: 10 }),
        spec("b-images", Content::Images { count: 50, height: 28, width: 28 }),
        spec("b-labels", Content::Labels { count: 50, first: 0, classes: 10 }),
    ]));
    let shape = ImageShape { channels: 1, height: 28, width: 28 };
    (Box::leak(Box::new(Catalog { name: "toy", files: files_of, ..empty(shape) })), files)
}

/// Returns an idx file with random data, always the same for the same content.
pub(crate) fn file(content: Content) -> Vec<u8> {
    let mut stream = speed_core::random::Streams::new(1).stream("toy", 0);
    let (words, len, classes) = match content {
        Content::Images { count, height, width } => {
            (vec![IMAGES_MAGIC as usize, count, height, width], count * height * width, 256)
        }
        Content::Labels { count, classes, .. } => (vec![LABELS_MAGIC as usize, count], count, classes),
        Content::Svhn { .. } | Content::Cifar { .. } => unreachable!("the toy dataset has idx files"),
    };
    let mut data = vec![0; len];
    stream.fill_bytes(&mut data);
    data.iter_mut().for_each(|byte| *byte = (usize::from(*byte) % classes) as u8);
    [words.iter().flat_map(|&word| (word as u32).to_be_bytes()).collect(), data].concat()
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(bytes).expect("memory");
    gzip.finish().expect("memory")
}
