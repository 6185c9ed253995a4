//! CIFAR-10's archive for C programs: a packed tar with six files of records, a label and the image's bytes.

use crate::Split;
use crate::catalog::Catalog;
use crate::error::FileProblem;
use crate::verify::check_labels;
use flate2::bufread::GzDecoder;
use std::io::{BufRead, Read};

/// Its files, in the order of the images, and the images of each.
const TRAINING: [&str; 5] =
    ["data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"];
const TEST: &str = "test_batch.bin";
const IMAGES: usize = 10_000;
/// Unpacked bytes beside the images: texts and the headers of files.
const BESIDE: u64 = 1 << 20;

/// Reads training and test images. Nothing is written, whatever names the archive has.
pub(crate) fn read(reader: &mut impl BufRead, catalog: &Catalog) -> Result<Vec<Split>, FileProblem> {
    let record = 1 + catalog.shape.pixels();
    let limit = (6 * IMAGES * record) as u64 + BESIDE;
    let mut archive = tar::Archive::new(GzDecoder::new(reader).take(limit));
    let mut batches: [Option<Vec<u8>>; 6] = [const { None }; 6];
    let damaged = |error: std::io::Error| FileProblem::Archive { reason: error.to_string() };
    for entry in archive.entries().map_err(damaged)? {
        let mut entry = entry.map_err(damaged)?;
        let name = entry.path().ok().and_then(|path| path.file_name()?.to_str().map(str::to_owned));
        let index = TRAINING.into_iter().chain([TEST]).position(|file| name.as_deref() == Some(file));
        let Some(index) = index else { continue };
        let mut batch = vec![0; IMAGES * record];
        if entry.size() != batch.len() as u64 {
            let reason =
                format!("{}: expected {} bytes, found {}", name.unwrap_or_default(), batch.len(), entry.size());
            return Err(FileProblem::Archive { reason });
        }
        entry.read_exact(&mut batch).map_err(damaged)?;
        batches[index] = Some(batch);
    }
    let mut halves = [(Vec::new(), Vec::new()), (Vec::new(), Vec::new())];
    for (index, (batch, name)) in batches.into_iter().zip(TRAINING.into_iter().chain([TEST])).enumerate() {
        let batch = batch.ok_or_else(|| FileProblem::Archive { reason: format!("there is no {name}") })?;
        let (pixels, labels) = &mut halves[index / TRAINING.len()];
        for record in batch.chunks_exact(record) {
            labels.push(record[0]);
            pixels.extend_from_slice(&record[1..]);
        }
    }
    let split = |(pixels, labels): (Vec<u8>, Vec<u8>)| {
        check_labels(&labels, 0, catalog.classes)?;
        Ok(Split::new(catalog.shape, catalog.classes, pixels, labels).expect("whole records, checked labels"))
    };
    halves.into_iter().map(split).collect()
}
