//! The datasets that come as files: what each file must hold.

use crate::DataError;

/// Content of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// `count` images of `height` x `width` bytes, idx3.
    Images { count: usize, height: usize, width: usize },
    /// `count` labels below `classes`, idx1.
    Labels { count: usize, classes: usize },
}

/// One published file, known by its uncompressed content.
#[derive(Debug)]
pub(crate) struct FileSpec {
    /// File name without `.gz`.
    pub(crate) name: &'static str,
    /// Form of the content.
    pub(crate) content: Content,
    /// Uncompressed length in bytes.
    pub(crate) bytes: u64,
    /// SHA-256 of the uncompressed content, in hexadecimal.
    pub(crate) sha256: &'static str,
}

/// A dataset that comes as files.
#[derive(Debug)]
pub(crate) struct Catalog {
    /// Name in configurations and on the command line; also the name of its folder.
    pub(crate) name: &'static str,
    /// Its files: training images, training labels, test images, test labels.
    pub(crate) files: [FileSpec; 4],
    /// Folders on the web that hold `NAME.gz` for each file; each ends in `/`.
    pub(crate) mirrors: &'static [&'static str],
}

/// MNIST as published by LeCun, Cortes and Burges.
///
/// The SHA-256 values were computed from the files whose MD5 are the published ones: 6bbc9ace898e44ae57da46a324031adb
/// and a25bea736e30d166cdddb491f175f624 (train), 2646ac647ad5339dbf082846283269ea and
/// 27ae3e4e09519cfbb04c329615203637 (t10k).
pub(crate) static MNIST: Catalog = Catalog {
    name: "mnist",
    files: [
        FileSpec {
            name: "train-images-idx3-ubyte",
            content: Content::Images { count: 60_000, height: 28, width: 28 },
            bytes: 47_040_016,
            sha256: "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        },
        FileSpec {
            name: "train-labels-idx1-ubyte",
            content: Content::Labels { count: 60_000, classes: 10 },
            bytes: 60_008,
            sha256: "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        },
        FileSpec {
            name: "t10k-images-idx3-ubyte",
            content: Content::Images { count: 10_000, height: 28, width: 28 },
            bytes: 7_840_016,
            sha256: "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        },
        FileSpec {
            name: "t10k-labels-idx1-ubyte",
            content: Content::Labels { count: 10_000, classes: 10 },
            bytes: 10_008,
            sha256: "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
        },
    ],
    mirrors: &["https://storage.googleapis.com/cvdf-datasets/mnist/", "https://ossci-datasets.s3.amazonaws.com/mnist/"],
};

static ALL: &[&Catalog] = &[&MNIST];

/// Returns the catalog entry of a dataset.
pub(crate) fn find(name: &str) -> Result<&'static Catalog, DataError> {
    ALL.iter().copied().find(|catalog| catalog.name == name).ok_or_else(|| DataError::UnknownDataset {
        name: name.to_owned(),
        known: ALL.iter().map(|catalog| catalog.name).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        assert_eq!(find("mnist").expect("known").name, "mnist");
        let error = find("mnits").expect_err("a typing error");
        assert_eq!(error.to_string(), "unknown dataset `mnits`: expected mnist");
    }

    #[test]
    fn lengths_follow_from_the_form() {
        for file in &MNIST.files {
            let expected = match file.content {
                Content::Images { count, height, width } => 16 + count * height * width,
                Content::Labels { count, .. } => 8 + count,
            };
            assert_eq!(file.bytes, expected as u64, "{}", file.name);
            assert_eq!(file.sha256.len(), 64);
        }
    }
}
