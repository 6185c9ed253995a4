//! Errors of the file system, as messages quote them.

use std::io::Error;

/// Returns an error of the file system without the path that a library added to it: a message names its file once, and no temporary one.
#[must_use]
pub fn without_path(error: Error) -> Error {
    let inner = error.get_ref().and_then(|wrapped| wrapped.source()).and_then(|source| source.downcast_ref::<Error>());
    inner.and_then(Error::raw_os_error).map_or(error, Error::from_raw_os_error)
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
