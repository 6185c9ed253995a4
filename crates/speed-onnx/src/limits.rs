//! Limits of classifiers of other programs.

/// Maximum number of values of a tensor that a model computes for one image: 256 MiB.
pub(crate) const MAX_VALUES: usize = 1 << 26;
/// The numbers of classes of a round.
pub(crate) const CLASSES: [usize; 2] = [2, 256];
