//! What the accountant refuses.

/// Why votes or parameters cannot be accounted.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AccountError {
    /// No query was asked.
    #[error("there are no queries to account: expected at least one row of votes")]
    NoQueries,
    /// There is nothing to choose between.
    #[error("row {row} has {found} classes, but an argmax needs at least 2")]
    TooFewClasses {
        /// Index of the row.
        row: usize,
        /// How many counts it has.
        found: usize,
    },
    /// A row has another number of classes than the first.
    #[error("row {row} has {found} classes, but row 0 has {expected}")]
    Classes {
        /// Index of the row.
        row: usize,
        /// How many counts it has.
        found: usize,
        /// How many the first row has.
        expected: usize,
    },
    /// A row has another number of votes than the first: every teacher votes once a query.
    #[error("row {row} has {found} votes, but row 0 has {expected}: every teacher votes once in every query")]
    Votes {
        /// Index of the row.
        row: usize,
        /// The sum of its counts.
        found: u64,
        /// The sum of the first row's counts.
        expected: u64,
    },
    /// Nobody voted.
    #[error("row {row} has no votes at all")]
    NoVotes {
        /// Index of the row.
        row: usize,
    },
    /// Delta is out of range.
    #[error("delta is {found:?}, but it must be at least {:e} and less than 1", crate::Delta::SMALLEST)]
    Delta {
        /// The refused value.
        found: f64,
    },
    /// No moment order was asked for.
    #[error("largest moment order is 0, but at least order 1 is needed")]
    NoOrders,
    /// There are more queries than are composed.
    #[error("there are {found} queries, but at most 1000000 are accounted for together")]
    Queries {
        /// How many were asked for.
        found: usize,
    },
    /// There are too many teachers to try every number of them.
    #[error(
        "there are {found} votes a row: with \"up to\" every number of missing teachers is tried, for at most 2000 teachers"
    )]
    Teachers {
        /// How many voted.
        found: u64,
    },
    /// A statistical distance is no distance.
    #[error("statistical distance of the sampler is {found:?}, but it must be from 0 to less than 1")]
    SamplingDistance {
        /// The refused value.
        found: f64,
    },
    /// The sampler's imperfection uses up all of delta.
    #[error(
        "sampler's statistical distance costs {charge:e} of delta = {delta:e} at an epsilon of {epsilon:.1}, which is too much"
    )]
    DeltaUsedUp {
        /// The epsilon at which it costs that.
        epsilon: f64,
        /// What the sampler costs.
        charge: f64,
        /// What was allowed in all.
        delta: f64,
    },
    /// No finite epsilon is known.
    #[error(
        "epsilon of these queries is not finite (found {found}): the noise is too little, or too far beyond what can be computed"
    )]
    NotFinite {
        /// What came out.
        found: f64,
    },
    /// A threshold is no number of votes.
    #[error("threshold is {found:?}, but it must be a number of votes up to 1e15, and a whole one with integer noise")]
    Threshold {
        /// The refused value.
        found: f64,
    },
    /// A trusted aggregator adds all of the noise.
    #[error("honest ratio is {tau:?} with a trusted aggregator, who adds all of the noise: it must be 1")]
    CentralRatio {
        /// The ratio.
        tau: f64,
    },
    /// A value cannot be released as asked.
    #[error("release: {message}")]
    Release {
        /// Expected and found.
        message: String,
    },
    /// A target cannot be reached.
    #[error("{what} cannot be reached: {why}")]
    Unreachable {
        /// What was asked for.
        what: String,
        /// Why not.
        why: String,
    },
}
