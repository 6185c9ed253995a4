//! Identifiers of key sets and rounds.

use std::fmt;
use std::str::FromStr;

use speed_core::{Digest, DigestError};

/// Defines a newtype over [`Digest`]. `to_hex` gives all 64 hexadecimal digits, `Display` the first 16.
macro_rules! identifier {
    ($(#[$doc:meta])+ $name:ident) => {
        $(#[$doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub struct $name(Digest);

        impl $name {
            /// Wraps the digest.
            pub(crate) const fn new(digest: Digest) -> Self {
                Self(digest)
            }

            /// Returns the identifier with these bytes.
            pub const fn from_bytes(bytes: [u8; 32]) -> Self {
                Self(Digest::from_bytes(bytes))
            }

            /// Returns the digest.
            pub const fn digest(&self) -> Digest {
                self.0
            }

            /// Returns the 32 bytes.
            pub const fn as_bytes(&self) -> &[u8; 32] {
                self.0.as_bytes()
            }

            /// Returns all 64 hexadecimal digits. (`Display` gives the first 16.)
            pub fn to_hex(&self) -> String {
                self.0.to_hex()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = DigestError;

            fn from_str(text: &str) -> Result<Self, DigestError> {
                text.parse().map(Self)
            }
        }
    };
}

identifier! {
    /// The identifier of a key set: SHA-256 of its public key.
    KeyId
}

identifier! {
    /// The identifier of a round: a hash of all terms that its parties agree on ([`Round::id`](crate::Round::id)).
    RoundId
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_survive_as_text() {
        let id = RoundId::new(Digest::from_bytes(std::array::from_fn(|i| (i * 37) as u8)));
        assert_eq!(id.to_hex().parse(), Ok(id));
        assert!(id.to_hex().starts_with(&id.to_string()));
        let key = KeyId::new(Digest::from_bytes([0xab; 32]));
        assert_eq!(key.to_hex().parse(), Ok(key));
        let text = id.to_hex();
        for bad in [&text[1..], &text[..63], &format!("{text}0"), &text.to_uppercase(), &text.replace('0', "g"), ""] {
            assert!(bad.parse::<RoundId>().is_err(), "{bad}");
        }
        assert!("é".repeat(32).parse::<RoundId>().is_err());
    }
}
