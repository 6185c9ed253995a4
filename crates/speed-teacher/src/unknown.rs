//! Images unlike a teacher's own, and what a teacher does with them.

use rand::seq::IndexedRandom;
use serde::{Deserialize, Serialize};
use speed_core::Vote;
use speed_core::random::Stream;
use speed_data::{ImageShape, Split};
use speed_nn::reach::reach;
use speed_nn::training::{NamedTensors, TensorValues};

/// The longest side of a picture in a comparison: larger ones become the means of square blocks.
const SIDE: usize = 16;
/// The byte that is 0 in an encoder's vectors.
const ZERO: u8 = 128;
/// The largest number of a teacher's own images that are compared, because the time of the calibration grows with its square.
const MOST: usize = 5000;
/// The tensors of own images in a model's file. No field of a network has a name with a hyphen.
const TENSORS: [&str; 4] = ["own-images.directions", "own-images.labels", "own-images.lacking", "own-images.least"];

/// What a teacher that lacks classes does with an image unlike its own: `teacher.unknown`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unknown {
    /// It votes as for any other image.
    Vote,
    /// It votes for a random one of the classes that it lacks.
    Random,
    /// Its vote is empty.
    #[default]
    Abstain,
}

impl Unknown {
    /// Returns the vote of a teacher that lacks the classes `lacking` on an image to which it gives `label`; `None` is an empty vote. A
    /// teacher with all classes always votes: an unusual image must still be of one of them.
    pub fn vote(self, label: u8, is_like_own: bool, lacking: &[u8], stream: &mut Stream) -> Vote {
        match self {
            Self::Random if !is_like_own => lacking.choose(stream).copied().or(Some(label)),
            Self::Abstain if !is_like_own && !lacking.is_empty() => None,
            _ => Some(label),
        }
    }
}

/// Returns the classes below `classes`, at most 256, that no own label has.
pub fn lacking_classes(own: impl IntoIterator<Item = u8>, classes: usize) -> Vec<u8> {
    let mut has = [false; 256];
    own.into_iter().for_each(|label| has[usize::from(label)] = true);
    (0..=u8::MAX).take(classes).filter(|class| !has[usize::from(*class)]).collect()
}

/// The training images of a teacher that lacks classes, by which it recognises images unlike its own: those whose direction is less
/// similar to every own image than four fifths of the own images are to their nearest other one, and those whose nearest own image has
/// another label than the network gives.
///
/// As private as the images; `Debug` shows none.
#[derive(Clone, PartialEq)]
pub struct OwnImages {
    lacking: Vec<u8>,
    form: Form,
    /// The least cosine of an image that is like its own.
    least: f32,
    labels: Vec<u8>,
    /// The directions of the images, one after the other.
    directions: Vec<f32>,
}

#[derive(Clone, Copy, PartialEq)]
struct Form {
    shape: ImageShape,
    are_vectors: bool,
}

impl OwnImages {
    /// Calibrates on the images `own` of `data`, which are pictures or an encoder's vectors. `None` if the teacher votes on all images: it
    /// has all classes, or only one image.
    pub fn new(are_vectors: bool, data: &Split, own: &[usize]) -> Option<Self> {
        let lacking = lacking_classes(own.iter().map(|&image| data.label(image)), data.classes());
        if lacking.is_empty() {
            return None;
        }
        let form = Form { shape: data.shape(), are_vectors };
        // Images may be sorted by class, so the compared ones come from everywhere.
        let compared = own.len().min(MOST);
        let own: Vec<usize> = (0..compared).map(|i| own[i * own.len() / compared]).collect();
        let directions: Vec<Vec<f32>> = own.iter().map(|&image| form.direction(data.pixels(image))).collect();
        let farthest = reach(compared, |one, other| -f64::from(dot(&directions[one], &directions[other])))?;
        let labels = own.iter().map(|&image| data.label(image)).collect();
        Some(Self { lacking, form, least: -farthest as f32, labels, directions: directions.concat() })
    }

    /// Returns the vote on an image, in the order of a [`Split`], to which the network gives `label`.
    pub fn vote(&self, unknown: Unknown, label: u8, pixels: &[u8], stream: &mut Stream) -> Vote {
        if unknown == Unknown::Vote {
            return Some(label);
        }
        let direction = self.form.direction(pixels);
        let mut nearest = (f32::NEG_INFINITY, label);
        for (own, &label) in self.directions.chunks_exact(direction.len()).zip(&self.labels) {
            let cosine = dot(own, &direction);
            if cosine > nearest.0 {
                nearest = (cosine, label);
            }
        }
        let is_like_own = nearest.0 >= self.least && nearest.1 == label;
        unknown.vote(label, is_like_own, &self.lacking, stream)
    }

    /// Returns the tensors of a model's file.
    pub fn to_tensors(&self) -> NamedTensors {
        let width = self.form.width();
        let numbers = |classes: &[u8]| classes.iter().map(|&class| f32::from(class)).collect::<Vec<_>>();
        let parts = [
            (vec![self.labels.len(), width], self.directions.clone()),
            (vec![self.labels.len()], numbers(&self.labels)),
            (vec![self.lacking.len()], numbers(&self.lacking)),
            (vec![1], vec![self.least]),
        ];
        let named = TENSORS.into_iter().zip(parts);
        named.map(|(name, (shape, values))| (name.to_owned(), TensorValues { shape, values })).collect()
    }

    /// Takes the tensors of own images out of a model's, if they are there.
    ///
    /// # Errors
    /// If they are not those of a teacher for these images and classes.
    pub fn take(
        tensors: &mut NamedTensors,
        (shape, are_vectors): (ImageShape, bool),
        classes: usize,
    ) -> Result<Option<Self>, String> {
        let form = Form { shape, are_vectors };
        let found = TENSORS.map(|name| tensors.remove(name));
        let [Some(directions), Some(labels), Some(lacking), Some(least)] = &found else {
            return match found.into_iter().flatten().next() {
                None => Ok(None),
                Some(_) => Err(format!("expected the tensors {}, found some of them", TENSORS.join(", "))),
            };
        };
        let numbers = || {
            let class = |value: &f32| ((0.0..256.0).contains(value) && value.fract() == 0.0).then_some(*value as u8);
            let labels_of = |tensor: &TensorValues| tensor.values.iter().map(class).collect::<Option<Vec<u8>>>();
            let &[least] = &least.values[..] else { return None };
            let (lacking, labels) = (labels_of(lacking)?, labels_of(labels)?);
            let own = Self { lacking, form, least, labels, directions: directions.values.clone() };
            (directions.shape.len() == 2 && directions.shape[1] == form.width() && own.is_of(classes)).then_some(own)
        };
        match numbers() {
            Some(own) => Ok(Some(own)),
            None => {
                let width = form.width();
                let found = [directions, labels, lacking, least].map(|tensor| &tensor.shape);
                let expected = format!(
                    "directions of {width} finite values, a label for each, some of {classes} classes, and a finite cosine"
                );
                Err(format!("expected the own images of a teacher: {expected}, found tensors of the shapes {found:?}"))
            }
        }
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let Self { lacking, least, labels, directions, .. } = self;
        let numbers: Vec<u8> = [least].into_iter().chain(directions).flat_map(|value| value.to_le_bytes()).collect();
        [&[lacking.len() as u8], &lacking[..], &(labels.len() as u32).to_le_bytes(), labels, &numbers].concat()
    }

    /// Reads [`Self::to_bytes`]; `None` if they are not those of a teacher for these images and classes.
    pub(crate) fn from_bytes(bytes: &[u8], (shape, are_vectors): (ImageShape, bool), classes: usize) -> Option<Self> {
        let (&lacking, rest) = bytes.split_first()?;
        let (lacking, rest) = rest.split_at_checked(lacking.into())?;
        let (count, rest) = rest.split_first_chunk()?;
        let (labels, rest) = rest.split_at_checked(usize::try_from(u32::from_le_bytes(*count)).ok()?)?;
        let (numbers, []) = rest.as_chunks::<4>() else { return None };
        let (least, directions) = numbers.split_first()?;
        let directions = directions.iter().map(|number| f32::from_le_bytes(*number)).collect();
        let form = Form { shape, are_vectors };
        let (lacking, labels) = (lacking.to_vec(), labels.to_vec());
        let own = Self { lacking, form, least: f32::from_le_bytes(*least), labels, directions };
        own.is_of(classes).then_some(own)
    }

    /// Returns whether all numbers are possible for a teacher of `classes` classes.
    fn is_of(&self, classes: usize) -> bool {
        let Self { lacking, least, labels, directions, form } = self;
        (1..classes).contains(&lacking.len())
            && lacking.is_sorted_by(|one, other| one < other)
            && lacking.iter().chain(labels).all(|class| usize::from(*class) < classes)
            && !labels.is_empty()
            && labels.len().checked_mul(form.width()) == Some(directions.len())
            && directions.iter().chain([least]).all(|value| value.is_finite())
    }
}

speed_core::debug_as!(OwnImages, _this => "OwnImages {{ .. }}");

impl Form {
    /// Returns the length of the square blocks whose means are compared.
    fn block(self) -> usize {
        let ImageShape { height, width, .. } = self.shape;
        if self.are_vectors { 1 } else { height.max(width).div_ceil(SIDE) }
    }

    fn width(self) -> usize {
        let ImageShape { channels, height, width } = self.shape;
        channels * height.div_ceil(self.block()) * width.div_ceil(self.block())
    }

    /// Returns the direction of an image: roots of the means of its blocks, around their mean, scaled to length 1; zeros for an image of
    /// one grey level. Roots keep a few large values from deciding alone.
    fn direction(self, pixels: &[u8]) -> Vec<f32> {
        let ImageShape { channels, height, width } = self.shape;
        let mut values: Vec<f32> = if self.are_vectors {
            let value = |&byte: &u8| f32::from(byte) - f32::from(ZERO);
            pixels.iter().map(value).map(|value| value.abs().sqrt().copysign(value)).collect()
        } else {
            let block = self.block();
            let mut values = Vec::with_capacity(self.width());
            for channel in 0..channels {
                let rows = &pixels[channel * height * width..][..height * width];
                let places =
                    (0..height).step_by(block).flat_map(|top| (0..width).step_by(block).map(move |left| (top, left)));
                for (top, left) in places {
                    let (bottom, right) = ((top + block).min(height), (left + block).min(width));
                    let sum: u32 = (top..bottom)
                        .flat_map(|row| &rows[row * width + left..row * width + right])
                        .map(|&byte| u32::from(byte))
                        .sum();
                    values.push((sum as f32 / ((bottom - top) * (right - left)) as f32).sqrt());
                }
            }
            values
        };
        let mean = values.iter().sum::<f32>() / values.len() as f32;
        values.iter_mut().for_each(|value| *value -= mean);
        let length = dot(&values, &values).sqrt();
        if length > 0.0 {
            values.iter_mut().for_each(|value| *value /= length);
        }
        values
    }
}

/// Returns the sum of products. Eight sums, so that the compiler uses vector instructions without changing the order.
fn dot(one: &[f32], other: &[f32]) -> f32 {
    let (ones, others) = (one.chunks_exact(8), other.chunks_exact(8));
    let rest: f32 = ones.remainder().iter().zip(others.remainder()).map(|(a, b)| a * b).sum();
    let mut sums = [0.0_f32; 8];
    for (a, b) in ones.zip(others) {
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            *sum += a * b;
        }
    }
    sums.iter().sum::<f32>() + rest
}

#[cfg(test)]
mod tests {
    use speed_core::random::Streams;
    use speed_data::digits::{DigitsConfig, generate};

    use super::*;

    fn digits() -> (Split, Split) {
        let dataset = generate(DigitsConfig { train: 1500, test: 500 }, &Streams::new(3));
        (dataset.train, dataset.test)
    }

    /// Returns the own images of a teacher with the images of classes below `classes`.
    fn own(train: &Split, classes: u8) -> Option<OwnImages> {
        let own: Vec<usize> = (0..train.len()).filter(|&image| train.label(image) < classes).collect();
        OwnImages::new(false, train, &own)
    }

    #[test]
    fn a_teacher_with_two_classes_abstains_on_most_images_of_others_and_votes_on_most_of_its_own() {
        let (train, test) = digits();
        let teacher = own(&train, 2).expect("a teacher that lacks classes");
        let mut stream = Streams::new(1).stream("unknown", 0);
        // A network that is right about its own classes.
        let label = |image: usize| test.label(image) % 2;
        let mut vote = |unknown, image| teacher.vote(unknown, label(image), test.pixels(image), &mut stream);
        let votes: Vec<Vote> = (0..test.len()).map(|image| vote(Unknown::Abstain, image)).collect();
        let share = |is_own: bool| {
            let of = votes.iter().zip(test.labels()).filter(|(_, label)| (**label < 2) == is_own);
            of.clone().filter(|(vote, _)| vote.is_some()).count() as f64 / of.count() as f64
        };
        assert!(share(true) > 0.6, "votes on {} of the images of its classes", share(true));
        assert!(share(false) < 0.4, "votes on {} of the images of other classes", share(false));
        for (image, found) in votes.iter().enumerate() {
            // The same images by the same rule, with another answer.
            let random = vote(Unknown::Random, image).expect("never empty");
            assert!(found.map_or(random >= 2, |found| found == random), "image {image}: {found:?}, {random}");
            assert_eq!(vote(Unknown::Vote, image), Some(label(image)));
        }
        // A label that no near image has.
        let other = (0..test.len()).filter(|&image| {
            votes[image].is_some()
                && teacher.vote(Unknown::Abstain, 1 - label(image), test.pixels(image), &mut stream).is_some()
        });
        assert_eq!(other.count(), 0);
    }

    #[test]
    fn a_teacher_with_all_classes_or_one_image_votes_on_everything() {
        let (train, _) = digits();
        assert!(own(&train, 10).is_none());
        assert!(OwnImages::new(false, &train, &[7]).is_none());
        assert!(OwnImages::new(false, &train, &[]).is_none());
        let mut stream = Streams::new(1).stream("unknown", 0);
        assert_eq!(Unknown::Abstain.vote(3, false, &[], &mut stream), Some(3));
        assert_eq!(Unknown::Vote.vote(3, false, &[1], &mut stream), Some(3));
        assert_eq!(Unknown::Random.vote(3, false, &[1], &mut stream), Some(1));
        assert_eq!(Unknown::Abstain.vote(3, false, &[1], &mut stream), None);
        assert_eq!(lacking_classes([0, 2, 2], 4), [1, 3]);
        assert_eq!(lacking_classes([], 256).len(), 256);
    }

    #[test]
    fn tensors_keep_own_images_and_other_tensors_are_refused() {
        let (train, _) = digits();
        let form = (train.shape(), false);
        let teacher = own(&train, 3).expect("a teacher that lacks classes");
        let take = |mut tensors: NamedTensors| OwnImages::take(&mut tensors, form, 10);
        assert!(take(teacher.to_tensors()) == Ok(Some(teacher.clone())));
        assert!(take(NamedTensors::new()) == Ok(None));
        let bytes = teacher.to_bytes();
        assert!(OwnImages::from_bytes(&bytes, form, 10).as_ref() == Some(&teacher));
        let short = (0..20).chain([bytes.len() - 1]).map(|length| &bytes[..length]);
        assert!(
            short
                .chain([&[bytes.as_slice(), &[0; 4]].concat()[..]])
                .all(|bytes| { OwnImages::from_bytes(bytes, form, 10).is_none() })
        );
        type Spoil = fn(&mut NamedTensors);
        let cases: [Spoil; 7] = [
            |tensors| drop(tensors.remove(TENSORS[1])),
            |tensors| tensors.get_mut(TENSORS[0]).expect("there").shape = vec![1, 3],
            |tensors| tensors.get_mut(TENSORS[0]).expect("there").values[5] = f32::NAN,
            |tensors| tensors.get_mut(TENSORS[1]).expect("there").values.truncate(1),
            |tensors| tensors.get_mut(TENSORS[2]).expect("there").values[0] = 9.5,
            |tensors| tensors.get_mut(TENSORS[2]).expect("there").values[6] = 10.0,
            |tensors| tensors.get_mut(TENSORS[3]).expect("there").values[0] = f32::INFINITY,
        ];
        for (case, spoil) in cases.into_iter().enumerate() {
            let mut tensors = teacher.to_tensors();
            spoil(&mut tensors);
            assert!(take(tensors).is_err(), "case {case}");
        }
        assert_eq!(format!("{teacher:?}"), "OwnImages { .. }");
    }

    #[test]
    fn directions_have_length_1_and_do_not_depend_on_brightness() {
        let of = |shape, are_vectors, pixels: &[u8]| Form { shape, are_vectors }.direction(pixels);
        // 20 x 34 pixels become 7 x 12 means of 3 x 3 pixels, those at the right of 3 x 1.
        let shape = ImageShape { channels: 1, height: 20, width: 34 };
        let pixels: Vec<u8> = (0..20 * 34).map(|i| (i * 7 % 60) as u8).collect();
        let direction = of(shape, false, &pixels);
        assert_eq!(direction.len(), 7 * 12);
        assert!((dot(&direction, &direction) - 1.0).abs() < 1e-5);
        let brighter: Vec<u8> = pixels.iter().map(|pixel| pixel * 4).collect();
        assert!((dot(&direction, &of(shape, false, &brighter)) - 1.0).abs() < 1e-5);
        assert!(of(shape, false, &[9; 20 * 34]).iter().all(|value| *value == 0.0));
        let vector = ImageShape { channels: 1, height: 1, width: 3 };
        let direction = of(vector, true, &[128 + 100, 128, 128 - 100]);
        let half = 0.5_f32.sqrt();
        assert!((direction[0] - half).abs() < 1e-6 && direction[1].abs() < 1e-6 && (direction[2] + half).abs() < 1e-6);
    }
}
