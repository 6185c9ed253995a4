//! Identifiers as text: 64 hexadecimal digits.

use std::str::FromStr;

use crate::keys::KeyId;
use crate::round::RoundId;

/// A text that is not an identifier.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected 64 hexadecimal digits in lower case, found {found:?}")]
pub struct IdError {
    /// The text, cut after 80 characters.
    pub found: String,
}

fn parse(text: &str) -> Result<[u8; 32], IdError> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut id = [0; 32];
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let fits = pairs.len() == id.len() && rest.is_empty();
    let parsed = fits.then_some(()).and_then(|()| {
        id.iter_mut().zip(pairs).try_for_each(|(byte, &[high, low])| {
            *byte = digit(high)? << 4 | digit(low)?;
            Some(())
        })
    });
    parsed.map(|()| id).ok_or_else(|| IdError { found: text.chars().take(80).collect() })
}

fn to_hex(bytes: &[u8; 32]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl KeyId {
    /// All 64 hexadecimal digits. (`Display` gives the first 16.)
    #[must_use]
    pub fn to_hex(&self) -> String {
        to_hex(self.as_bytes())
    }
}

impl FromStr for KeyId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        parse(text).map(Self::from_bytes)
    }
}

impl RoundId {
    /// All 64 hexadecimal digits. (`Display` gives the first 16.)
    #[must_use]
    pub fn to_hex(&self) -> String {
        to_hex(self.as_bytes())
    }
}

impl FromStr for RoundId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        parse(text).map(Self::from_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_survive_as_text() {
        let id = RoundId::from_bytes(std::array::from_fn(|i| (i * 37) as u8));
        assert_eq!(id.to_hex().parse(), Ok(id));
        assert!(id.to_hex().starts_with(&id.to_string()));
        let key = KeyId::from_bytes([0xab; 32]);
        assert_eq!(key.to_hex().parse(), Ok(key));
        let text = id.to_hex();
        for bad in [&text[1..], &text[..63], &format!("{text}0"), &text.to_uppercase(), &text.replace('0', "g"), ""] {
            assert!(bad.parse::<RoundId>().is_err(), "{bad}");
        }
        assert!("é".repeat(32).parse::<RoundId>().is_err());
    }
}
