//! Faults of configs, with their positions.

use std::path::{Path, PathBuf};

use speed_core::printable_path;

/// A config that cannot run. The message names the file, the line if known, the key and the allowed values.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file could not be read.
    #[error("cannot read config {}: {source}{}", printable_path(path), meant(instead.as_deref()))]
    Read {
        /// The file.
        path: PathBuf,
        /// The config with the most similar name.
        instead: Option<PathBuf>,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// The text is not TOML.
    #[error("{place}: not valid TOML: {message}")]
    Syntax {
        /// `file:line`.
        place: String,
        /// The parser's message.
        message: String,
    },
    /// A key is unknown or has a wrong type, a value that is not allowed, or one that contradicts other keys.
    #[error("{place}: key `{key}`: {message}")]
    Key {
        /// `file:line`, `--set`, or only the file if the key has its default.
        place: String,
        /// The dotted path of the key.
        key: String,
        /// The found and the allowed values.
        message: String,
    },
}

fn meant(instead: Option<&Path>) -> String {
    instead.map_or_else(String::new, |path| format!("; did you mean {}?", printable_path(path)))
}
