//! The scales at which a comparison reads a difference of two counts.

/// A scale at which a comparison reads a difference, with the largest difference for which a comparison with this as its
/// coarsest scale is right.
pub(crate) struct Scale {
    /// Sixteenths of a bucket per vote.
    pub(crate) sixteenths: u64,
    /// Largest difference, in votes.
    pub(crate) reach: u64,
}

/// The scales, finest first. The finest sets half a vote 73 buckets from zero; each further one takes over where the one
/// before wraps around: see [`crate::Encoding`] for the margins.
pub(crate) const SCALES: [Scale; 4] = [
    Scale { sixteenths: 146 * 16, reach: 13 },
    Scale { sixteenths: 10 * 16, reach: 190 },
    Scale { sixteenths: 12, reach: 2544 },
    Scale { sixteenths: 1, reach: 30_000 },
];

/// Half-width in buckets of the zone around zero in which all scales but the finest answer "don't know".
pub(crate) const DEAD_ZONE: usize = 70;

/// Returns the largest difference that so many scales cover, in votes.
pub(crate) fn reach(scales: usize) -> u64 {
    SCALES[scales - 1].reach
}
