//! The parties that add privacy noise.

use serde::{Deserialize, Serialize};

/// The party or parties that add the privacy noise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoisePlacement {
    /// Every teacher adds a share to its votes before it encrypts them: the paper's distributed noise.
    #[default]
    Distributed,
    /// Teachers send plain votes, and the server adds all of the noise to the encrypted sum: the paper's central noise.
    Central,
}

crate::named!(NoisePlacement: Distributed = "distributed", Central = "central");
