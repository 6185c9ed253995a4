//! Sources of the randomness of a round's programs.

use speed_aggregation::protocol::RoundId;
use speed_core::{Randomness, RandomnessKind, derive_key};

/// The domain of the keys of simulations.
const DOMAIN: &[u8] = b"speed/simulation/v1";

/// The origin of a program's keys, encryptions and privacy noise: the operating system, or the seed of a simulation
/// (the same number for all its programs). Keys and noise from a seed are reproducible and not private.
#[derive(Clone, Copy, Default)]
pub struct RoundRandomness {
    seed: Option<u64>,
}

impl RoundRandomness {
    /// The operating system's generator.
    pub const OPERATING_SYSTEM: Self = Self { seed: None };

    /// Starts a simulation with this seed.
    pub const fn simulation(seed: u64) -> Self {
        Self { seed: Some(seed) }
    }

    /// Starts a simulation if there is a seed, as on command lines.
    pub const fn from_seed(seed: Option<u64>) -> Self {
        Self { seed }
    }

    pub(crate) const fn kind(self) -> RandomnessKind {
        match self.seed {
            Some(_) => RandomnessKind::Simulation,
            None => RandomnessKind::OperatingSystem,
        }
    }

    /// Returns whether it is a simulation's.
    pub(crate) const fn is_simulation(self) -> bool {
        self.seed.is_some()
    }

    /// Returns the randomness of keys and encryptions.
    pub fn keys(self) -> Randomness {
        self.derive("keys", b"", 0)
    }

    /// Returns the randomness of a teacher's privacy noise in a round.
    pub(crate) fn teacher_noise(self, round: RoundId, teacher: usize) -> Randomness {
        self.derive("teacher noise", round.as_bytes(), teacher as u64)
    }

    /// Returns the randomness of the server's privacy noise in a round.
    pub fn server_noise(self, round: RoundId) -> Randomness {
        self.derive("server noise", round.as_bytes(), 0)
    }

    fn derive(self, purpose: &str, context: &[u8], index: u64) -> Randomness {
        let Some(seed) = self.seed else { return Randomness::OperatingSystem };
        Randomness::simulation(derive_key(DOMAIN, &seed.to_le_bytes(), purpose, index, context))
    }
}

speed_core::debug_as!(RoundRandomness, this => "RoundRandomness({})", this.kind());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_of_a_simulation_follow_from_its_seed() {
        // Python: sha256(b"speed/simulation/v1" + (7).to_bytes(8, "little") + (4).to_bytes(8, "little") + b"keys" +
        // bytes(8))
        let key = RoundRandomness::simulation(7).keys().key().expect("no entropy is needed");
        assert_eq!(hex::encode(*key), "d21e70e3b48a087d605bcb3f97408317349dc77ff9f74613fcfbca82ac127d3e");
    }

    #[test]
    fn debug_shows_no_seed() {
        assert_eq!(format!("{:?}", RoundRandomness::simulation(77)), "RoundRandomness(simulation)");
        assert_eq!(format!("{:?}", RoundRandomness::OPERATING_SYSTEM), "RoundRandomness(operating-system)");
    }
}
