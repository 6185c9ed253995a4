//! The program that works on a stage. All shards of a stage must run the same program, unless programs may be mixed.

use std::fs::File;
use std::path::Path;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::layout::name_of;
use super::read::read_small;
use crate::error::ExperimentError;

/// The file that identifies the program that began a stage, in the stage's directory.
pub(super) const FILE: &str = "program.json";

/// A program, identified by the bytes of its executable.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Program {
    speed: String,
    /// The SHA-256 of the executable; empty if it cannot be read.
    sha256: String,
}

impl Program {
    pub(super) fn current() -> &'static Self {
        static CURRENT: OnceLock<Program> = OnceLock::new();
        CURRENT
            .get_or_init(|| Self { speed: env!("CARGO_PKG_VERSION").to_owned(), sha256: digest().unwrap_or_default() })
    }

    /// Returns the content of [`FILE`] for this program.
    pub(super) fn to_json(&self) -> String {
        // An object of strings can always be written as JSON.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// Fails if another program began the stage, or the file is missing or invalid. The error names both programs.
    pub(super) fn check(&self, stage: &Path) -> Result<(), ExperimentError> {
        let path = stage.join(FILE);
        let bytes = read_small(&path).map_err(ExperimentError::io("read", &path))?;
        let first: Self = serde_json::from_slice(&bytes)
            .map_err(|error| ExperimentError::not_ours(&path, &bytes, &error, &name_of(stage)))?;
        if first == *self || first.sha256.is_empty() || self.sha256.is_empty() {
            return Ok(());
        }
        let (first, here) = (first.in_words(), self.in_words());
        Err(ExperimentError::results(
            stage,
            format_args!(
                "was started by another program ({first}; here {here}): all shards of a stage must run one program. Use the same binary \
                 everywhere, or use --mix-machines if both compute the same"
            ),
        ))
    }

    fn in_words(&self) -> String {
        let digest: String = self.sha256.chars().take(12).collect();
        format!("speed {}, SHA-256 {digest}...", self.speed).escape_debug().to_string()
    }
}

/// Returns the SHA-256 of the executable, even if it was replaced after the process started.
fn digest() -> Option<String> {
    let mut file = File::open("/proc/self/exe").or_else(|_| File::open(std::env::current_exe()?)).ok()?;
    let mut hash = Sha256::new();
    std::io::copy(&mut file, &mut hash).ok()?;
    Some(hex::encode(hash.finalize()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_program_is_named() {
        let stage = tempfile::tempdir().expect("a folder");
        let here = Program::current();
        assert_eq!(here.sha256.len(), 64);
        assert!(here.check(stage.path()).is_err());
        std::fs::write(stage.path().join(FILE), here.to_json()).expect("written");
        assert!(here.check(stage.path()).is_ok());
        let other = Program { speed: "0.0.1".into(), sha256: "ab".repeat(32) };
        let error = other.check(stage.path()).expect_err("another").to_string();
        for part in ["speed 0.0.1", "abababababab", &here.sha256[..12], "--mix-machines"] {
            assert!(error.contains(part), "{part} is not in {error}");
        }
        std::fs::write(stage.path().join(FILE), "{").expect("written");
        assert!(here.check(stage.path()).is_err());
    }
}
