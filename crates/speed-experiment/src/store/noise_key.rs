//! The key of the noise of charged answers, stored in their stage until they are given.

use sha2::{Digest, Sha256};
use speed_core::{EntropyError, Randomness};
use zeroize::Zeroizing;

use super::fingerprint::Fingerprint;

pub(super) const FILE: &str = "noise.key";

/// The key from which, together with the question, all noise of one set of answers is derived. It is stored only in its
/// stage.
#[derive(Clone)]
pub(crate) struct NoiseKey {
    key: Zeroizing<[u8; 32]>,
    question: Fingerprint,
}

impl NoiseKey {
    pub(crate) fn fresh(question: Fingerprint) -> Result<Self, EntropyError> {
        Ok(Self { key: Randomness::fresh()?, question })
    }

    pub(super) fn from_bytes(bytes: &[u8], question: Fingerprint) -> Option<Self> {
        Some(Self { key: Zeroizing::new(bytes.try_into().ok()?), question })
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        self.key.as_slice()
    }

    pub(crate) fn of_teacher(&self, teacher: usize) -> Randomness {
        Randomness::SavedKey(self.derive("teacher", teacher as u64))
    }

    pub(crate) fn of_server(&self) -> Randomness {
        Randomness::SavedKey(self.derive("server", 0))
    }

    /// Returns a text that identifies this noise and reveals nothing about it.
    pub(crate) fn digest(&self) -> String {
        hex::encode(&self.derive("digest", 0)[..16])
    }

    fn derive(&self, purpose: &str, index: u64) -> Zeroizing<[u8; 32]> {
        let hash = Sha256::new().chain_update("speed noise\n").chain_update(self.key.as_slice());
        let hash = hash.chain_update(purpose).chain_update(index.to_le_bytes()).chain_update(self.question.to_hex());
        Zeroizing::new(hash.finalize().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_key_gives_the_noise_that_was_charged() {
        // Python: q = hashlib.sha256(b"q").hexdigest().encode(); hashlib.sha256(b"speed noise\n" + bytes([7]*32) +
        // b"digest" + bytes(8) + q).hexdigest()[:32]
        let question = Fingerprint::of_bytes(b"q");
        let key = NoiseKey::from_bytes(&[7; 32], question).expect("32 bytes");
        assert_eq!(key.digest(), "3803c3bec3ccbf690ee2d844203111e1");
        let of_teacher = |teacher| *key.of_teacher(teacher).key().expect("no entropy is needed");
        assert!(of_teacher(0) != of_teacher(1) && of_teacher(0) == of_teacher(0));
        assert!(NoiseKey::from_bytes(&[7; 31], question).is_none());
    }
}
