//! Errors of the file system, as quoted in messages.

use std::io::Error;

/// Returns a file system error without the path that the library `tempfile` appends to it, because a message names its
/// file once, and never a temporary one.
pub fn without_path(error: Error) -> Error {
    let text = error.to_string();
    // The system's error is inside a private type, so its text is used.
    match text.split_once(" at path \"") {
        Some((words, _)) if error.get_ref().is_some() => Error::new(error.kind(), words.to_owned()),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_a_temporary_file_is_left_out() {
        let error = tempfile::NamedTempFile::new_in("/nonexistent folder").expect_err("no folder");
        assert!(error.to_string().contains("/nonexistent folder"), "{error}");
        let plain = without_path(error);
        assert!(!plain.to_string().contains('/') && plain.kind() == std::io::ErrorKind::NotFound, "{plain}");
        assert_eq!(without_path(Error::other("words")).to_string(), "words");
    }
}
