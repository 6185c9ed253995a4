//! Seeds for simulations, whose keys and noise can be repeated and protect nobody.

use sha2::{Digest, Sha256};
use speed_aggregation::RoundId;
use speed_core::Randomness;

/// The seed of a simulation, the same number for all its programs.
#[derive(Clone, Copy)]
pub struct Simulation(u64);

impl Simulation {
    /// From a number.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn derive(self, purpose: &str, context: &[u8], index: u64) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(b"speed/simulation/v1");
        hash.update(self.0.to_le_bytes());
        hash.update((purpose.len() as u64).to_le_bytes());
        hash.update(purpose);
        hash.update(index.to_le_bytes());
        hash.update(context);
        hash.finalize().into()
    }

    /// The source of keys and of encryption randomness; the operating system's without a simulation.
    #[must_use]
    pub fn key_source(simulation: Option<Self>) -> Randomness {
        simulation.map_or(Randomness::OperatingSystem, |seed| Randomness::simulation(seed.derive("keys", b"", 0)))
    }

    /// The source of a teacher's noise in a round; the operating system's without a simulation.
    #[must_use]
    pub fn teacher_noise(simulation: Option<Self>, round: RoundId, teacher: usize) -> Randomness {
        Self::noise(simulation, "teacher noise", round, teacher as u64)
    }

    /// The source of the server's noise in a round; the operating system's without a simulation.
    #[must_use]
    pub fn server_noise(simulation: Option<Self>, round: RoundId) -> Randomness {
        Self::noise(simulation, "server noise", round, 0)
    }

    fn noise(simulation: Option<Self>, purpose: &str, round: RoundId, index: u64) -> Randomness {
        match simulation {
            Some(seed) => Randomness::simulation(seed.derive(purpose, round.as_bytes(), index)),
            None => Randomness::OperatingSystem,
        }
    }
}

impl std::fmt::Debug for Simulation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Simulation(..)")
    }
}
