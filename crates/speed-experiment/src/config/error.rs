//! What can be wrong with a config, and where.

use std::path::PathBuf;

/// A config that cannot run. The message names the file, the line where there is one, the key, and what is allowed.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file could not be read.
    #[error("cannot read config {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
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
        /// What was found and what is allowed.
        message: String,
    },
}
