//! The class frequencies towards which students draw their predictions for the pool.

use std::fmt;

use serde::de::value::SeqAccessDeserializer;
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use speed_nn::training::InvalidField;

const FIELD: &str = "prior";
const NAMES: [&str; 2] = ["uniform", "estimated"];
/// Largest difference between 1 and the sum of given frequencies.
const TOLERANCE: f64 = 1e-6;

/// The frequencies of the classes in the pool, as a student assumes them.
///
/// As text it is `uniform`, `estimated`, or a list of frequencies.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum ClassPrior {
    /// Every class is equally frequent.
    #[default]
    Uniform,
    /// The frequencies are those of the labels that the student has received, which are public. Each class counts one image
    /// more than it has, so that none has frequency 0. A label with a doubt counts for the other classes by its doubt.
    Estimated,
    /// A positive frequency for each class.
    Given(Vec<f64>),
}

impl ClassPrior {
    /// Checks given frequencies: they must be finite and positive, with a sum of 1.
    pub(crate) fn check(&self) -> Result<(), InvalidField> {
        let Self::Given(frequencies) = self else { return Ok(()) };
        if let Some(found) = frequencies.iter().find(|one| !(one.is_finite() && **one > 0.0)) {
            let message = || format!("expected a positive frequency for each class, found {found:?}");
            return InvalidField::unless(false, FIELD, message);
        }
        let sum: f64 = frequencies.iter().sum();
        InvalidField::unless((sum - 1.0).abs() <= TOLERANCE, FIELD, || {
            format!("expected frequencies with the sum 1, found the sum {sum}")
        })
    }

    /// Checks that there is a frequency for each class.
    ///
    /// # Errors
    /// The field with both numbers.
    pub fn check_classes(&self, classes: usize) -> Result<(), InvalidField> {
        let Self::Given(frequencies) = self else { return Ok(()) };
        let found = frequencies.len();
        InvalidField::unless(found == classes, FIELD, || {
            format!("expected a frequency for each of {classes} classes, found {found}")
        })
    }

    /// Returns the frequency of each class, given the labels and their doubts; `None` if all are equal.
    pub(crate) fn frequencies(
        &self,
        labels: &[(usize, u8)],
        doubts: Option<&[f32]>,
        classes: usize,
    ) -> Option<Vec<f64>> {
        match self {
            Self::Uniform => None,
            Self::Estimated => Some(estimate(labels, doubts, classes)),
            Self::Given(frequencies) => Some(frequencies.clone()),
        }
    }
}

/// Returns the frequencies of labels, with one more image of each class.
fn estimate(labels: &[(usize, u8)], doubts: Option<&[f32]>, classes: usize) -> Vec<f64> {
    let mut counts = vec![1.0; classes];
    let others = (classes.max(2) - 1) as f64;
    for (place, &(_, label)) in labels.iter().enumerate() {
        let doubt = doubts.map_or(0.0, |doubts| f64::from(doubts[place]));
        for (class, count) in counts.iter_mut().enumerate() {
            *count += if class == usize::from(label) { 1.0 - doubt } else { doubt / others };
        }
    }
    let sum: f64 = counts.iter().sum();
    counts.into_iter().map(|count| count / sum).collect()
}

impl Serialize for ClassPrior {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Uniform => serializer.serialize_str(NAMES[0]),
            Self::Estimated => serializer.serialize_str(NAMES[1]),
            Self::Given(frequencies) => frequencies.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for ClassPrior {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl<'de> Visitor<'de> for Text {
            type Value = ClassPrior;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "\"{}\", \"{}\" or a list of frequencies", NAMES[0], NAMES[1])
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<ClassPrior, E> {
                match NAMES.iter().position(|known| *known == name) {
                    Some(0) => Ok(ClassPrior::Uniform),
                    Some(_) => Ok(ClassPrior::Estimated),
                    None => Err(E::unknown_variant(name, &NAMES)),
                }
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<ClassPrior, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list)).map(ClassPrior::Given)
            }
        }

        deserializer.deserialize_any(Text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequencies_are_positive_and_sum_to_one() {
        let refused = |frequencies: &[f64]| {
            let error = ClassPrior::Given(frequencies.to_vec()).check().expect_err("impossible");
            assert_eq!(error.field, "prior");
            error.message
        };
        for one in [0.0, -0.1, f64::NAN, f64::INFINITY] {
            assert!(refused(&[1.0, one]).starts_with("expected a positive frequency for each class, found "));
        }
        assert_eq!(refused(&[0.5, 0.25]), "expected frequencies with the sum 1, found the sum 0.75");
        assert!(refused(&[]).contains("found the sum "));
        assert!(refused(&[0.95, 0.050_01]).contains("sum"));
        let prior = ClassPrior::Given(vec![0.95, 0.05]);
        assert_eq!((prior.check(), prior.check_classes(2)), (Ok(()), Ok(())));
        let error = prior.check_classes(10).expect_err("two of ten");
        assert_eq!((error.field, &*error.message), ("prior", "expected a frequency for each of 10 classes, found 2"));
        assert!([ClassPrior::Uniform, ClassPrior::Estimated].iter().all(|prior| prior.check_classes(7).is_ok()));
    }

    #[test]
    fn the_written_form_is_a_name_or_a_list() {
        for (prior, text) in [
            (ClassPrior::Uniform, "\"uniform\""),
            (ClassPrior::Estimated, "\"estimated\""),
            (ClassPrior::Given(vec![0.25, 0.75]), "[0.25,0.75]"),
        ] {
            assert_eq!(serde_json::to_string(&prior).expect("plain data"), text);
            assert_eq!(serde_json::from_str::<ClassPrior>(text).expect("its own form"), prior);
        }
        for text in ["\"even\"", "0.5", "[\"a\"]", "null"] {
            assert!(serde_json::from_str::<ClassPrior>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn estimates_count_labels_and_their_doubts_above_a_floor() {
        let labels = [(0, 0), (3, 0), (4, 1), (9, 0), (1, 0)];
        // Four, one and no label, and one image more of each class.
        assert_eq!(estimate(&labels, None, 3), [5.0 / 8.0, 2.0 / 8.0, 1.0 / 8.0]);
        let doubtful = estimate(&labels[..2], Some(&[0.0, 0.5]), 2);
        assert_eq!(doubtful, [2.5 / 4.0, 1.5 / 4.0]);
    }
}
