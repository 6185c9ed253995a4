//! The checks of one published file: gzip, length, header, labels, checksum.

use crate::catalog::{Catalog, Content, FileSpec};
use crate::error::{FileProblem, io_error};
use crate::{DataError, idx};
use flate2::bufread::MultiGzDecoder;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// A file that passed every check.
pub(crate) struct Checked {
    /// The uncompressed idx file.
    pub(crate) content: Vec<u8>,
    /// Bytes on disk.
    pub(crate) stored_bytes: u64,
}

/// Lists the places of a file below `dir`, in order of preference: the folder itself, then the dataset's own folder; gzip,
/// then uncompressed.
pub(crate) fn candidates(catalog: &Catalog, file: &FileSpec, dir: &Path) -> Vec<PathBuf> {
    [dir.to_path_buf(), dir.join(catalog.name)]
        .iter()
        .flat_map(|folder| [folder.join(format!("{}.gz", file.name)), folder.join(file.name)])
        .collect()
}

/// Returns the first candidate that exists.
pub(crate) fn find(catalog: &Catalog, file: &FileSpec, dir: &Path) -> Option<PathBuf> {
    candidates(catalog, file, dir).into_iter().find(|path| path.exists())
}

/// Returns what [`find`] finds, or the error that lists where it looked.
pub(crate) fn find_required(
    catalog: &'static Catalog,
    file: &'static FileSpec,
    dir: &Path,
) -> Result<PathBuf, DataError> {
    find(catalog, file, dir).ok_or_else(|| DataError::MissingFile {
        name: catalog.name,
        file: file.name,
        looked: candidates(catalog, file, dir),
    })
}

/// Reads a file and checks all of it. The content decides whether it is gzip, not the name.
///
/// The checksum alone would do for safety; the checks before it are there to say what is wrong.
pub(crate) fn read(catalog: &Catalog, file: &FileSpec, path: &Path) -> Result<Checked, DataError> {
    let bad = |problem, content_of| DataError::BadFile { path: path.to_path_buf(), problem, content_of };
    // Long enough for every file of the dataset, so that a swapped file is read to its end and recognised.
    let limit = catalog.files.iter().map(|file| file.bytes).max().unwrap_or(file.bytes);
    let handle = File::open(path).map_err(io_error("open", path))?;
    let stored_bytes = handle.metadata().map_err(io_error("read", path))?.len();
    let content = read_content(handle, path, limit)?;
    if content.len() as u64 > limit {
        return Err(bad(FileProblem::TooLong { expected: file.bytes, limit }, None));
    }
    let sha256 = hex::encode(Sha256::digest(&content));
    if let Err(problem) = check_form(file, &content) {
        let other = catalog.files.iter().find(|other| other.sha256 == sha256);
        return Err(bad(problem, other.map(|other| other.name)));
    }
    if sha256 != file.sha256 {
        return Err(bad(FileProblem::Checksum { expected: file.sha256, found: sha256 }, None));
    }
    Ok(Checked { content, stored_bytes })
}

/// Reads at most `limit + 1` bytes of uncompressed content, whatever a gzip stream would unpack to.
fn read_content(handle: File, path: &Path, limit: u64) -> Result<Vec<u8>, DataError> {
    const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
    let mut content = Vec::new();
    let mut reader = BufReader::new(handle);
    if reader.fill_buf().map_err(io_error("read", path))?.starts_with(&GZIP_MAGIC) {
        MultiGzDecoder::new(reader).take(limit + 1).read_to_end(&mut content).map_err(|error| DataError::BadFile {
            path: path.to_path_buf(),
            problem: FileProblem::Gzip { reason: error.to_string() },
            content_of: None,
        })?;
    } else {
        reader.take(limit + 1).read_to_end(&mut content).map_err(io_error("read", path))?;
    }
    Ok(content)
}

fn check_form(file: &FileSpec, content: &[u8]) -> Result<(), FileProblem> {
    let count = |what, expected, found| match expected == found {
        true => Ok(()),
        false => Err(FileProblem::Count { what, expected, found }),
    };
    match file.content {
        Content::Images { count: expected, height, width } => {
            let images = idx::read_images(content)?;
            count("images", expected, images.count)?;
            let found = (images.height, images.width);
            if found != (height, width) {
                return Err(FileProblem::Dimensions { expected: (height, width), found });
            }
        }
        Content::Labels { count: expected, classes } => {
            let labels = idx::read_labels(content)?;
            count("labels", expected, labels.len())?;
            if let Some((index, &found)) = labels.iter().enumerate().find(|&(_, &label)| usize::from(label) >= classes)
            {
                return Err(FileProblem::Label { index, found, classes });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toy::{file, gzip, toy};
    use std::fs;

    /// Reads the toy dataset with `bytes` in the place of file `index`.
    fn refused(index: usize, bytes: &[u8]) -> (FileProblem, Option<&'static str>, String) {
        let (catalog, _) = toy();
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("some-file.gz");
        fs::write(&path, bytes).expect("a file");
        let error = read(catalog, &catalog.files[index], &path).err().expect("a bad file");
        let text = error.to_string();
        assert!(text.starts_with(&path.display().to_string()), "{text}");
        match error {
            DataError::BadFile { problem, content_of, .. } => (problem, content_of, text),
            other => panic!("{other}"),
        }
    }

    #[test]
    fn good_files_are_read_whatever_their_name() {
        let (catalog, files) = toy();
        let folder = tempfile::tempdir().expect("a temporary folder");
        for spec in &catalog.files {
            let (packed, content) = (&files[&format!("/{}.gz", spec.name)], file(spec.content));
            for (name, bytes) in [("x.gz", packed), ("x", &content), ("y.gz", &content), ("y", packed)] {
                let path = folder.path().join(name);
                fs::write(&path, bytes).expect("a file");
                let checked = read(catalog, spec, &path).unwrap_or_else(|error| panic!("{error}"));
                assert!(checked.content == content && checked.stored_bytes == bytes.len() as u64);
            }
        }
    }

    #[test]
    fn truncated_files_are_refused() {
        let (catalog, files) = toy();
        let packed = &files["/a-labels.gz"];
        // In the gzip header, in the data, in the trailer.
        for end in [5, packed.len() / 2, packed.len() - 1] {
            let (problem, _, text) = refused(1, &packed[..end]);
            assert!(matches!(problem, FileProblem::Gzip { .. }) && text.contains("truncated"), "{end}: {text}");
        }
        let content = file(catalog.files[1].content);
        for end in [0, 3, 7, 8, 307] {
            assert!(matches!(refused(1, &content[..end]).0, FileProblem::Idx(_)), "{end}");
        }
        let (_, _, text) = refused(1, &content[..307]);
        assert!(text.ends_with("truncated: the header promises 308 bytes in all, found 307"), "{text}");
    }

    #[test]
    fn damaged_gzip_and_bytes_after_it_are_refused() {
        let (_, files) = toy();
        let mut packed = files["/a-images.gz"].clone();
        let middle = packed.len() / 2;
        packed[middle] ^= 0x10;
        assert!(matches!(refused(0, &packed).0, FileProblem::Gzip { .. }));
        let longer = [&files["/a-images.gz"][..], b"more"].concat();
        assert!(matches!(refused(0, &longer).0, FileProblem::Gzip { .. }));
    }

    #[test]
    fn a_gzip_bomb_is_not_unpacked() {
        let (catalog, _) = toy();
        let limit = catalog.files[0].bytes;
        let bomb = gzip(&vec![0; 100 << 20]);
        assert!(bomb.len() < 200_000);
        let (problem, _, text) = refused(1, &bomb);
        assert!(matches!(problem, FileProblem::TooLong { expected: 308, limit: found } if found == limit), "{text}");
        let (problem, _, _) = refused(0, &vec![0; 1 << 20]);
        assert!(matches!(problem, FileProblem::TooLong { .. }), "an uncompressed file is limited too");
    }

    #[test]
    fn swapped_files_are_recognised() {
        let (_, files) = toy();
        let (problem, content_of, text) = refused(0, &files["/a-labels.gz"]);
        assert!(matches!(problem, FileProblem::Idx(idx::IdxError::Magic { .. })));
        assert_eq!(content_of, Some("a-labels"));
        assert!(
            text.contains("found 0x00000801 (labels) (the content is that of a-labels: were files swapped?)"),
            "{text}"
        );
        let (problem, content_of, text) = refused(0, &files["/b-images.gz"]);
        assert!(matches!(problem, FileProblem::Count { what: "images", expected: 300, found: 50 }));
        assert!(content_of == Some("b-images") && text.contains("swapped"), "{text}");
        let (problem, content_of, _) = refused(3, &files["/a-labels.gz"]);
        assert!(matches!(problem, FileProblem::Count { what: "labels", expected: 50, found: 300 }));
        assert_eq!(content_of, Some("a-labels"));
    }

    #[test]
    fn wrong_sizes_labels_and_contents_are_told_apart() {
        let (catalog, _) = toy();
        let wide = file(Content::Images { count: 300, height: 14, width: 56 });
        let (problem, _, text) = refused(0, &gzip(&wide));
        assert!(matches!(problem, FileProblem::Dimensions { expected: (28, 28), found: (14, 56) }), "{text}");
        let mut labels = file(catalog.files[1].content);
        labels[8 + 123] = 10;
        let (problem, _, text) = refused(1, &labels);
        assert!(matches!(problem, FileProblem::Label { index: 123, found: 10, classes: 10 }), "{text}");
        let mut images = file(catalog.files[0].content);
        images[5000] ^= 1;
        let (problem, _, text) = refused(0, &images);
        assert!(matches!(problem, FileProblem::Checksum { .. }) && text.contains(catalog.files[0].sha256), "{text}");
    }

    #[test]
    fn a_missing_file_lists_every_place() {
        let (catalog, files) = toy();
        let folder = tempfile::tempdir().expect("a temporary folder");
        let error = find_required(catalog, &catalog.files[2], folder.path()).expect_err("an empty folder");
        let text = error.to_string();
        for place in ["b-images.gz", "b-images", "toy/b-images.gz", "toy/b-images"] {
            assert!(text.contains(&folder.path().join(place).display().to_string()), "{place} in {text}");
        }
        fs::create_dir(folder.path().join("toy")).expect("a folder");
        let path = folder.path().join("toy/b-images.gz");
        fs::write(&path, &files["/b-images.gz"]).expect("a file");
        assert_eq!(find_required(catalog, &catalog.files[2], folder.path()).expect("found"), path);
    }

    #[test]
    fn a_folder_in_the_place_of_a_file_is_an_error_of_the_system() {
        let (catalog, _) = toy();
        let folder = tempfile::tempdir().expect("a temporary folder");
        let error = read(catalog, &catalog.files[0], folder.path()).err().expect("no file");
        assert!(matches!(error, DataError::Io { .. }), "{error}");
    }
}
