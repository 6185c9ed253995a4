//! The rule for patients: `data.patients`.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use speed_core::composed;
use speed_data::pictures::patient_id;

/// The rule that gives the patient of every image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatientRule {
    /// The part of the file's name before the first occurrence of this text.
    Prefix(String),
    /// A CSV file with the columns `file` and `patient`. A file is named by its path in the directory of the images, or by its
    /// own name if no other image has it; an image of an array is named by its position from 0.
    File(PathBuf),
    /// The patient id of DICOM files.
    Dicom,
}

impl FromStr for PatientRule {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match (text.strip_prefix("prefix:"), text) {
            (Some(""), _) => {
                Err("expected the text after the patient in the names of files, as in prefix:_, found none")
            }
            (Some(separator), _) => Ok(Self::Prefix(separator.to_owned())),
            (None, "dicom") => Ok(Self::Dicom),
            (None, "") => Err("expected prefix:SEPARATOR, a CSV file or dicom, found nothing"),
            (None, path) => Ok(Self::File(path.into())),
        }
    }
}

impl PatientRule {
    /// Returns the patient of an image in a directory; `None` if its name has no patient, or another file names it.
    pub(crate) fn of_image(&self, path: &Path) -> Option<String> {
        match self {
            Self::Prefix(separator) => before_separator(&path.file_name()?.to_string_lossy(), separator).map(composed),
            Self::File(_) => None,
            Self::Dicom => patient_id(path).ok().map(|id| composed(&id)),
        }
    }
}

pub(crate) fn before_separator<'a>(name: &'a str, separator: &str) -> Option<&'a str> {
    name.split_once(separator).map(|(prefix, _)| prefix).filter(|prefix| !prefix.is_empty())
}
