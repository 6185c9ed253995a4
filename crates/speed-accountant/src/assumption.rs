//! Under which assumption, in which direction and with which formulas an epsilon is claimed.

use serde::{Deserialize, Serialize};

/// What became of the noise of the teachers beyond the ratio `tau`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Assume {
    /// It was never added: those teachers dropped out of the noise, and nobody knows any of what is there.
    #[default]
    Dropout,
    /// It was added, and the adversary knows it: those teachers collude. The noise is a known shift of the votes, so
    /// bounds that use votes must hold on average over it (erratum 6).
    Collusion,
    /// A trusted aggregator adds all of the noise and nobody knows any of it; `tau` must be 1.
    Central,
}

/// How many of the teachers beyond the ratio `tau` may be as [`Assume`] says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Extent {
    /// All of them, and no fewer: noise of exactly a ratio `1 - tau` is missing, or all of it is known, or all of it is
    /// missing. More noise may cost more: far votes come closer.
    #[default]
    Exactly,
    /// Any number of them: for [`Assume::Dropout`] noise of any ratio from `tau` to 1 is present; for
    /// [`Assume::Collusion`] each of them may be a colluder whose noise is known, may have left its noise out, or may be
    /// honest.
    UpTo,
}

/// Which of the two inequalities of differential privacy a bound covers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Directions {
    /// From these votes to a neighbour's only, as the paper's Theorem 3 (erratum 7).
    One,
    /// Also back: what (epsilon, delta)-differential privacy at these votes means.
    #[default]
    Both,
}

/// Which formulas are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// The paper's: Theorem 2, Proposition 4, Theorem 3, whole orders up to 25, the tail bound.
    Paper,
    /// Epsilon of one query and the probability of the likeliest outcome, both as tight as they are known here, and the
    /// exact worst case given those two numbers.
    Outcome,
    /// The least of every bound known here: also the exact distributions of the answers at the votes and at all their
    /// neighbours, where nobody knows noise.
    #[default]
    Tight,
}

macro_rules! names {
    ($type:ident: $($variant:ident = $name:literal),+) => {
        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(match self { $(Self::$variant => $name),+ })
            }
        }

        impl std::str::FromStr for $type {
            type Err = String;

            fn from_str(name: &str) -> Result<Self, String> {
                match name {
                    $($name => Ok(Self::$variant),)+
                    _ => Err(format!("expected one of {}, found {name:?}", [$($name),+].join(", "))),
                }
            }
        }
    };
}

names!(Assume: Dropout = "dropout", Collusion = "collusion", Central = "central");
names!(Extent: Exactly = "exactly", UpTo = "up-to");
names!(Directions: One = "one", Both = "both");
names!(Bound: Paper = "paper", Outcome = "outcome", Tight = "tight");
