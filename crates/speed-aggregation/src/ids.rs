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
