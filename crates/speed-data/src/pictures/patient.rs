//! The patient of a picture.

use std::path::Path;

use speed_core::read_regular;

use super::files::MAX_FILE;
use super::kind::{Format, not_read};
use crate::DataError;
use crate::error::{bad_file, io_error};

/// Returns the patient id of a DICOM file, its element (0010,0020). Reading it needs the feature `dicom`. No error contains the id.
///
/// # Errors
/// If the file is not DICOM, or has no patient id.
pub fn patient_id(path: &Path) -> Result<String, DataError> {
    let bytes = read_regular(path, MAX_FILE).map_err(io_error("read", path))?;
    let id = match Format::detect(&bytes) {
        #[cfg(feature = "dicom")]
        Some(Format::Dicom) => super::dicom::patient_id(&bytes),
        Some(Format::Other(what)) => Err(not_read(what)),
        _ => Err(
            "expected a DICOM file with a patient id, found a picture without one; give a CSV file with the columns file and patient"
                .to_owned(),
        ),
    };
    id.map_err(|fault| bad_file(path, fault))
}
