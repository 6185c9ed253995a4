//! The origin of keys and of privacy noise.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

/// The origin of keys and of privacy noise, and so whether they are private. `Debug` never shows a key.
#[derive(Clone)]
pub enum Randomness {
    /// The operating system's cryptographic generator: the only origin with a guarantee.
    OperatingSystem,
    /// A stored key of [`Randomness::fresh`], so that answers that were paid for can be given again after an
    /// interruption. It is as secret as the votes, and removed once the answers are given.
    SavedKey(Zeroizing<[u8; 32]>),
    /// A key that the caller chose: keys and noise are reproducible, so there is **no privacy** against anyone who
    /// knows the key, and every output says so.
    Simulation([u8; 32]),
}

/// The kind of a [`Randomness`], as configs name it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RandomnessKind {
    /// The operating system's cryptographic generator.
    #[default]
    OperatingSystem,
    /// A seed: reproducible, not private.
    Simulation,
}

crate::named!(RandomnessKind: OperatingSystem = "operating-system", Simulation = "simulation");

/// A failure of the operating system's generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the operating system's random generator failed")]
pub struct EntropyError(#[source] getrandom::Error);

impl Randomness {
    /// Creates a simulation with this key.
    pub const fn simulation(key: [u8; 32]) -> Self {
        Self::Simulation(key)
    }

    /// Draws a key from the operating system.
    ///
    /// # Errors
    /// If the operating system gives no random bytes.
    pub fn fresh() -> Result<Zeroizing<[u8; 32]>, EntropyError> {
        let mut key = Zeroizing::new([0; 32]);
        getrandom::fill(key.as_mut_slice()).map_err(EntropyError)?;
        Ok(key)
    }

    /// Returns whether results are reproducible and not private.
    pub fn is_simulation(&self) -> bool {
        matches!(self, Self::Simulation(_))
    }

    /// Returns the key of one generator: a fresh key, or the stored or chosen one.
    ///
    /// # Errors
    /// If the operating system gives no random bytes.
    pub fn key(&self) -> Result<Zeroizing<[u8; 32]>, EntropyError> {
        match self {
            Self::OperatingSystem => Self::fresh(),
            Self::SavedKey(key) => Ok(key.clone()),
            Self::Simulation(key) => Ok(Zeroizing::new(*key)),
        }
    }

    /// Derives the randomness for one purpose; a stored or chosen key is passed through [`derive_key`].
    pub fn derive(&self, domain: &[u8], purpose: &str, index: u64, context: &[u8]) -> Self {
        match self {
            Self::OperatingSystem => Self::OperatingSystem,
            Self::SavedKey(key) => {
                Self::SavedKey(Zeroizing::new(derive_key(domain, key.as_slice(), purpose, index, context)))
            }
            Self::Simulation(key) => Self::Simulation(derive_key(domain, key, purpose, index, context)),
        }
    }
}

/// Derives a key: SHA-256 of `domain`, `key`, the length of `purpose` (8 bytes), `purpose`, `index` (8 bytes) and
/// `context`, numbers little-endian. For one domain whose keys have one length, different arguments give different hash
/// inputs.
pub fn derive_key(domain: &[u8], key: &[u8], purpose: &str, index: u64, context: &[u8]) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(domain);
    hash.update(key);
    hash.update((purpose.len() as u64).to_le_bytes());
    hash.update(purpose.as_bytes());
    hash.update(index.to_le_bytes());
    hash.update(context);
    hash.finalize().into()
}

impl fmt::Debug for Randomness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OperatingSystem => "OperatingSystem",
            Self::SavedKey(_) => "SavedKey(..)",
            Self::Simulation(_) => "Simulation(..)",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derived_randomness_keeps_its_kind() {
        assert!(Randomness::simulation([1; 32]).derive(b"d", "noise", 0, b"").is_simulation());
        let kept = Randomness::SavedKey(Zeroizing::new([7; 32])).derive(b"d", "noise", 0, b"");
        assert!(!kept.is_simulation() && matches!(kept, Randomness::SavedKey(_)));
        assert!(matches!(Randomness::OperatingSystem.derive(b"", "", 0, b""), Randomness::OperatingSystem));
        let fresh = || *Randomness::OperatingSystem.key().expect("entropy");
        assert_ne!(fresh(), fresh());
    }

    #[test]
    fn a_derived_key_is_the_documented_hash() {
        // Python: hashlib.sha256(b"domain" + bytes([5]*32) + (5).to_bytes(8,"little") + b"noise" +
        // (3).to_bytes(8,"little") + b"c")
        let derived = Randomness::simulation([5; 32]).derive(b"domain", "noise", 3, b"c").key().expect("a key");
        assert_eq!(hex::encode(*derived), "cf954b09663bf226a2975dbf8a66e4ac86b57167d6f5a95dd3e1d9bdf0941828");
    }

    #[test]
    fn debug_shows_no_key() {
        assert_eq!(format!("{:?}", Randomness::simulation([77; 32])), "Simulation(..)");
        assert_eq!(format!("{:?}", Randomness::SavedKey(Zeroizing::new([77; 32]))), "SavedKey(..)");
    }
}
