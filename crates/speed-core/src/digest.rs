//! SHA-256 values.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::Digest as _;

/// A SHA-256 value. As text it has 64 hexadecimal digits in lower case; `Display` gives the first 16.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

/// A text that is not a digest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected 64 hexadecimal digits in lower case, found {found:?}")]
#[non_exhaustive]
pub struct DigestError {
    /// The text, cut after 80 characters.
    pub found: String,
}

impl Digest {
    /// Hashes `bytes`.
    pub fn of(bytes: impl AsRef<[u8]>) -> Self {
        Self(sha2::Sha256::digest(bytes).into())
    }

    /// Wraps a hash that was computed elsewhere.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the 32 bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns all 64 hexadecimal digits.
    pub fn to_hex(&self) -> String {
        hex::encode(self.0)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(&self.0[..8]))
    }
}

crate::debug_as!(Digest, this => "Digest({this})");

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        let mut bytes = [0; 32];
        // A digest has only one text form, but `hex` also accepts upper case.
        let lower = !text.bytes().any(|byte| byte.is_ascii_uppercase());
        match hex::decode_to_slice(text, &mut bytes) {
            Ok(()) if lower => Ok(Self(bytes)),
            _ => Err(DigestError { found: text.chars().take(80).collect() }),
        }
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_hex())
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_survives_as_text() {
        // SHA-256("abc"), FIPS 180-2, appendix B.1.
        let digest = Digest::of("abc");
        let text = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!((digest.to_hex().as_str(), digest.to_string().as_str()), (text, &text[..16]));
        assert_eq!(text.parse(), Ok(digest));
        let json = serde_json::to_string(&digest).expect("a text");
        assert_eq!(serde_json::from_str::<Digest>(&json).expect("a digest"), digest);
        for bad in [&text[1..], &text[..63], &format!("{text}0"), &text.to_uppercase(), &text.replace('0', "g"), ""] {
            assert!(bad.parse::<Digest>().is_err(), "{bad}");
        }
        assert!("é".repeat(32).parse::<Digest>().is_err());
    }
}
