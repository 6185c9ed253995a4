//! The privacy noise: `[noise]`.

use serde::{Deserialize, Serialize};
use speed_core::RandomnessKind;
use speed_mechanism::{InverseScale, Mechanism, MechanismKind, NoiseShare};

use super::fault::{Fault, refuse};

/// `[noise]` as written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "documented in configs/default.toml")]
pub struct RawNoise {
    pub mechanism: MechanismKind,
    pub gamma: f64,
    pub source: RandomnessKind,
}

/// The privacy noise, checked: discrete Laplace, the only mechanism that experiments draw.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NoiseConfig {
    /// Inverse scale of the sum of all teachers' noise, per vote.
    pub gamma: InverseScale,
    /// Origin of noise and keys.
    pub randomness: RandomnessKind,
}

impl RawNoise {
    /// Checks the section for an ensemble of `teachers`.
    pub(super) fn check(&self, teachers: usize) -> Result<NoiseConfig, Fault> {
        if self.mechanism != MechanismKind::DiscreteLaplace {
            let message = format!("found {}, expected {}", self.mechanism, MechanismKind::DiscreteLaplace);
            return refuse("noise.mechanism", message);
        }
        let gamma = InverseScale::new(self.gamma).map_err(|error| Fault::new("noise.gamma", error))?;
        // The teachers' shares as well: noise so wide has no table of them.
        NoiseShare::new(gamma, teachers).map_err(|error| Fault::new("noise.gamma", error))?;
        Ok(NoiseConfig { gamma, randomness: self.source })
    }
}

impl NoiseConfig {
    /// Returns the noise of all teachers together.
    #[must_use]
    pub fn mechanism(&self) -> Mechanism {
        Mechanism::DiscreteLaplace { gamma: self.gamma }
    }
}

impl From<&NoiseConfig> for RawNoise {
    fn from(noise: &NoiseConfig) -> Self {
        Self { mechanism: noise.mechanism().kind(), gamma: noise.gamma.get(), source: noise.randomness }
    }
}
