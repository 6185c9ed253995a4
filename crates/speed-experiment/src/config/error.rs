//! Faults of configs, and their places.

use std::path::{Path, PathBuf};

use speed_core::printable_path;

/// A config that cannot run. The message names the file, the line where there is one, the key, and what is allowed.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file could not be read.
    #[error("cannot read config {}: {source}{}", printable_path(path), meant(instead.as_deref()))]
    Read {
        /// The file.
        path: PathBuf,
        /// The config that was probably meant.
        instead: Option<PathBuf>,
        /// The system's word.
        source: std::io::Error,
    },
    /// The text is not TOML.
    #[error("{place}: not valid TOML: {message}")]
    Syntax {
        /// `file:line`.
        place: String,
        /// The parser's words.
        message: String,
    },
    /// A key is unknown, has the wrong type or a value that is not allowed, alone or beside others.
    #[error("{place}: key `{key}`: {message}")]
    Key {
        /// `file:line`, `--set`, or the file where the key is left to its default.
        place: String,
        /// The dotted path of the key.
        key: String,
        /// Found and allowed values.
        message: String,
    },
}

fn meant(instead: Option<&Path>) -> String {
    instead.map_or_else(String::new, |path| format!("; did you mean {}?", printable_path(path)))
}
