//! The cost of all queries that a filter composed.

use std::fmt;

/// The cost of all queries that a filter composed.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Spent {
    /// The part of the budget that is spent. Without a budget: an epsilon that would have allowed the queries, however
    /// they were chosen; the least one that the search finds.
    pub epsilon: f64,
    /// Whether delta includes the samplers.
    pub samplers: Samplers,
    /// The rule that gave epsilon.
    pub rule: CompositionRule,
}

impl Spent {
    /// Returns the epsilon that is compared with a budget: infinite if delta does not cover the samplers, so that no
    /// budget allows it.
    pub(crate) fn with_samplers(self) -> f64 {
        if self.samplers == Samplers::BeyondDelta { f64::INFINITY } else { self.epsilon }
    }
}

/// The coverage by delta of the samplers of all queries of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Samplers {
    /// Delta includes all of them.
    Included,
    /// The sampler of some queries is not known, or there are no queries: epsilon assumes exact noise for these.
    NotNamed {
        /// Number of these queries.
        queries: usize,
    },
    /// The samplers are further from exact noise than delta can include: epsilon assumes exact noise.
    BeyondDelta,
}

impl Samplers {
    /// Returns true if there are queries and delta includes the samplers of all of them.
    pub fn are_included(self) -> bool {
        self == Self::Included
    }
}

/// The rule by which a filter composed its queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompositionRule {
    /// Pure epsilons add up.
    PlainSum,
    /// Queries of one kind, composed at nine tenths of delta.
    OneKind,
    /// Moments of queries of several kinds, at a tenth of delta.
    SeveralKinds,
}

impl fmt::Display for CompositionRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PlainSum => "epsilons of single queries are added up, because that is the least here",
            Self::OneKind => {
                "queries of one kind are composed at nine tenths of delta, because a tenth is kept for queries of other \
                 kinds, and a thousandth of all for samplers"
            }
            Self::SeveralKinds => {
                "moments of queries of several kinds are added up at a tenth of delta, because the rest is kept for queries \
                 of one kind, and a thousandth of all for samplers"
            }
        })
    }
}
