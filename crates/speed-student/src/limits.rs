//! Limits of settings.

/// Largest number of units or images in one place. A larger number is a mistake that would only fail later, for lack of
/// memory.
pub(crate) const MAX_SIZE: usize = 1 << 16;
