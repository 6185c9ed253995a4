//! The seed from which a server re-randomises the answers of a round.

use speed_core::{EntropyError, Randomness, derive_key};
use tfhe::core_crypto::commons::math::random::XofSeed;
use zeroize::Zeroizing;

use crate::getters::debug_as;
use crate::ids::RoundId;
use crate::random::Seeder;

/// The seed of all randomness in the answers of one round. With it, anyone who has the messages and the evaluation key
/// can compute the same answers again, bit for bit. It must stay secret from the student: together with the secret key
/// it removes the flooding that hides the counts.
#[derive(Clone, PartialEq, Eq)]
pub struct AnswerSeed(Zeroizing<[u8; 32]>);

impl AnswerSeed {
    /// Draws the seed of a round. In a simulation it depends only on the simulation's key and the round.
    ///
    /// # Errors
    /// If the operating system provides no randomness.
    pub fn draw(randomness: &Randomness, round: RoundId) -> Result<Self, EntropyError> {
        randomness.derive(DOMAIN, "answer seed", 0, round.as_bytes()).key().map(Self)
    }

    /// Wraps the bytes.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// Returns the bytes, which are secret.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns the generator of seeds for one re-randomisation.
    pub(crate) fn seeder(&self, query: u64, context: &[u8]) -> Seeder {
        let key = Zeroizing::new(derive_key(DOMAIN, self.0.as_slice(), "re-randomise", query, context));
        Seeder::new(XofSeed::new(key.to_vec(), *b"speedagg"))
    }
}

const DOMAIN: &[u8] = b"speed/aggregation/answer-seed/v1";

debug_as!(AnswerSeed, _this => "AnswerSeed(..)");
