//! The disjoint partitions of the teachers.

use crate::{DataError, Split};
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::ops::Range;

/// Distributes `images` training images to `teachers` teachers as in the paper's published code: consecutive blocks of
/// the training file, in the order of the teachers, with every image in exactly one block.
///
/// Remainder: when `images % teachers = r`, the first `r` blocks get one image more than the others. (The published
/// code drops the last `r` images instead; with 60000 images and 250 teachers `r` is 0 and both give blocks of 240.)
///
/// The privacy analysis requires disjoint blocks: an image that is replaced at its place then changes at most one teacher's vote. An image
/// that is removed or added moves all later blocks, so no claim for one teacher covers it.
///
/// # Errors
/// If there are no teachers, or a teacher would have no image.
///
/// ```
/// let blocks = speed_data::partition::blocks(11, 4)?;
/// assert_eq!(blocks, [0..3, 3..6, 6..9, 9..11]);
/// # Ok::<(), speed_data::DataError>(())
/// ```
pub fn blocks(images: usize, teachers: usize) -> Result<Vec<Range<usize>>, DataError> {
    if teachers == 0 {
        return Err(DataError::Other("expected at least one teacher, found 0".to_owned()));
    }
    if teachers > images {
        return Err(DataError::Other(format!(
            "too many teachers: {teachers} teachers need at least {teachers} images, found {images}"
        )));
    }
    let (size, longer) = (images / teachers, images % teachers);
    let start = |teacher: usize| teacher * size + teacher.min(longer);
    Ok((0..teachers).map(|teacher| start(teacher)..start(teacher + 1)).collect())
}

/// The number of teachers in a partition whose images belong to few classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Uneven {
    /// All teachers.
    pub teachers: usize,
    /// Teachers with few classes, as [`uneven`] defines it.
    pub few: usize,
    /// Teachers with a single class.
    pub single: usize,
    /// The number of classes.
    pub classes: usize,
}

impl fmt::Display for Uneven {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { teachers, few, single, classes } = self;
        write!(
            f,
            "{few} of {teachers} teachers hold images of few of the {classes} classes, {single} of one class only: teachers hold consecutive \
             images, and these seem to be sorted; mix the training images, with their labels, before they are saved"
        )
    }
}

/// Returns images in the order of their teachers, and the range of each teacher. Every image has the teacher of its patient, so
/// `teacher_of` gives the teacher of every image; images of one teacher keep their order.
///
/// # Errors
/// The first teacher without an image.
///
/// ```
/// let (order, ranges) = speed_data::partition::by_teacher(&[1, 0, 1], 2).expect("all teachers have images");
/// assert_eq!((order, ranges), (vec![1, 0, 2], vec![0..1, 1..3]));
/// assert_eq!(speed_data::partition::by_teacher(&[1, 1], 2), Err(0));
/// ```
pub fn by_teacher(teacher_of: &[usize], teachers: usize) -> Result<(Vec<usize>, Vec<Range<usize>>), usize> {
    let mut order: Vec<usize> = (0..teacher_of.len()).collect();
    order.sort_by_key(|&image| teacher_of[image]);
    let first = |teacher: usize| order.partition_point(|&image| teacher_of[image] < teacher);
    let ranges: Vec<Range<usize>> = (0..teachers).map(|teacher| first(teacher)..first(teacher + 1)).collect();
    match ranges.iter().position(Range::is_empty) {
        Some(teacher) => Err(teacher),
        None => Ok((order, ranges)),
    }
}

/// Returns the number of parties that have an image of each class. Each party has consecutive `parts`, as many as `teachers_of` says.
#[must_use]
pub fn parties_by_class(train: &Split, parts: &[Range<usize>], teachers_of: &[u32]) -> Vec<usize> {
    let (mut counts, mut parts) = (vec![0; train.classes()], parts.iter());
    for &teachers in teachers_of {
        let own = parts.by_ref().take(teachers as usize).flat_map(|part| &train.labels()[part.clone()]);
        let classes: BTreeSet<u8> = own.copied().collect();
        classes.iter().for_each(|&class| counts[usize::from(class)] += 1);
    }
    counts
}

/// Counts the teachers whose parts hold few classes; returns `None` unless they are more than a tenth of all
/// teachers. For example, if the images are sorted by label, every teacher knows only one or two classes. A part holds
/// few classes if it has less than 60 % of the average number of classes in a random draw of the same size.
#[must_use]
pub fn uneven(train: &Split, parts: &[Range<usize>]) -> Option<Uneven> {
    const FEW: f64 = 0.6;
    let labels = train.labels();
    let mut counts = vec![0.0_f64; train.classes()];
    labels.iter().for_each(|&label| counts[usize::from(label)] += 1.0);
    let expected = |images: usize| -> f64 {
        let is_drawn = |count: f64| 1.0 - (1.0 - count / labels.len() as f64).powf(images as f64);
        counts.iter().copied().map(is_drawn).sum()
    };
    let mut known = HashMap::new();
    let (mut few, mut single) = (0, 0);
    for part in parts {
        let expected = *known.entry(part.len()).or_insert_with(|| expected(part.len()));
        let found = labels[part.clone()].iter().collect::<BTreeSet<_>>().len();
        if (found as f64) < FEW * expected {
            (few, single) = (few + 1, single + usize::from(found == 1));
        }
    }
    let found = Uneven { teachers: parts.len(), few, single, classes: train.classes() };
    (10 * few > parts.len()).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ImageShape;
    use rand::seq::SliceRandom;

    fn found(labels: Vec<u8>, classes: usize, teachers: usize) -> Option<Uneven> {
        let shape = ImageShape { channels: 1, height: 1, width: 1 };
        let split = Split::new(shape, classes, vec![0; labels.len()], labels).expect("a valid split");
        uneven(&split, &blocks(split.len(), teachers).expect("enough images"))
    }

    #[test]
    fn sorted_labels_are_seen_and_mixed_ones_are_not() {
        let mut stream = speed_core::random::Streams::new(1).stream("labels", 0);
        for (classes, images, teachers) in [(10, 5000, 250), (10, 5000, 25), (2, 200, 10), (2, 400, 3), (256, 5120, 20)]
        {
            let sorted: Vec<u8> = (0..images).map(|image| (image * classes / images) as u8).collect();
            let seen = found(sorted.clone(), classes, teachers).expect("sorted");
            assert!(
                seen.few * 2 > teachers && seen.single <= seen.few,
                "{classes} classes, {teachers} teachers: {seen:?}"
            );
            for _ in 0..20 {
                let mut mixed = sorted.clone();
                mixed.shuffle(&mut stream);
                assert_eq!(found(mixed, classes, teachers), None, "{classes} classes, {teachers} teachers");
            }
        }
        let text = found((0..200).map(|image| image / 20).collect(), 10, 20).expect("sorted").to_string();
        assert!(
            text.starts_with("20 of 20 teachers hold images of few of the 10 classes, 20 of one class only"),
            "{text}"
        );
    }

    #[test]
    fn parties_with_a_class_are_counted() {
        let shape = ImageShape { channels: 1, height: 1, width: 1 };
        let train = Split::new(shape, 3, vec![0; 6], vec![0, 0, 1, 0, 2, 2]).expect("a valid split");
        let parts = [0..1, 1..3, 3..4, 4..6];
        assert_eq!(parties_by_class(&train, &parts, &[2, 1, 1]), [2, 1, 1]);
        assert_eq!(parties_by_class(&train, &parts, &[1, 3]), [2, 1, 1]);
        assert_eq!(parties_by_class(&train, &parts, &[4]), [1, 1, 1]);
    }

    #[test]
    fn a_rare_class_or_a_single_teacher_is_not_uneven() {
        // One image in a hundred belongs to the second class, and most teachers have no image of that class.
        let rare = (0..5000).map(|image| u8::from(image % 100 == 0)).collect();
        assert_eq!(found(rare, 2, 250), None);
        assert_eq!(found((0..200).map(|image| image / 20).collect(), 10, 1), None);
    }

    #[test]
    fn every_image_is_in_exactly_one_block_of_the_right_size() {
        for images in 1..=60 {
            for teachers in 1..=images {
                let blocks = blocks(images, teachers).expect("enough images");
                assert_eq!(blocks.len(), teachers);
                let mut owners = vec![0; images];
                for (teacher, block) in blocks.iter().enumerate() {
                    let extra = usize::from(teacher < images % teachers);
                    assert_eq!(block.len(), images / teachers + extra, "{images} images, teacher {teacher}/{teachers}");
                    block.clone().for_each(|image| owners[image] += 1);
                }
                assert!(owners.iter().all(|&count| count == 1), "{images} images, {teachers} teachers");
                assert!(blocks.windows(2).all(|pair| pair[0].end == pair[1].start));
            }
        }
    }

    #[test]
    fn the_papers_250_blocks_have_240_images() {
        let blocks = blocks(60_000, 250).expect("enough images");
        assert!(blocks.iter().enumerate().all(|(i, block)| *block == (240 * i..240 * (i + 1))));
    }

    #[test]
    fn no_teacher_and_a_teacher_without_image_are_refused() {
        for (images, teachers, words) in [
            (10, 0, "at least one teacher"),
            (0, 0, "at least one teacher"),
            (10, 11, "11 teachers need at least 11 images, found 10"),
            (0, 1, "1 teachers need at least 1 images, found 0"),
        ] {
            let error = blocks(images, teachers).expect_err("refused").to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
