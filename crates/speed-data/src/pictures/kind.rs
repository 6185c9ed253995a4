//! The kinds of files in the directory of a class, recognised by their first bytes.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use speed_core::open_regular;

use crate::DataError;
use crate::error::io_error;

/// Number of bytes that distinguish all formats.
const HEAD: u64 = 352;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Png,
    Jpeg,
    #[cfg(feature = "dicom")]
    Dicom,
    Other(&'static str),
}

impl Format {
    /// Returns the format of a file with these first bytes, or `None` if it is not a picture.
    pub(super) fn detect(bytes: &[u8]) -> Option<Self> {
        Some(match bytes {
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Self::Png,
            [0xff, 0xd8, 0xff, ..] => Self::Jpeg,
            #[cfg(feature = "dicom")]
            _ if bytes.get(128..132) == Some(b"DICM") => Self::Dicom,
            _ => Self::Other(other(bytes)?),
        })
    }
}

/// A DICOM picture if the program does not read it, with the next step.
const DICOM: &str = "a DICOM picture; use the program of a release, or build it with `--features dicom`";
/// A NIfTI volume, with the next step.
const NIFTI: &str = "a NIfTI volume; save its slices as PNG pictures";

fn other(bytes: &[u8]) -> Option<&'static str> {
    let starts = [
        (&b"GIF8"[..], "a GIF picture"),
        (b"II*\0", "a TIFF or camera's raw picture"),
        (b"MM\0*", "a TIFF or camera's raw picture"),
        (b"II+\0", "a TIFF picture"),
        (b"MM\0+", "a TIFF picture"),
        (b"\0\0\0\x0cJXL \r\n\x87\n", "a JPEG XL picture"),
        (b"\xff\x0a", "a JPEG XL picture"),
        (b"\0\0\0\x0cjP  \r\n\x87\n", "a JPEG 2000 picture"),
        (b"\xff\x4f\xff\x51", "a JPEG 2000 picture"),
        (b"8BPS", "a Photoshop picture"),
        (b"\x76\x2f\x31\x01", "an OpenEXR picture"),
        (b"DDS ", "a DDS picture"),
        (b"qoif", "a QOI picture"),
        (b"farbfeld", "a farbfeld picture"),
        (b"\x8aMNG\r\n\x1a\n", "an MNG picture"),
        (b"\0\0\x01\0", "an icon"),
        (b"#?RADIANCE", "a Radiance picture"),
        (b"FUJIFILMCCD-RAW", "a camera's raw picture"),
        (b"NRRD000", "an NRRD volume"),
        (b"ObjectType = Image", "a MetaImage volume"),
        (b"\x93NUMPY", "a NumPy array"),
        (b"PK\x03\x04", "an archive (zip)"),
        (b"\x1f\x8b", "a compressed file (gzip)"),
        (b"\xfd7zXZ\0", "a compressed file (xz)"),
        (b"\x28\xb5\x2f\xfd", "a compressed file (zstd)"),
        (b"BZh", "a compressed file (bzip2)"),
        (b"7z\xbc\xaf\x27\x1c", "an archive (7z)"),
        (b"Rar!\x1a\x07", "an archive (rar)"),
    ];
    // These marks decide before the first bytes, because DICOM and NIfTI leave the first bytes to other formats.
    let within = [
        (128, &b"DICM"[..], DICOM),
        (344, b"n+1\0", NIFTI),
        (344, b"ni1\0", NIFTI),
        (4, b"n+2\0\r\n\x1a\n", NIFTI),
        (4, b"ni2\0\r\n\x1a\n", NIFTI),
        (257, b"ustar", "an archive (tar)"),
    ];
    let is_there =
        |(place, word, _): &(usize, &[u8], &str)| bytes.get(*place..).is_some_and(|rest| rest.starts_with(word));
    if let Some((_, _, name)) = within.into_iter().find(is_there) {
        return Some(name);
    }
    if let Some((_, name)) = starts.into_iter().find(|(start, _)| bytes.starts_with(start)) {
        return Some(name);
    }
    match bytes {
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("a WebP picture"),
        [_, _, _, _, b'f', b't', b'y', b'p', brand @ ..] => match brand.get(..4)? {
            b"avif" | b"avis" => Some("an AVIF picture"),
            b"heic" | b"heix" | b"hevc" | b"hevx" | b"heim" | b"heis" | b"mif1" | b"msf1" => Some("a HEIF picture"),
            b"crx " => Some("a camera's raw picture"),
            _ => None,
        },
        // Also requires the reserved bytes and the length of a known header, because text may begin with BM too.
        [b'B', b'M', _, _, _, _, 0, 0, 0, 0, _, _, _, _, 12 | 40 | 52 | 56 | 64 | 108 | 124, 0, 0, 0, ..] => {
            Some("a BMP picture")
        }
        [b'P', b'1'..=b'7', space, rest @ ..] if space.is_ascii_whitespace() => {
            let next = rest.trim_ascii_start().first()?;
            let is_head = next.is_ascii_digit() || *next == b'#' || rest.starts_with(b"WIDTH");
            is_head.then_some("a PNM picture")
        }
        _ => None,
    }
}

pub(super) fn not_read(what: &str) -> String {
    let pictures = if cfg!(feature = "dicom") { "PNG, JPEG or DICOM" } else { "PNG or JPEG" };
    format!("expected {pictures} pictures in a class's folder, found {what}")
}

/// The kind of a file in the directory of a class.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Picture,
    /// An unsupported picture or a directory, which must not be skipped silently.
    NotRead(&'static str),
    /// Notes and lists.
    Other,
    /// Files of operating systems, and hidden ones.
    Hidden,
}

/// Returns the kind of a file by its first bytes, or by its name if the bytes are of no known format.
pub(super) fn kind(path: &Path, name: &str) -> Result<Kind, DataError> {
    let metadata = match fs::metadata(path) {
        // A link to a missing file.
        Err(error) if name.starts_with('.') && error.kind() == io::ErrorKind::NotFound => return Ok(Kind::Hidden),
        metadata => metadata.map_err(io_error("read", path))?,
    };
    let is_hidden = name.starts_with('.') || OF_SYSTEMS.contains(&&*name.to_ascii_lowercase());
    if metadata.is_dir() || !metadata.is_file() {
        let what = if metadata.is_dir() { "a folder" } else { "neither a file nor a folder" };
        return Ok(if is_hidden { Kind::Hidden } else { Kind::NotRead(what) });
    }
    let mut head = Vec::new();
    open_regular(path).and_then(|file| file.take(HEAD).read_to_end(&mut head)).map_err(io_error("read", path))?;
    let ending = path.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
    Ok(match (Format::detect(&head), ending.as_deref()) {
        // Its owner may not know that the picture is hidden, so it is reported as skipped.
        (Some(_), _) if is_hidden => Kind::Other,
        _ if is_hidden => Kind::Hidden,
        (Some(Format::Png | Format::Jpeg), _) => Kind::Picture,
        #[cfg(feature = "dicom")]
        (Some(Format::Dicom), _) => Kind::Picture,
        // The mark is within the compressed file.
        _ if name.to_ascii_lowercase().ends_with(".nii.gz") => Kind::NotRead(NIFTI),
        (Some(Format::Other(what)), _) => Kind::NotRead(what),
        // The decoder will explain the fault.
        (None, Some("png" | "apng" | "jpg" | "jpeg" | "jpe" | "jfif" | "jif" | "jfi")) => Kind::Picture,
        (None, Some(ending)) if OTHERS.contains(&ending) => Kind::NotRead("a picture in another format or an archive"),
        (None, _) => Kind::Other,
    })
}

/// Files and directories, in small letters, that operating systems and network storage leave among pictures.
const OF_SYSTEMS: [&str; 10] = [
    "thumbs.db",
    "desktop.ini",
    "icon\r",
    "__macosx",
    "@eadir",
    "#recycle",
    "@recycle",
    "$recycle.bin",
    "system volume information",
    "lost+found",
];

/// File extensions of unsupported pictures and of archives.
const OTHERS: [&str; 42] = [
    "dcm", "dicom", "nii", "mha", "mhd", "nrrd", "nhdr", "npy", "npz", "zip", "tar", "tgz", "gz", "7z", "rar", "xz",
    "avif", "bmp", "cr2", "cr3", "dng", "exr", "gif", "heic", "heif", "hif", "j2k", "jp2", "jxl", "nef", "pam", "pbm",
    "pgm", "pnm", "ppm", "psd", "svg", "tga", "tif", "tiff", "webp", "arw",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_told_by_their_first_bytes() {
        let other = |bytes: &[u8]| match Format::detect(bytes) {
            Some(Format::Other(what)) => what,
            found => panic!("{found:?} of {bytes:?}"),
        };
        for (bytes, name) in [
            (&b"RIFF\x24\0\0\0WEBPVP8 "[..], "WebP"),
            (b"\0\0\0\x18ftypheic\0\0\0\0", "HEIF"),
            (b"\0\0\0\x20ftypavif\0\0\0\0", "AVIF"),
            (b"GIF89a", "GIF"),
            (b"BM\x46\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0", "BMP"),
            (b"MM\0*\0\0\0\x08", "TIFF"),
            (b"P5\n4 3\n255\n", "PNM"),
            (b"P6 # made by hand\n4 3", "PNM"),
            (b"P7\nWIDTH 4\n", "PNM"),
            (&[&[0; 344][..], b"n+1\0"].concat(), "NIfTI volume; save its slices"),
            (&[&[0; 344][..], b"ni1\0"].concat(), "NIfTI"),
            (b"\x1c\x02\0\0n+2\0\r\n\x1a\n", "NIfTI"),
            (b"NRRD0004\n", "NRRD"),
            (b"ObjectType = Image\nNDims = 2", "MetaImage"),
            (b"\x93NUMPY\x01\0", "NumPy"),
            (b"PK\x03\x04\x14\0", "zip"),
            (b"\x1f\x8b\x08\0", "gzip"),
        ] {
            assert!(other(bytes).contains(name), "{name}: {bytes:?}");
        }
        for text in [&b"BMW cars of 1998 and their colours"[..], b"P1 was first", b"", b"no picture", b"\xff\xd8"] {
            assert_eq!(Format::detect(text), None, "{text:?}");
        }
    }

    #[test]
    #[cfg(not(feature = "dicom"))]
    fn dicom_is_refused_with_the_next_step_whatever_the_name_and_the_first_bytes() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for (name, start) in [("a.dcm", &b""[..]), ("IM0001", b""), ("a.png", b"II*\0"), ("a.txt", b"\x1f\x8b")] {
            let mut bytes = start.to_vec();
            bytes.resize(128, 0);
            bytes.extend(b"DICM\x02\0");
            let path = folder.path().join(name);
            fs::write(&path, bytes).expect("a file");
            assert_eq!(kind(&path, name).expect("readable"), Kind::NotRead(DICOM), "{name}");
            let error = crate::pictures::patient_id(&path).expect_err("no reader").to_string();
            assert!(error.contains(name) && error.contains(DICOM), "{error}");
        }
        assert!(DICOM.contains("release") && DICOM.contains("`--features dicom`"));
    }

    #[test]
    fn names_count_where_bytes_tell_nothing() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let found = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            fs::write(&path, bytes).expect("a file");
            kind(&path, name).expect("readable")
        };
        let jpeg = b"\xff\xd8\xff\xe0";
        for name in ["a", "a.jfif", "a.jpe", "a.png", "a.txt", "a.gif"] {
            assert_eq!(found(name, jpeg), Kind::Picture, "{name}");
        }
        assert_eq!(found("a.jfif", b""), Kind::Picture);
        assert_eq!(found("a.pgm", b""), Kind::NotRead("a picture in another format or an archive"));
        assert_eq!(found("a.dcm", b"12"), Kind::NotRead("a picture in another format or an archive"));
        assert_eq!(found("a.NII.gz", b"\x1f\x8b\x08\0"), Kind::NotRead(NIFTI));
        assert_eq!(found("a.png", b"GIF89a"), Kind::NotRead("a GIF picture"));
        assert_eq!(found("labels.csv", b"1,2"), Kind::Other);
        for name in [".DS_Store", "._a.jpg", "Thumbs.db", "desktop.ini"] {
            assert_eq!(found(name, b"\0\x05\x16\x07"), Kind::Hidden, "{name}");
        }
        assert_eq!(found(".a.jpg", jpeg), Kind::Other);
        for name in ["__MACOSX", "@eaDir", "#recycle", "lost+found"] {
            fs::create_dir(folder.path().join(name)).expect("a folder");
            assert_eq!(kind(&folder.path().join(name), name).expect("readable"), Kind::Hidden, "{name}");
        }
        fs::create_dir(folder.path().join("more")).expect("a folder");
        assert_eq!(kind(&folder.path().join("more"), "more").expect("readable"), Kind::NotRead("a folder"));
    }
}
