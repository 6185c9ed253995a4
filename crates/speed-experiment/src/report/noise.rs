//! The noise of a run's answers.

use std::fmt;

use serde::Serialize;

/// The noise of a run's answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunNoise {
    /// No row has noise.
    None,
    /// The noise comes from a seed, so it protects against no adversary.
    Simulation,
    /// The noise comes from the operating system.
    Real,
}

impl RunNoise {
    /// Returns the noise of a run, given whether any row has noise and whether the run is a simulation.
    pub(crate) fn new(is_noisy: bool, is_simulation: bool) -> Self {
        match (is_noisy, is_simulation) {
            (false, _) => Self::None,
            (true, true) => Self::Simulation,
            (true, false) => Self::Real,
        }
    }
}

impl fmt::Display for RunNoise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "no noise",
            Self::Simulation => "simulation",
            Self::Real => "real noise",
        })
    }
}
