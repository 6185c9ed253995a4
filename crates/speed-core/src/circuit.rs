//! The argmax circuits.

use serde::{Deserialize, Serialize};

/// The circuit that computes the argmax on ciphertexts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Circuit {
    /// `K - 1` matches in `log2 K` rounds: the fewest bootstraps (38 for ten classes). It is exact; ties go to the
    /// lowest class.
    #[default]
    Tournament,
    /// Every class against every other, then a count of wins: more bootstraps (192 for ten classes), but a depth of
    /// only three before the read-out. It is exact; ties go to the lowest class.
    AllPairs,
    /// The paper's circuit with its parameters, for comparison. It is not exact, so it must not be used with real
    /// noise.
    Paper,
}

crate::named!(Circuit: Tournament = "tournament", AllPairs = "all-pairs", Paper = "paper");
