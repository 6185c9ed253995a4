//! Assumptions of a claim: adversary, neighbouring relation and formulas.

use serde::{Deserialize, Serialize};

/// Knowledge of the adversary, which also determines the role of the noise of the teachers beyond the ratio `tau`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Adversary {
    /// External: knows no noise. The other teachers' noise was never added, because they dropped out.
    #[default]
    #[serde(rename = "dropout")]
    ExternalWithDropout,
    /// Colluding with the other teachers: their noise was added, and the adversary knows it. It is a known shift of the
    /// votes, so bounds that use votes must hold on average over it (erratum 6).
    #[serde(rename = "collusion")]
    Colluding,
    /// External, with a trusted aggregator who adds all of the noise; `tau` must be 1.
    #[serde(rename = "central")]
    ExternalWithCentral,
}

/// How many of the teachers beyond the ratio `tau` the [`Adversary`] applies to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Extent {
    /// All of them, and no fewer: noise of exactly a ratio `1 - tau` is missing, or all of it is known, or all of it is
    /// missing. More noise may cost more, because it brings distant counts closer.
    #[default]
    Exactly,
    /// Any number of them: for [`Adversary::ExternalWithDropout`], noise of any ratio from `tau` to 1 is present; for
    /// [`Adversary::Colluding`], each of them may be a colluder whose noise is known, may have left its noise out, or
    /// may be honest.
    UpTo,
}

/// Direction of the inequality between neighbours: two ensembles that differ in one teacher's votes (replace-one), of which
/// any may be empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum NeighbouringRelation {
    /// Only from these votes to a neighbour's, as in the paper's Theorem 3 (erratum 7).
    #[serde(rename = "one")]
    OneSided,
    /// Also back: the meaning of (epsilon, delta)-differential privacy at these votes.
    #[default]
    #[serde(rename = "both")]
    BothWays,
}

/// Set of formulas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// The paper's: Theorem 2, Proposition 4, Theorem 3, integer orders up to 25, the tail bound.
    Paper,
    /// Epsilon of one query and the probability of the likeliest outcome, both as tight as known here, and the exact
    /// worst case given these two numbers.
    Outcome,
    /// The least of every bound known here: also the exact distributions of the answers at the votes and at all their
    /// neighbours, if the adversary knows none of the noise.
    #[default]
    Tight,
}

/// All assumptions of one claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Assumptions {
    pub(crate) adversary: Adversary,
    pub(crate) extent: Extent,
    pub(crate) relation: NeighbouringRelation,
    pub(crate) bound: Bound,
}

speed_core::named!(Adversary: ExternalWithDropout = "dropout", Colluding = "collusion", ExternalWithCentral = "central");
speed_core::named!(Extent: Exactly = "exactly", UpTo = "up-to");
speed_core::named!(NeighbouringRelation: OneSided = "one", BothWays = "both");
speed_core::named!(Bound: Paper = "paper", Outcome = "outcome", Tight = "tight");
