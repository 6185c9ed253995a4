//! The real MNIST files, found through SPEED_DATASETS.

use flate2::read::GzDecoder;
use md5::{Digest, Md5};
use speed_data::{DataError, check, locate, mnist};
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

/// The published MD5 of the uncompressed files.
const FILES: [(&str, &str); 4] = [
    ("train-images-idx3-ubyte", "6bbc9ace898e44ae57da46a324031adb"),
    ("train-labels-idx1-ubyte", "a25bea736e30d166cdddb491f175f624"),
    ("t10k-images-idx3-ubyte", "2646ac647ad5339dbf082846283269ea"),
    ("t10k-labels-idx1-ubyte", "27ae3e4e09519cfbb04c329615203637"),
];

/// Returns the directory of datasets. Without this directory, a test is skipped; in CI it fails.
#[expect(clippy::print_stderr, reason = "a skipped test reports it")]
fn datasets() -> Option<PathBuf> {
    let folder = std::env::var_os("SPEED_DATASETS").map(PathBuf::from);
    if folder.is_none() {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "CI needs SPEED_DATASETS");
        eprintln!("skipped: SPEED_DATASETS is not set");
    }
    folder
}

fn content(datasets: &Path, name: &str) -> Vec<u8> {
    let found = ["mnist", "."].map(|folder| datasets.join(folder).join(format!("{name}.gz")));
    let path = found.iter().find(|path| path.exists()).expect("SPEED_DATASETS has compressed MNIST files");
    let mut content = Vec::new();
    GzDecoder::new(File::open(path).expect("readable")).read_to_end(&mut content).expect("valid");
    content
}

#[test]
fn the_published_facts_hold() {
    let Some(datasets) = datasets() else { return };
    let data = mnist::load(&datasets).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((data.train.len(), data.test.len(), data.train.classes()), (60_000, 10_000, 10));
    assert_eq!(data.train.labels()[..10], [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]);
    assert_eq!(data.test.labels()[..10], [7, 2, 1, 0, 4, 1, 4, 9, 5, 9]);
    let counts = |labels: &[u8]| (0..10).map(|c| labels.iter().filter(|&&l| l == c).count()).collect::<Vec<_>>();
    assert_eq!(counts(data.train.labels()), [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]);
    assert_eq!(counts(data.test.labels()), [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]);
    // Mean and deviation of the scaled training pixels, as commonly used for normalisation: 0.1307 and 0.3081.
    let (mut sum, mut square) = (0u64, 0u64);
    for i in 0..data.train.len() {
        for &pixel in data.train.pixels(i) {
            sum += u64::from(pixel);
            square += u64::from(pixel).pow(2);
        }
    }
    let pixels = 60_000.0 * 784.0;
    let mean = sum as f64 / pixels / 255.0;
    let deviation = (square as f64 / pixels / 255.0 / 255.0 - mean * mean).sqrt();
    assert!((mean - 0.1307).abs() < 5e-5 && (deviation - 0.3081).abs() < 5e-5, "{mean} {deviation}");
}

#[test]
fn pins_belong_to_the_published_files_and_uncompressed_files_give_the_same() {
    let Some(datasets) = datasets() else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, md5) in FILES {
        let content = content(&datasets, name);
        let found = hex::encode(Md5::digest(&content));
        assert_eq!(found, md5, "{name}");
        fs::write(folder.path().join(name), content).expect("a file");
    }
    // Exactly these bytes pass the pinned SHA-256.
    let raw = mnist::load(folder.path()).unwrap_or_else(|error| panic!("{error}"));
    assert!(raw == mnist::load(&datasets).expect("valid"));
    assert_eq!(locate("mnist", Some(folder.path())).expect("there"), folder.path());

    let report = check("mnist", folder.path()).expect("a known dataset");
    assert!(report.is_ok());
    let good = report.files.iter().filter_map(|file| file.outcome.as_ref().ok());
    let counts: Vec<_> = good.map(|file| (file.content_bytes, file.images, file.labels)).collect();
    let (train, test) = ((60_000, 47_040_016), (10_000, 7_840_016));
    assert_eq!(counts, [(train.1, train.0, 0), (60_008, 0, train.0), (test.1, test.0, 0), (10_008, 0, test.0)]);
}

#[test]
fn an_empty_folder_is_not_a_dataset() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    assert!(matches!(locate("mnist", Some(folder.path())), Err(DataError::NotFound { .. })));
    let missing = |file: &str| format!("file {file} is missing; looked for ");
    let error = mnist::load(folder.path()).expect_err("empty").to_string();
    assert!(error.starts_with(&missing(FILES[0].0)), "{error}");
    let report = check("mnist", folder.path()).expect("a known dataset");
    for file in &report.files {
        let error = file.outcome.as_ref().expect_err("missing").to_string();
        assert!(error.starts_with(&missing(file.name)), "{error}");
    }
}
