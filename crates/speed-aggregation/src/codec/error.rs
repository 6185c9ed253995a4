//! Decoding errors.

use super::kind::kind_name;

/// The reason why bytes are not a well-formed message or answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the fields")]
#[non_exhaustive]
pub enum DecodeError {
    /// The length differs from the one that the header implies.
    #[error("{found} bytes, expected {expected}")]
    Length { expected: usize, found: usize },
    /// The first eight bytes are not this format's.
    #[error("not a file of this program (wrong magic bytes)")]
    Magic,
    /// A version that this program does not read.
    #[error("format version {found}, this program reads version {expected}")]
    Version { expected: u16, found: u16 },
    /// A file of another kind.
    #[error("is {}, expected {}", in_words(*.found), in_words(*.expected))]
    Kind { expected: u16, found: u16 },
    /// A bit that this version does not know is set.
    #[error("{field} has bits {found:#x}, known are {known:#x}")]
    Flags { field: &'static str, found: u32, known: u32 },
    /// The content was changed on its way.
    #[error("checksum mismatch: the content was damaged")]
    Checksum,
    /// A public key that would leave votes unencrypted.
    #[error(
        "a degenerate key: expected a body that looks random, found one whose words times {multiplier} are close to 0"
    )]
    Degenerate { multiplier: u64 },
    /// A header field is outside its limits.
    #[error("{field} is {found}, allowed is {min} to {max}")]
    Field { field: &'static str, found: u64, min: u64, max: u64 },
}

fn in_words(kind: u16) -> String {
    kind_name(kind).map_or_else(|| format!("a file of the unknown kind {kind}"), str::to_owned)
}
