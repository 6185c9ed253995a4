//! Warnings about the images of a user.

use speed_data::Split;

/// The largest value of images that use less than a quarter of the range.
const DARK: u8 = 63;

/// Returns the warning about images that look almost black to a network, because their values have another range: 0 to 1 in a
/// mask, 0 to 15 of a sensor with 4 bits.
pub(crate) fn dark(what: &str, images: &Split) -> Option<String> {
    of_range(what, images.len(), images.largest_value())
}

/// Returns the same warning about this number of images with this largest value.
pub(crate) fn of_range(what: &str, images: usize, largest: u8) -> Option<String> {
    (images > 1 && (1..=DARK).contains(&largest)).then(|| {
        format!(
            "{what}: the largest value of all pixels is {largest}, but white is 255, so most networks see almost black images: scale them \
             to 0 to 255, here and for predictions"
        )
    })
}

/// Returns the warning about test images with the pixels of one of the `others`, which `where_from` describes, if they are at least a
/// hundredth.
pub(crate) fn known(what: &str, test: &Split, where_from: &str, others: &Split) -> Option<String> {
    let (known, all) = (test.copies_of(others), test.len());
    (known > 0 && 100 * known >= all).then(|| {
        format!(
            "{what}: {known} of {all} images are {where_from} too, so the accuracy on them says little about new images"
        )
    })
}
