//! The checks of one published file: compression, format, counts, labels, checksum.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;
use sha2::{Digest, Sha256};
use speed_core::open_regular;

use crate::catalog::{Catalog, Checksum, Content, FileSpec};
use crate::error::{bad_file, check_count, check_shape, io_error, join_paths};
use crate::split::check_labels;
use crate::{DataError, Split, cifar, idx, mat};

/// The content of a file that passed every check.
#[derive(Debug)]
pub(crate) enum Loaded {
    /// An uncompressed idx file.
    Idx(Vec<u8>),
    /// Images and labels of a half of the dataset, or of both.
    Splits(Vec<Split>),
}

impl Loaded {
    /// Returns the size of its uncompressed content in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Idx(content) => content.len() as u64,
            Self::Splits(splits) => {
                splits.iter().map(|split| (split.len() * (split.shape().pixels() + 1)) as u64).sum()
            }
        }
    }
}

/// Lists the possible paths of a file below `dir`, in order of preference: the dataset's own directory, then `dir`
/// itself, where another dataset may have files of the same names. In each, the published form comes before the
/// uncompressed one.
pub(crate) fn candidates(catalog: &Catalog, file: &FileSpec, dir: &Path) -> Vec<PathBuf> {
    let names = file.names();
    [dir.join(catalog.name), dir.to_path_buf()]
        .iter()
        .flat_map(|folder| names.iter().map(|name| folder.join(name)))
        .collect()
}

pub(crate) fn find(catalog: &Catalog, file: &FileSpec, dir: &Path) -> Option<PathBuf> {
    candidates(catalog, file, dir).into_iter().find(|path| path.exists())
}

/// Returns the result of [`find`], or an error that lists the paths searched.
pub(crate) fn find_required(
    catalog: &'static Catalog,
    file: &'static FileSpec,
    dir: &Path,
) -> Result<PathBuf, DataError> {
    find(catalog, file, dir).ok_or_else(|| {
        let (name, file, looked) = (catalog.name, file.name, join_paths(&candidates(catalog, file, dir)));
        let next = format!("get it with `speed data fetch {name}`");
        DataError::Other(format!("file {file} is missing; looked for {looked}; {next}"))
    })
}

/// Reads and checks a file completely. Its content, not its name, tells whether an idx file is compressed.
///
/// The checksum alone would suffice for safety; the checks before it explain the fault.
pub(crate) fn read(catalog: &Catalog, file: &FileSpec, path: &Path) -> Result<Loaded, DataError> {
    let handle = open_regular(path).map_err(io_error("open", path))?;
    let mut reader = BufReader::with_capacity(1 << 16, Hashed { handle, sha256: Sha256::new() });
    let mut of_content = String::new();
    let loaded = match file.content {
        Content::Images { .. } | Content::Labels { .. } => {
            // The limit is large enough for every file of the dataset, so a swapped file is read to its end and
            // recognised.
            let limit = catalog.files.iter().map(|file| file.bytes).max().unwrap_or(file.bytes);
            let content = read_content(&mut reader, path, limit)?;
            if content.len() as u64 > limit {
                let expected = format!("too long: expected {} bytes of content", file.bytes);
                return Err(bad_file(path, format!("{expected}, found more than {limit}")));
            }
            of_content = hex::encode(Sha256::digest(&content));
            check_form(file, &content).map(|()| Loaded::Idx(content))
        }
        Content::Svhn { count } => {
            let limit = (count * (catalog.shape.pixels() + 8) + (1 << 16)) as u64;
            let split = read_svhn(&mut reader, limit).and_then(|split| {
                check_count("images", count, split.len())?;
                check_shape(catalog.shape, split.shape()).map(|()| split)
            });
            split.map(|split| Loaded::Splits(vec![split]))
        }
        Content::Cifar { batch } => {
            cifar::read(&mut reader, catalog.shape, catalog.classes, batch).map(|halves| Loaded::Splits(halves.into()))
        }
    };
    // The checksum of the file covers its remaining bytes too; a longer file has another checksum.
    io::copy(&mut reader.by_ref().take(file.bytes), &mut io::sink()).map_err(io_error("read", path))?;
    let of_file = hex::encode(reader.into_inner().sha256.finalize());
    let is_of = |file: &FileSpec| match file.checksum {
        Checksum::OfContent(expected) => expected == of_content,
        Checksum::OfFile(expected) => expected == of_file,
        Checksum::Unknown => false,
    };
    let loaded = loaded.map_err(|problem| match catalog.files.iter().find(|other| is_of(other)) {
        Some(FileSpec { name, .. }) => {
            bad_file(path, format!("{problem} (the content is that of {name}: were files swapped?)"))
        }
        None => bad_file(path, problem),
    })?;
    if file.checksum != Checksum::Unknown && !is_of(file) {
        let found = if matches!(file.checksum, Checksum::OfFile(_)) { of_file } else { of_content };
        return Err(bad_file(path, format!("wrong checksum: expected {}, found {found}", file.checksum)));
    }
    Ok(loaded)
}

/// A file whose bytes are hashed as they are read.
struct Hashed {
    handle: File,
    sha256: Sha256,
}

impl Read for Hashed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.handle.read(buffer)?;
        self.sha256.update(&buffer[..count]);
        Ok(count)
    }
}

/// Reads at most `limit + 1` bytes of uncompressed content, even if a gzip stream contains more.
fn read_content(reader: &mut impl BufRead, path: &Path, limit: u64) -> Result<Vec<u8>, DataError> {
    const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
    let mut content = Vec::new();
    if reader.fill_buf().map_err(io_error("read", path))?.starts_with(&GZIP_MAGIC) {
        let read = MultiGzDecoder::new(reader).take(limit + 1).read_to_end(&mut content);
        read.map_err(|error| bad_file(path, format!("damaged or truncated gzip file: {error}")))?;
    } else {
        reader.take(limit + 1).read_to_end(&mut content).map_err(io_error("read", path))?;
    }
    Ok(content)
}

fn check_form(file: &FileSpec, content: &[u8]) -> Result<(), String> {
    match file.content {
        Content::Images { count, height, width } => {
            let images = idx::read_images(content).map_err(|error| error.to_string())?;
            check_count("images", count, images.count)?;
            if (images.height, images.width) != (height, width) {
                let found = format!("{}x{}", images.height, images.width);
                return Err(format!("wrong image size: expected {height}x{width}, found {found}"));
            }
        }
        Content::Labels { count, first, classes } => {
            let labels = idx::read_labels(content).map_err(|error| error.to_string())?;
            check_count("labels", count, labels.len())?;
            check_labels(labels, first, classes)?;
        }
        Content::Svhn { .. } | Content::Cifar { .. } => {}
    }
    Ok(())
}

/// Reads images and labels in SVHN's format, where label 10 is the digit 0; decompresses at most `limit` bytes.
pub(crate) fn read_svhn(reader: &mut impl BufRead, limit: u64) -> Result<Split, String> {
    const CLASSES: usize = 10;
    let images = mat::read_images(reader, limit).map_err(|error| error.to_string())?;
    let mat::MatImages { shape, pixels, mut labels } = images;
    check_labels(&labels, 1, CLASSES)?;
    labels.iter_mut().for_each(|label| *label %= 10);
    Ok(Split::new(shape, CLASSES, pixels, labels).expect("checked shape, counts and labels"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::toy::{file, gzip, toy};

    /// Reads `bytes` as file `index` of the toy dataset, and checks the fault in the error.
    #[track_caller]
    fn refused(index: usize, bytes: &[u8], words: &str) {
        let (catalog, _) = toy();
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("some-file.gz");
        fs::write(&path, bytes).expect("a file");
        let text = read(catalog, &catalog.files[index], &path).expect_err(words).to_string();
        let problem = text.strip_prefix(&format!("{}: ", path.display())).unwrap_or_else(|| panic!("{text}"));
        assert!(problem.contains(words), "{words:?} is not in {problem:?}");
    }

    #[test]
    fn good_files_are_read_whatever_their_name() {
        let (catalog, files) = toy();
        let folder = tempfile::tempdir().expect("a temporary folder");
        for spec in catalog.files {
            let (packed, content) = (&files[&format!("/{}.gz", spec.name)], file(spec.content));
            for (name, bytes) in [("x.gz", packed), ("x", &content), ("y.gz", &content), ("y", packed)] {
                let path = folder.path().join(name);
                fs::write(&path, bytes).expect("a file");
                let checked = read(catalog, spec, &path).unwrap_or_else(|error| panic!("{error}"));
                assert!(matches!(checked, Loaded::Idx(found) if found == content));
            }
        }
    }

    #[test]
    fn truncated_and_damaged_files_are_refused() {
        const GZIP: &str = "damaged or truncated gzip file: ";
        let (catalog, files) = toy();
        let mut packed = files["/a-labels.gz"].clone();
        // In the gzip header, in the data, in the trailer.
        for end in [5, packed.len() / 2, packed.len() - 1] {
            refused(1, &packed[..end], GZIP);
        }
        refused(1, &[&packed[..], b"more"].concat(), GZIP);
        let middle = packed.len() / 2;
        packed[middle] ^= 0x10;
        refused(1, &packed, GZIP);
        let content = file(catalog.files[1].content);
        for end in [0, 3, 7] {
            refused(1, &content[..end], "truncated header: expected 8 bytes, found ");
        }
        for end in [8, 307] {
            refused(1, &content[..end], &format!("truncated: the header promises 308 bytes in all, found {end}"));
        }
    }

    #[test]
    fn a_gzip_bomb_is_not_unpacked() {
        let (catalog, _) = toy();
        let limit = catalog.files[0].bytes;
        let bomb = gzip(&vec![0; 100 << 20]);
        assert!(bomb.len() < 200_000);
        refused(1, &bomb, &format!("too long: expected 308 bytes of content, found more than {limit}"));
        // An uncompressed file is limited too.
        refused(0, &vec![0; 1 << 20], "too long: ");
    }

    #[test]
    fn swapped_files_are_recognised() {
        let (_, files) = toy();
        let hint = |name: &str| format!(" (the content is that of {name}: were files swapped?)");
        refused(0, &files["/a-labels.gz"], &format!("found 0x00000801 (labels){}", hint("a-labels")));
        let count = "wrong number of images: expected 300, found 50";
        refused(0, &files["/b-images.gz"], &format!("{count}{}", hint("b-images")));
        let count = "wrong number of labels: expected 50, found 300";
        refused(3, &files["/a-labels.gz"], &format!("{count}{}", hint("a-labels")));
    }

    #[test]
    fn wrong_sizes_labels_and_contents_are_told_apart() {
        let (catalog, _) = toy();
        let wide = file(Content::Images { count: 300, height: 14, width: 56 });
        refused(0, &gzip(&wide), "wrong image size: expected 28x28, found 14x56");
        let mut labels = file(catalog.files[1].content);
        labels[8 + 123] = 10;
        refused(1, &labels, "label 123: expected 0 to 9, found 10");
        let mut images = file(catalog.files[0].content);
        images[5000] ^= 1;
        refused(0, &images, &format!("wrong checksum: expected {}, found ", catalog.files[0].checksum));
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
    fn a_folder_or_a_pipe_in_the_place_of_a_file_is_refused_at_once() {
        let (catalog, _) = toy();
        let folder = tempfile::tempdir().expect("a temporary folder");
        let refused = |path: &Path| read(catalog, &catalog.files[0], path).expect_err("no file").to_string();
        assert!(refused(folder.path()).contains("it is not a regular file"));
        #[cfg(unix)]
        {
            let pipe = folder.path().join("pipe");
            let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo");
            assert!(made.success() && refused(&pipe).contains("it is not a regular file"));
        }
    }
}
