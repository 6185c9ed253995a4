//! The disjoint partitions of the teachers.

use crate::{DataError, Split};
use rand::RngExt;
use rand::seq::SliceRandom;
use speed_core::random::{Stream, Streams};
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

/// The least and the greatest parameter of a division into [`unequal`] parties.
pub const SKEWS: [f64; 2] = [0.01, 1000.0];

/// Draws of a division before it is refused. A strong skew often leaves a party with fewer images than teachers, so the division is drawn
/// again, as in other experiments with such divisions.
const DRAWS: u64 = 1000;

/// Divides images with these labels, below `classes`, among parties with `teachers[p]` teachers each, and returns the images of every
/// teacher, party after party. Every image belongs to exactly one teacher.
///
/// Each class is divided among the parties in proportions from a Dirichlet distribution with all parameters equal to `skew`, in
/// [`SKEWS`]: 100 gives almost equal parties, and 0.1 parties with one to three classes. The teachers of a party get random images of it,
/// as many as each other. The division is a function of labels and streams. It depends on the labels of all images, so an image with
/// another label moves others to other teachers, and no claim for one teacher covers it.
///
/// # Errors
/// If a party has no teacher, the skew is out of range, or 1000 divisions leave a teacher without an image.
pub fn unequal(
    labels: &[u8],
    classes: usize,
    teachers: &[usize],
    skew: f64,
    streams: &Streams,
) -> Result<Vec<Vec<usize>>, DataError> {
    let [least, most] = SKEWS;
    if !(least..=most).contains(&skew) || teachers.is_empty() || teachers.contains(&0) {
        let found = format!("a skew of {skew} and parties of {teachers:?} teachers");
        return Err(DataError::Other(format!(
            "expected a skew from {least} to {most} and parties of at least one teacher, found {found}"
        )));
    }
    let mut lacking = None;
    for draw in 0..DRAWS {
        let mut stream = streams.stream("unequal parties", draw);
        let mut parties = dirichlet_parties(labels, classes, teachers.len(), skew, &mut stream);
        let short = parties.iter().zip(teachers).position(|(images, teachers)| images.len() < *teachers);
        if let Some(party) = short {
            lacking = lacking.or(Some((party, parties[party].len())));
            continue;
        }
        let mut divided = Vec::with_capacity(teachers.iter().sum());
        for (images, teachers) in parties.iter_mut().zip(teachers) {
            images.shuffle(&mut stream);
            divided.extend(blocks(images.len(), *teachers)?.into_iter().map(|block| images[block].to_vec()));
        }
        return Ok(divided);
    }
    let (party, images) = lacking.unwrap_or_default();
    let first: usize = teachers[..party].iter().sum();
    Err(DataError::Other(format!(
        "{DRAWS} divisions of {} images by skew {skew} left a teacher without an image; the first left party {party}, with {} teachers \
         from teacher {first} on, {images} images: use fewer teachers, a larger skew, or more images",
        labels.len(),
        teachers[party]
    )))
}

/// Divides the images of every class among `parties` parties in proportions from a Dirichlet distribution.
fn dirichlet_parties(labels: &[u8], classes: usize, parties: usize, skew: f64, stream: &mut Stream) -> Vec<Vec<usize>> {
    let mut divided = vec![Vec::new(); parties];
    for class in 0..classes {
        let mut images: Vec<usize> = (0..labels.len()).filter(|&image| usize::from(labels[image]) == class).collect();
        images.shuffle(stream);
        let weights: Vec<f64> = (0..parties).map(|_| gamma(skew, stream)).collect();
        let all: f64 = weights.iter().sum();
        let (mut start, mut sum) = (0, 0.0);
        for (party, weight) in weights.iter().enumerate() {
            sum += weight;
            // If all weights are 0, which needs a tiny skew, the last party gets the class.
            let share = if party + 1 == parties { 1.0 } else { sum / all.max(f64::MIN_POSITIVE) };
            let end = ((share * images.len() as f64) as usize).clamp(start, images.len());
            divided[party].extend_from_slice(&images[start..end]);
            start = end;
        }
    }
    divided
}

/// Draws from the gamma distribution with this shape and scale 1: an exponential for each unit of the shape, and for the rest
/// Johnk's method.
fn gamma(shape: f64, stream: &mut Stream) -> f64 {
    let mut open = || 1.0 - stream.random::<f64>();
    let whole = shape.floor();
    let rest = shape - whole;
    let units: f64 = (0..whole as u64).map(|_| -libm::log(open())).sum();
    if rest == 0.0 {
        return units;
    }
    loop {
        let (one, other) = (libm::pow(open(), 1.0 / rest), libm::pow(open(), 1.0 / (1.0 - rest)));
        let sum = one + other;
        if sum > 0.0 && sum <= 1.0 {
            return units - libm::log(open()) * one / sum;
        }
    }
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

/// Returns the images of all parts, one part after the other, and the range of each part.
pub fn consecutive<'a>(parts: impl IntoIterator<Item = &'a Vec<usize>>) -> (Vec<usize>, Vec<Range<usize>>) {
    let mut order = Vec::new();
    let range = |part: &'a Vec<usize>| {
        order.extend_from_slice(part);
        order.len() - part.len()..order.len()
    };
    let ranges = parts.into_iter().map(range).collect();
    (order, ranges)
}

/// Returns the images of every teacher, in their order. Every image has the teacher of its patient, so `teacher_of` gives the teacher of
/// every image.
///
/// # Errors
/// The first teacher without an image.
///
/// ```
/// use speed_data::partition::{by_teacher, consecutive};
/// let parts = by_teacher(&[1, 0, 1], 2).expect("all teachers have images");
/// assert_eq!(consecutive(&parts), (vec![1, 0, 2], vec![0..1, 1..3]));
/// assert_eq!(by_teacher(&[1, 1], 2), Err(0));
/// ```
pub fn by_teacher(teacher_of: &[usize], teachers: usize) -> Result<Vec<Vec<usize>>, usize> {
    let mut parts = vec![Vec::new(); teachers];
    teacher_of.iter().enumerate().for_each(|(image, &teacher)| parts[teacher].push(image));
    parts.iter().position(Vec::is_empty).map_or(Ok(parts), Err)
}

/// Returns the number of parties that have an image of each of `classes` classes. `labels` are in the order of the parts; each party has
/// consecutive `parts`, as many as `teachers_of` says.
pub fn parties_by_class(labels: &[u8], classes: usize, parts: &[Range<usize>], teachers_of: &[u32]) -> Vec<usize> {
    let (mut counts, mut parts) = (vec![0; classes], parts.iter());
    for &teachers in teachers_of {
        let own = parts.by_ref().take(teachers as usize).flat_map(|part| &labels[part.clone()]);
        let classes: BTreeSet<u8> = own.copied().collect();
        classes.iter().for_each(|&class| counts[usize::from(class)] += 1);
    }
    counts
}

/// Counts the teachers whose parts hold few classes; returns `None` unless they are more than a tenth of all
/// teachers. For example, if the images are sorted by label, every teacher knows only one or two classes. A part holds
/// few classes if it has less than 60 % of the average number of classes in a random draw of the same size.
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
        let parts = [0..1, 1..3, 3..4, 4..6];
        let counts = |teachers_of: &[u32]| parties_by_class(&[0, 0, 1, 0, 2, 2], 3, &parts, teachers_of);
        assert_eq!(counts(&[2, 1, 1]), [2, 1, 1]);
        assert_eq!(counts(&[1, 3]), [2, 1, 1]);
        assert_eq!(counts(&[4]), [1, 1, 1]);
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

    /// Returns the number of classes of every party, for ten parties of five teachers and 5000 images of ten classes.
    fn classes_of_parties(skew: f64, seed: u64) -> Vec<usize> {
        let labels: Vec<u8> = (0..5000).map(|image| (image % 10) as u8).collect();
        let divided = unequal(&labels, 10, &[5; 10], skew, &Streams::new(seed)).expect("a division");
        assert_eq!(divided.len(), 50);
        let mut owners = vec![0; labels.len()];
        divided.iter().flatten().for_each(|&image| owners[image] += 1);
        assert!(owners.iter().all(|&count| count == 1), "every image has one teacher");
        assert!(divided.iter().all(|images| !images.is_empty()));
        let party = |teachers: &[Vec<usize>]| {
            let sizes = teachers.iter().map(Vec::len);
            assert!(sizes.clone().max() <= sizes.min().map(|least| least + 1), "equal teachers of a party");
            let mut counts = [0; 10];
            teachers.iter().flatten().for_each(|&image| counts[usize::from(labels[image])] += 1);
            let all: usize = counts.iter().sum();
            counts.iter().filter(|count| **count * 20 > all).count()
        };
        divided.chunks(5).map(party).collect()
    }

    #[test]
    fn a_division_is_disjoint_deterministic_and_as_unequal_as_its_skew() {
        for seed in 0..3 {
            let equal: usize = classes_of_parties(100.0, seed).iter().sum();
            let unequal: usize = classes_of_parties(0.1, seed).iter().sum();
            assert!(equal >= 95, "{equal} classes of ten parties with more than 5 % of the party's images");
            assert!((10..=45).contains(&unequal), "{unequal}");
        }
        let labels: Vec<u8> = (0..300).map(|image| (image % 3) as u8).collect();
        let divide = |seed| unequal(&labels, 3, &[3, 2], 0.5, &Streams::new(seed)).expect("a division");
        assert_eq!(divide(1), divide(1));
        assert_ne!(divide(1), divide(2));
    }

    #[test]
    fn gamma_has_its_mean_and_variance() {
        let mut stream = Streams::new(8).stream("gamma", 0);
        for shape in [0.1, 0.7, 1.0, 2.5, 100.0] {
            let draws: Vec<f64> = (0..20_000).map(|_| gamma(shape, &mut stream)).collect();
            let mean = draws.iter().sum::<f64>() / 20_000.0;
            let variance = draws.iter().map(|draw| (draw - mean) * (draw - mean)).sum::<f64>() / 20_000.0;
            // Both are the shape; the bounds are about six standard deviations.
            assert!((mean - shape).abs() < 0.045 * shape.sqrt(), "{shape}: mean {mean}");
            assert!(
                (variance - shape).abs() < 0.06 * shape * (2.0 + 6.0 / shape).sqrt(),
                "{shape}: variance {variance}"
            );
        }
    }

    #[test]
    fn impossible_divisions_are_refused() {
        let refused = |images: usize, teachers: &[usize], skew| {
            let labels: Vec<u8> = (0..images).map(|image| (image % 2) as u8).collect();
            unequal(&labels, 2, teachers, skew, &Streams::new(1)).expect_err("refused").to_string()
        };
        assert!(refused(10, &[1, 1], 0.0).starts_with("expected a skew from 0.01 to 1000"));
        assert!(refused(10, &[1, 1], f64::NAN).contains("found a skew of NaN"));
        assert!(refused(10, &[1, 0], 1.0).contains("parties of [1, 0] teachers"));
        assert!(refused(10, &[], 1.0).contains("at least one teacher"));
        let short = refused(10, &[4, 7], 1.0);
        assert!(
            short.contains("divisions of 10 images by skew 1 left a teacher without an image; the first"),
            "{short}"
        );
        assert!(short.contains("use fewer teachers, a larger skew, or more images"), "{short}");
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
