//! CIFAR-10's archive for C programs: a compressed tar archive of six files. A file is a list of records, each a label
//! followed by the bytes of its image.

use std::io::{BufRead, Read};

use flate2::bufread::GzDecoder;

use crate::split::check_labels;
use crate::{ImageShape, Split};

/// The files of training images, in their order.
pub(crate) const TRAINING: [&str; 5] =
    ["data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"];
const TEST: &str = "test_batch.bin";
/// Limit of the uncompressed bytes that are not images: texts and file headers.
const BESIDE: u64 = 1 << 20;

/// Reads training and test images, `count` from each file. Nothing is written to disk, so the names in the archive are
/// harmless.
pub(crate) fn read(
    reader: &mut impl BufRead,
    shape: ImageShape,
    classes: usize,
    count: usize,
) -> Result<[Split; 2], String> {
    const FILES: usize = TRAINING.len() + 1;
    let files = || TRAINING.into_iter().chain([TEST]);
    let record = 1 + shape.pixels();
    let limit = (FILES * count * record) as u64 + BESIDE;
    let mut archive = tar::Archive::new(GzDecoder::new(reader).take(limit));
    let mut batches: [Option<Vec<u8>>; FILES] = [const { None }; FILES];
    let damaged = |reason: String| format!("damaged or incomplete archive: {reason}");
    for entry in archive.entries().map_err(|error| damaged(error.to_string()))? {
        let mut entry = entry.map_err(|error| damaged(error.to_string()))?;
        let name = entry.path().ok().and_then(|path| path.file_name()?.to_str().map(str::to_owned));
        let Some((index, name)) = files().enumerate().find(|(_, file)| name.as_deref() == Some(file)) else { continue };
        let (expected, found) = (count * record, entry.size());
        if found != expected as u64 {
            return Err(damaged(format!("{name}: expected {expected} bytes, found {found}")));
        }
        let mut batch = vec![0; expected];
        entry.read_exact(&mut batch).map_err(|error| damaged(format!("{name}: {error}")))?;
        if batches[index].replace(batch).is_some() {
            return Err(damaged(format!("{name} occurs twice")));
        }
    }
    let mut halves = [(Vec::new(), Vec::new()), (Vec::new(), Vec::new())];
    for (index, (batch, name)) in batches.into_iter().zip(files()).enumerate() {
        let batch = batch.ok_or_else(|| damaged(format!("{name} is missing")))?;
        let (pixels, labels) = &mut halves[index / TRAINING.len()];
        for record in batch.chunks_exact(record) {
            labels.push(record[0]);
            pixels.extend_from_slice(&record[1..]);
        }
    }
    for (_, labels) in &halves {
        check_labels(labels, 0, classes)?;
    }
    let split =
        |(pixels, labels)| Split::new(shape, classes, pixels, labels).expect("complete records, checked labels");
    Ok(halves.map(split))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toy::gzip;

    const SHAPE: ImageShape = ImageShape { channels: 3, height: 2, width: 2 };

    /// Returns an archive with these files, each of one record: a label, and the twelve values that follow it.
    fn archive(files: &[(&str, u8)]) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        for &(name, label) in files {
            let record: Vec<u8> = (0..=12).map(|i| label + i).collect();
            let mut header = tar::Header::new_gnu();
            header.set_size(record.len() as u64);
            header.set_cksum();
            builder.append_data(&mut header, format!("cifar-10-batches-bin/{name}"), &record[..]).expect("a file");
        }
        gzip(&builder.into_inner().expect("an archive"))
    }

    fn files() -> Vec<(&'static str, u8)> {
        let mut files = vec![("readme.html", 70), (TEST, 9)];
        files.extend(TRAINING.into_iter().zip([1, 2, 3, 4, 5]).rev());
        files
    }

    fn problem(files: &[(&str, u8)]) -> String {
        read(&mut &archive(files)[..], SHAPE, 10, 1).expect_err("a bad archive")
    }

    #[test]
    fn training_and_test_images_are_those_of_their_files() {
        let [train, test] = read(&mut &archive(&files())[..], SHAPE, 10, 1).expect("an archive");
        assert_eq!((train.labels(), test.labels()), (&[1, 2, 3, 4, 5][..], &[9][..]));
        assert_eq!(train.pixels(2), (4..16).collect::<Vec<u8>>());
        assert_eq!((test.shape(), test.pixels(0)), (SHAPE, &(10..22).collect::<Vec<u8>>()[..]));
    }

    #[test]
    fn bad_archives_are_refused() {
        assert!(problem(&files()[..4]).contains("data_batch_1.bin is missing"));
        assert!(problem(&[files(), files()].concat()).contains("occurs twice"));
        let mut wrong = files();
        wrong[1].1 = 10;
        assert_eq!(problem(&wrong), "label 0: expected 0 to 9, found 10");
        let whole = archive(&files());
        for bytes in [&whole[..whole.len() / 2], b"no archive", &gzip(b"no archive")] {
            assert!(read(&mut &*bytes, SHAPE, 10, 1).is_err());
        }
        let longer = read(&mut &whole[..], SHAPE, 10, 2).expect_err("batches of two");
        assert!(longer.contains("expected 26 bytes, found 13"), "{longer}");
        // Memory is limited to six batches, independently of the size of the decompressed file.
        let bomb = gzip(&vec![0; 100 << 20]);
        assert!(read(&mut &bomb[..], SHAPE, 10, 1).is_err());
    }
}
