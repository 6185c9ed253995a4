//! The classes of a round, by which votes, known answers and labels name them.

use crate::{Digest, ShapeError, VoteShape, alike, composed, is_assigned, is_legible, printable};

/// The classes of a round in the order of their numbers: their names, or the numbers from 0 themselves.
///
/// ```
/// use speed_core::Classes;
///
/// let classes = Classes::named(vec!["benign".into(), "malignant".into()])?;
/// assert_eq!((classes.number("malignant"), classes.number("1")), (Some(1), None));
/// assert_eq!(Classes::numbered(10)?.number("1"), Some(1));
/// # Ok::<(), speed_core::ClassesError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Classes {
    count: usize,
    /// `None` if every name is its own number.
    names: Option<Vec<String>>,
}

/// Names that are not those of the classes of a round, with the expected and the found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ClassesError(String);

impl Classes {
    /// The largest number of bytes of a name.
    pub(crate) const MAX_NAME: usize = 200;

    /// Creates classes whose names are the numbers from 0.
    ///
    /// # Errors
    /// If there are fewer than two, or more than [`VoteShape::MAX_CLASSES`].
    pub fn numbered(count: usize) -> Result<Self, ClassesError> {
        let max = VoteShape::MAX_CLASSES;
        if !(2..=max).contains(&count) {
            let error = ShapeError { side: "classes", found: count, min: 2, max };
            return Err(ClassesError(error.to_string()));
        }
        Ok(Self { count, names: None })
    }

    /// Creates classes with these names, in the form of [`composed`].
    ///
    /// # Errors
    /// If there are too few or too many, or a name is not legible or too long, or two look [`alike`].
    pub fn named(names: Vec<String>) -> Result<Self, ClassesError> {
        let Self { count, .. } = Self::numbered(names.len())?;
        let names = Self::check_names(&names)?;
        let is_numbered = names.iter().enumerate().all(|(number, name)| *name == number.to_string());
        Ok(Self { count, names: (!is_numbered).then_some(names) })
    }

    /// Returns names of classes in the form of [`composed`], whatever their number.
    ///
    /// # Errors
    /// If a name is not legible or too long, or two look [`alike`].
    pub fn check_names(names: &[String]) -> Result<Vec<String>, ClassesError> {
        let names: Vec<String> = names.iter().map(|name| composed(name)).collect();
        let is_good = |name: &String| name.len() <= Self::MAX_NAME && is_legible(name) && is_assigned(name);
        if let Some(name) = names.iter().find(|name| !is_good(name)) {
            let (max, found) = (Self::MAX_NAME, name.chars().take(100).collect::<String>());
            return Err(ClassesError(format!(
                "expected names of classes of 1 to {max} bytes of visible characters, without spaces at their ends, found {found:?}"
            )));
        }
        if let Some((first, second)) = alike(&names).first() {
            return Err(ClassesError(format!(
                "expected names of classes that cannot be taken for one another, found {first:?} and {second:?}"
            )));
        }
        Ok(names)
    }

    /// Returns the number of classes.
    #[expect(clippy::len_without_is_empty, reason = "there are at least two")]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Returns the names, or `None` if every name is its own number.
    pub fn names(&self) -> Option<&[String]> {
        self.names.as_deref()
    }

    /// Returns the name of each class.
    pub fn all_names(&self) -> Vec<String> {
        (0..self.count).map(|number| self.name(number)).collect()
    }

    /// Returns the name of a class.
    pub fn name(&self, number: usize) -> String {
        assert!(number < self.count, "class {number} of {}", self.count);
        self.names.as_ref().map_or_else(|| number.to_string(), |names| names[number].clone())
    }

    /// Returns the number of the class with this name. "01" and "+1" are not names of class 1.
    pub fn number(&self, name: &str) -> Option<u8> {
        let number = match &self.names {
            Some(names) => {
                let name = composed(name);
                names.iter().position(|other| *other == name)
            }
            None => name.parse().ok().filter(|number: &usize| *number < self.count && number.to_string() == name),
        };
        number.and_then(|number| u8::try_from(number).ok())
    }

    /// Returns SHA-256 of the names, each followed by a line feed, or `None` if every name is its own number.
    pub fn digest(&self) -> Option<Digest> {
        let names = self.names.as_ref()?;
        Some(Digest::of(names.iter().flat_map(|name| [name, "\n"]).collect::<String>()))
    }
}

/// Returns names of classes for a message: the first ten, escaped, and in quotes if they contain a comma.
pub fn class_list(names: &[String]) -> String {
    let shown = |name: &String| if name.contains(',') { format!("\"{}\"", printable(name)) } else { printable(name) };
    let first: Vec<String> = names.iter().take(10).map(shown).collect();
    first.join(", ") + if names.len() > first.len() { ", .." } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(names: &[&str]) -> Result<Classes, ClassesError> {
        Classes::named(names.iter().map(|&name| name.to_owned()).collect())
    }

    #[test]
    fn names_that_are_their_numbers_are_no_list() {
        assert_eq!(named(&["0", "1", "2"]), Classes::numbered(3));
        let shifted = named(&["1", "2", "3"]).expect("names");
        assert_eq!((shifted.number("1"), shifted.number("0"), shifted.name(2)), (Some(0), None, "3".to_owned()));
        let numbered = Classes::numbered(3).expect("classes");
        for (name, number) in [("2", Some(2)), ("3", None), ("02", None), ("+2", None), ("", None)] {
            assert_eq!(numbered.number(name), number, "{name:?}");
        }
        assert_eq!((numbered.digest(), numbered.all_names()), (None, ["0", "1", "2"].map(String::from).to_vec()));
    }

    #[test]
    fn the_digest_covers_names_and_order() {
        // printf 'benign\nmalignant\n' | sha256sum
        let digest = |names: &[&str]| named(names).expect("names").digest().expect("a list").to_hex();
        assert_eq!(
            digest(&["benign", "malignant"]),
            "09fcceb5c04948ab4c700bdbd052ee884850546c3585e2991906afb758fe0894"
        );
        assert_ne!(digest(&["benign", "malignant"]), digest(&["malignant", "benign"]));
    }

    #[test]
    fn names_that_no_line_could_hold_are_refused() {
        let long = "x".repeat(201);
        assert!(Classes::numbered(1).is_err() && Classes::numbered(257).is_err() && Classes::numbered(256).is_ok());
        for names in [&["a", ""][..], &["a", " b"], &["a", "b\nc"], &["a", "b", "a"], &[], &["a", &long]] {
            named(names).expect_err("refused");
        }
    }
}
