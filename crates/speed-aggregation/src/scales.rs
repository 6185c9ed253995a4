//! The scales at which a comparison reads a difference of two counts.

/// A scale at which a comparison reads a difference.
pub(crate) struct Scale {
    /// Sixteenths of a bucket per vote.
    pub(crate) sixteenths: u64,
    /// The largest difference, in votes, for which a comparison with this as its coarsest scale is right.
    pub(crate) reach: u64,
}

/// The scales, finest first. The finest places half a vote 73 buckets from zero; each further scale takes over where
/// the previous one wraps around. See [`crate::Encoding`] for the margins.
pub(crate) const SCALES: [Scale; 4] = [
    Scale { sixteenths: 146 * 16, reach: 13 },
    Scale { sixteenths: 10 * 16, reach: 190 },
    Scale { sixteenths: 12, reach: 2544 },
    Scale { sixteenths: 1, reach: 30_000 },
];

/// Half-width in buckets of the zone around zero in which all scales but the finest are undecided.
pub(crate) const DEAD_ZONE: usize = 70;

/// Returns the largest difference that `scales` scales cover, in votes.
pub(crate) fn reach(scales: usize) -> u64 {
    SCALES[scales - 1].reach
}
