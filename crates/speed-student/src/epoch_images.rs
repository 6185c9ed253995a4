//! The number of images of an epoch, a setting of several methods.

use speed_nn::training::InvalidField;

/// Images of the paper's pool: the first 9000 test images of MNIST.
pub(crate) const REFERENCE_POOL: usize = 9000;

/// Largest number of images of an epoch; a larger number is a typing error.
pub(crate) const MAX_EPOCH: usize = 10_000_000;

/// Returns whether a setting of `epoch_images` means one pass over the pool.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
pub(crate) fn is_pass(epoch_images: &usize) -> bool {
    *epoch_images == 0
}

/// Checks the number of images of an epoch.
pub(crate) fn check_epoch_images(field: &'static str, value: usize) -> Result<(), InvalidField> {
    InvalidField::unless(value <= MAX_EPOCH, field, || {
        format!("must be 0 (a pass over the pool) or at most {MAX_EPOCH}, not {value}")
    })
}
