//! Public keys of the parties.

use std::fmt;
use std::str::FromStr;

use ed25519_dalek::VerifyingKey;
use speed_aggregation::protocol::Signature;
use speed_core::Digest;

use crate::error::{Refused, beginning};

/// A party's public Ed25519 key, which identifies it. Its text form has 64 hexadecimal digits; `Display` prints the
/// first 16.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PartyKey(pub(crate) VerifyingKey);

impl PartyKey {
    /// Returns whether the signature of a digest is from this party.
    pub fn verifies(&self, digest: Digest, signature: &Signature) -> bool {
        let signature = ed25519_dalek::Signature::from_bytes(signature.as_bytes());
        self.0.verify_strict(digest.as_bytes(), &signature).is_ok()
    }

    /// Reads a key; `None` if the bytes are not a key, or are a weak one.
    pub fn from_bytes(bytes: &[u8; 32]) -> Option<Self> {
        VerifyingKey::from_bytes(bytes).ok().filter(|key| !key.is_weak()).map(Self)
    }

    pub(crate) fn as_bytes(&self) -> &[u8; 32] {
        self.0.as_bytes()
    }

    /// Returns all 64 hexadecimal digits.
    pub fn to_hex(&self) -> String {
        hex::encode(self.as_bytes())
    }
}

impl FromStr for PartyKey {
    type Err = Refused;

    fn from_str(text: &str) -> Result<Self, Refused> {
        let mut bytes = [0; 32];
        let read = hex::decode_to_slice(text, &mut bytes).ok().and_then(|()| Self::from_bytes(&bytes));
        // One key must have one text, but `hex` reads upper case as well. Under a weak key, a signature may hold for
        // any message.
        read.filter(|key| key.to_hex() == text).ok_or_else(|| {
            let found = beginning(text);
            Refused::usage(format!("expected the 64 hexadecimal digits of an Ed25519 public key, found {found:?}"))
        })
    }
}

impl fmt::Display for PartyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_hex()[..16])
    }
}

speed_core::debug_as!(PartyKey, this => "PartyKey({this})");
