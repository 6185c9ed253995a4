//! Warnings about the images of a user.

use std::collections::{BTreeSet, HashMap};

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

/// Returns the warning about images with the pixels of one of the `others`, which `where_from` describes, with the `effect` of such copies.
pub(crate) fn known(
    what: &str,
    images: &Split,
    (where_from, others): (&str, &Split),
    name: impl Fn(usize) -> String,
    effect: &str,
) -> Option<String> {
    let known = images.copies_of(others);
    (!known.is_empty()).then(|| {
        let (count, all) = (known.len(), images.len());
        format!("{what}: {count} of {all} images are {where_from} too, {effect}: {}", first_names(&known, name))
    })
}

/// The effect of test images that are known.
pub(crate) const MEASURES_LITTLE: &str = "so the accuracy on them says little about new images";

/// Returns the warning about images whose pixels occur in several parts, because a claim for one teacher covers an image in one part.
pub(crate) fn in_several_parts(images: &Split, part_of: &[usize], name: impl Fn(usize) -> String) -> Option<String> {
    let mut parts: HashMap<&[u8], BTreeSet<usize>> = HashMap::new();
    part_of.iter().enumerate().for_each(|(image, part)| {
        parts.entry(images.pixels(image)).or_default().insert(*part);
    });
    let most = parts.values().map(BTreeSet::len).max().filter(|most| *most > 1)?;
    let several: Vec<usize> = (0..images.len()).filter(|&image| parts[images.pixels(image)].len() > 1).collect();
    Some(format!(
        "{} images have pixels that occur in several parts, at most in {most}, and the claim for one teacher does not cover them: an image in k \
         parts costs as much as k teachers: {}",
        several.len(),
        first_names(&several, name)
    ))
}

/// Returns the names of the first images, and the number of the others.
pub(crate) fn first_names(images: &[usize], name: impl Fn(usize) -> String) -> String {
    const FIRST: usize = 3;
    let names = images.iter().take(FIRST).map(|image| name(*image)).collect::<Vec<_>>().join(", ");
    match images.len().saturating_sub(FIRST) {
        0 => names,
        more => format!("{names} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use speed_data::ImageShape;

    use super::*;

    fn images(pixels: &[u8]) -> Split {
        let shape = ImageShape { channels: 1, height: 1, width: 1 };
        Split::new(shape, 2, pixels.to_vec(), vec![0; pixels.len()]).expect("images")
    }

    #[test]
    fn copies_in_several_parts_are_counted_and_named() {
        let name = |image: usize| format!("{image}.png");
        // Images 0, 3 and 5 are copies in parts 0, 1 and 2; images 1 and 2 are copies in one part.
        let train = images(&[7, 8, 8, 7, 9, 7]);
        let warning = in_several_parts(&train, &[0, 0, 0, 1, 1, 2], name).expect("copies");
        assert!(warning.starts_with("3 images have pixels that occur in several parts, at most in 3, "), "{warning}");
        assert!(warning.ends_with(": 0.png, 3.png, 5.png"), "{warning}");
        assert_eq!(in_several_parts(&train, &[0; 6], name), None);
        let warning = known("pool", &train, ("training images", &images(&[7, 8])), name, "so").expect("copies");
        assert_eq!(warning, "pool: 5 of 6 images are training images too, so: 0.png, 1.png, 2.png and 2 more");
        assert_eq!(known("pool", &train, ("training images", &images(&[1])), name, "so"), None);
    }
}
