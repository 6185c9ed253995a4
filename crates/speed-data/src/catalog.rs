//! The datasets that are published as files, with the required content of each file.

use std::fmt;

use speed_core::printable;

use crate::{DataError, ImageShape, cifar};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// `count` images of `height` x `width` bytes, idx3.
    Images { count: usize, height: usize, width: usize },
    /// `count` labels of `classes` classes, numbered from `first`, idx1.
    Labels { count: usize, first: u8, classes: usize },
    /// `count` images and labels of SVHN, MATLAB 5.
    Svhn { count: usize },
    /// Training and test images of CIFAR-10, a compressed archive of batches of `batch` images.
    Cifar { batch: usize },
}

impl Content {
    /// Returns the number of labelled images that are complete after this file, for each half.
    pub(crate) fn images(&self) -> Vec<usize> {
        match *self {
            Self::Images { .. } => Vec::new(),
            Self::Labels { count, .. } | Self::Svhn { count } => vec![count],
            Self::Cifar { batch } => vec![cifar::TRAINING.len() * batch, batch],
        }
    }
}

/// The known SHA-256 of a file, in hexadecimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksum {
    /// The SHA-256 of the uncompressed content; the file may be compressed or not.
    OfContent(&'static str),
    /// The SHA-256 of the file as published.
    OfFile(&'static str),
    /// No published checksum.
    Unknown,
}

impl Checksum {
    /// Returns the SHA-256 in hexadecimal.
    pub fn sha256(self) -> Option<&'static str> {
        match self {
            Self::OfContent(sha256) | Self::OfFile(sha256) => Some(sha256),
            Self::Unknown => None,
        }
    }
}

impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OfContent(sha256) => write!(f, "SHA-256 of the uncompressed content {sha256}"),
            Self::OfFile(sha256) => write!(f, "SHA-256 of the file {sha256}"),
            Self::Unknown => f.write_str("no checksum is published"),
        }
    }
}

/// One published file.
#[derive(Debug)]
pub(crate) struct FileSpec {
    /// File name without `.gz`.
    pub(crate) name: &'static str,
    pub(crate) content: Content,
    /// Size in bytes: of idx files uncompressed, of other files as published.
    pub(crate) bytes: u64,
    pub(crate) checksum: Checksum,
}

impl FileSpec {
    /// Returns whether the file is or may be compressed with gzip.
    pub(crate) fn is_idx(&self) -> bool {
        matches!(self.content, Content::Images { .. } | Content::Labels { .. })
    }

    pub(crate) fn stored_name(&self) -> String {
        if self.is_idx() { format!("{}.gz", self.name) } else { self.name.to_owned() }
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let mut names = vec![self.stored_name()];
        // The checksum of the compressed file cannot check the uncompressed one.
        let may_be_unpacked = self.is_idx() && !matches!(self.checksum, Checksum::OfFile(_));
        names.extend(may_be_unpacked.then(|| self.name.to_owned()));
        names
    }
}

/// A dataset that is published as files.
#[derive(Debug)]
pub(crate) struct Catalog {
    /// Name in configurations and on the command line; also the name of its directory.
    pub(crate) name: &'static str,
    pub(crate) shape: ImageShape,
    pub(crate) classes: usize,
    /// Whether rows and columns of its images are swapped, as in EMNIST's files.
    pub(crate) is_turned: bool,
    /// Its files: training images, training labels, test images, test labels; or files that hold several of these, in
    /// this order.
    pub(crate) files: &'static [FileSpec],
    /// Web directories that hold each file as published; each ends in `/`.
    pub(crate) mirrors: &'static [&'static str],
    /// The web archive with its files, if they are not published one by one.
    pub(crate) archive: &'static str,
}

const GREY: ImageShape = ImageShape { channels: 1, height: 28, width: 28 };
const COLOUR: ImageShape = ImageShape { channels: 3, height: 32, width: 32 };

const fn images(name: &'static str, count: usize, checksum: Checksum) -> FileSpec {
    let ImageShape { height, width, .. } = GREY;
    let bytes = 16 + (count * height * width) as u64;
    FileSpec { name, content: Content::Images { count, height, width }, bytes, checksum }
}

const fn labels(name: &'static str, count: usize, [first, classes]: [usize; 2], checksum: Checksum) -> FileSpec {
    let content = Content::Labels { count, first: first as u8, classes };
    FileSpec { name, content, bytes: 8 + count as u64, checksum }
}

pub(crate) const fn empty(shape: ImageShape) -> Catalog {
    Catalog { name: "", shape, classes: 10, is_turned: false, files: &[], mirrors: &[], archive: "" }
}

const fn four(
    names: [&'static str; 4],
    [train, test]: [usize; 2],
    classes: [usize; 2],
    sums: [Checksum; 4],
) -> [FileSpec; 4] {
    [
        images(names[0], train, sums[0]),
        labels(names[1], train, classes, sums[1]),
        images(names[2], test, sums[2]),
        labels(names[3], test, classes, sums[3]),
    ]
}

const fn like_mnist(checksums: [Checksum; 4]) -> [FileSpec; 4] {
    let names =
        ["train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"];
    four(names, [60_000, 10_000], [0, 10], checksums)
}

/// MNIST as published by LeCun, Cortes and Burges.
///
/// The SHA-256 values were computed from the files whose MD5 are the published ones: 6bbc9ace898e44ae57da46a324031adb
/// and a25bea736e30d166cdddb491f175f624 (train), 2646ac647ad5339dbf082846283269ea and
/// 27ae3e4e09519cfbb04c329615203637 (t10k).
pub(crate) static MNIST: Catalog = Catalog {
    name: "mnist",
    files: &like_mnist([
        Checksum::OfContent("ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"),
        Checksum::OfContent("65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"),
        Checksum::OfContent("0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"),
        Checksum::OfContent("ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"),
    ]),
    mirrors: &["https://storage.googleapis.com/cvdf-datasets/mnist/", "https://ossci-datasets.s3.amazonaws.com/mnist/"],
    ..empty(GREY)
};

/// Fashion-MNIST (Xiao, Rasul and Vollgraf, 2017).
static FASHION_MNIST: Catalog = Catalog {
    name: "fashion-mnist",
    files: &like_mnist([
        Checksum::OfFile("3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"),
        Checksum::OfFile("a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"),
        Checksum::OfFile("346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"),
        Checksum::OfFile("67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"),
    ]),
    mirrors: &["http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"],
    ..empty(GREY)
};

/// Kuzushiji-MNIST (Clanuwat et al., 2018).
static KMNIST: Catalog = Catalog {
    name: "kmnist",
    files: &like_mnist([
        Checksum::OfFile("51467d22d8cc72929e2a028a0428f2086b092bb31cfb79c69cc0a90ce135fde4"),
        Checksum::OfFile("e38f9ebcd0f3ebcdec7fc8eabdcdaef93bb0df8ea12bee65224341c8183d8e17"),
        Checksum::OfFile("edd7a857845ad6bb1d0ba43fe7e794d164fe2dce499a1694695a792adfac43c5"),
        Checksum::OfFile("20bb9a0ef54c7db3efc55a92eef5582c109615df22683c380526788f98e42a1c"),
    ]),
    mirrors: &["http://codh.rois.ac.jp/kmnist/dataset/kmnist/"],
    ..empty(GREY)
};

/// A part of EMNIST (Cohen et al., 2017), which is published as one archive; the single files have no published checksums.
macro_rules! emnist {
    ($name:literal, $numbers:expr, [$first:literal, $classes:literal]) => {
        Catalog {
            name: $name,
            classes: $classes,
            is_turned: true,
            files: &four(
                [
                    concat!($name, "-train-images-idx3-ubyte"),
                    concat!($name, "-train-labels-idx1-ubyte"),
                    concat!($name, "-test-images-idx3-ubyte"),
                    concat!($name, "-test-labels-idx1-ubyte"),
                ],
                $numbers,
                [$first, $classes],
                [Checksum::Unknown; 4],
            ),
            archive: "https://biometrics.nist.gov/cs_links/EMNIST/gzip.zip",
            ..empty(GREY)
        }
    };
}

static EMNIST_DIGITS: Catalog = emnist!("emnist-digits", [240_000, 40_000], [0, 10]);

/// The files number the letters from 1.
static EMNIST_LETTERS: Catalog = emnist!("emnist-letters", [124_800, 20_800], [1, 26]);

/// Digits and letters of EMNIST, with similar ones merged.
static EMNIST_BALANCED: Catalog = emnist!("emnist-balanced", [112_800, 18_800], [0, 47]);

/// The cropped digits of SVHN (Netzer et al., 2011).
static SVHN: Catalog = Catalog {
    name: "svhn",
    files: &[
        FileSpec {
            name: "train_32x32.mat",
            content: Content::Svhn { count: 73_257 },
            bytes: 182_040_794,
            checksum: Checksum::OfFile("435e94d69a87fde4fd4d7f3dd208dfc32cb6ae8af2240d066de1df7508d083b8"),
        },
        FileSpec {
            name: "test_32x32.mat",
            content: Content::Svhn { count: 26_032 },
            bytes: 64_275_384,
            checksum: Checksum::OfFile("cdce80dfb2a2c4c6160906d0bd7c68ec5a99d7ca4831afa54f09182025b6a75b"),
        },
    ],
    mirrors: &["http://ufldl.stanford.edu/housenumbers/"],
    ..empty(COLOUR)
};

/// CIFAR-10 (Krizhevsky, 2009) in the version for C programs.
static CIFAR10: Catalog = Catalog {
    name: "cifar-10",
    files: &[FileSpec {
        name: "cifar-10-binary.tar.gz",
        content: Content::Cifar { batch: 10_000 },
        bytes: 170_052_171,
        checksum: Checksum::OfFile("c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"),
    }],
    mirrors: &["https://www.cs.toronto.edu/~kriz/"],
    ..empty(COLOUR)
};

static ALL: &[&Catalog] =
    &[&MNIST, &FASHION_MNIST, &KMNIST, &EMNIST_DIGITS, &EMNIST_LETTERS, &EMNIST_BALANCED, &SVHN, &CIFAR10];

pub(crate) fn find(name: &str) -> Result<&'static Catalog, DataError> {
    ALL.iter().copied().find(|catalog| catalog.name == name).ok_or_else(|| {
        let known: Vec<&str> = ALL.iter().map(|catalog| catalog.name).collect();
        DataError::Other(format!("unknown dataset `{}`: expected {}", printable(name), known.join(" or ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        assert_eq!(find("mnist").expect("known").name, "mnist");
        let error = find("mnits").expect_err("a typing error");
        assert!(
            error.to_string().starts_with("unknown dataset `mnits`: expected mnist or fashion-mnist or"),
            "{error}"
        );
    }

    #[test]
    fn checksums_and_names_are_unique() {
        let mut seen = std::collections::HashSet::new();
        for file in ALL.iter().flat_map(|catalog| catalog.files) {
            if let Checksum::OfContent(sha256) | Checksum::OfFile(sha256) = file.checksum {
                assert!(sha256.len() == 64 && seen.insert(sha256), "{}", file.name);
            }
        }
        assert_eq!(MNIST.files[0].names(), ["train-images-idx3-ubyte.gz", "train-images-idx3-ubyte"]);
        assert_eq!(KMNIST.files[0].names(), ["train-images-idx3-ubyte.gz"]);
        assert_eq!(SVHN.files[1].names(), ["test_32x32.mat"]);
    }
}
