//! The noise of a run's answers.

use std::fmt;

use serde::Serialize;

use crate::config::{Config, RowConfig};

/// The noise of a run's answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunNoise {
    /// No row has any.
    None,
    /// From a seed: private against nobody.
    Simulation,
    /// From the operating system.
    Real,
}

impl RunNoise {
    /// The noise of the run of a config.
    pub(crate) fn of(config: &Config) -> Self {
        Self::new(config.rows.iter().any(RowConfig::is_noisy), config.is_simulation())
    }

    /// The noise of a run some of whose rows have any, or none has.
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
