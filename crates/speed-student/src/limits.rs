//! Limits and defaults of settings of several methods.

use speed_nn::training::InvalidField;

/// Images of the paper's pool: the first 9000 test images of MNIST.
pub(crate) const REFERENCE_POOL: usize = 9000;
/// Largest number of images of an epoch; a larger number is a typing error.
pub(crate) const MAX_EPOCH: usize = 10_000_000;
/// Largest number of units or images in one place. A larger number is a mistake that would only fail later, for lack of
/// memory.
pub(crate) const MAX_SIZE: usize = 1 << 16;

pub(crate) fn check_epoch_images(field: &'static str, value: usize) -> Result<(), InvalidField> {
    InvalidField::unless(value <= MAX_EPOCH, field, || {
        format!("must be 0 (a pass over the pool) or at most {MAX_EPOCH}, not {value}")
    })
}
