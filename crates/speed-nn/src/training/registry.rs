//! Networks by name: the built-in ones, and those of the program that uses these crates.

use std::sync::{PoisonError, RwLock};

/// A value that has a name.
pub trait Named: Copy {
    /// Returns its name in a config.
    fn name(self) -> &'static str;
}

/// Makes a [`Named`] type equivalent to its name in configs, comparisons and messages. `$find` returns the value with a
/// name, as [`Registry::find`] does.
#[macro_export]
macro_rules! by_name {
    ($type:ty, $find:path) => {
        impl PartialEq for $type {
            fn eq(&self, other: &Self) -> bool {
                $crate::training::Named::name(*self) == $crate::training::Named::name(*other)
            }
        }

        impl Eq for $type {}

        impl ::std::fmt::Debug for $type {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str($crate::training::Named::name(*self))
            }
        }

        impl ::serde::Serialize for $type {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str($crate::training::Named::name(*self))
            }
        }

        impl<'de> ::serde::Deserialize<'de> for $type {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let name = <String as ::serde::Deserialize>::deserialize(deserializer)?;
                $find(&name).map_err(::serde::de::Error::custom)
            }
        }
    };
}

/// Values by name: the built-in ones, and others that a program adds.
#[derive(Debug)]
pub struct Registry<T: 'static> {
    built_in: &'static [T],
    added: RwLock<Vec<T>>,
}

/// The reason why a name cannot be registered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the fields")]
#[non_exhaustive]
pub enum RegistrationError {
    /// The name is already registered.
    #[error("the name {name:?} is already registered")]
    Taken { name: String },
    /// The name is empty, or not of lower-case letters, digits and hyphens.
    #[error("expected a name of lower-case letters, digits and hyphens, found {name:?}")]
    Name { name: String },
}

impl<T: Named> Registry<T> {
    /// Returns a registry with the built-in values only.
    pub const fn new(built_in: &'static [T]) -> Self {
        Self { built_in, added: RwLock::new(Vec::new()) }
    }

    /// Adds a value, which can then be found by its name.
    ///
    /// # Errors
    /// [`RegistrationError`].
    pub fn add(&self, thing: T) -> Result<T, RegistrationError> {
        let name = thing.name();
        let is_part = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if name.is_empty() || !name.bytes().all(is_part) {
            return Err(RegistrationError::Name { name: name.to_owned() });
        }
        let mut added = self.added.write().unwrap_or_else(PoisonError::into_inner);
        if self.built_in.iter().chain(added.iter()).any(|other| other.name() == name) {
            return Err(RegistrationError::Taken { name: name.to_owned() });
        }
        added.push(thing);
        Ok(thing)
    }

    /// Returns all values: the built-in ones first, then the others in the order of their registration.
    pub fn all(&self) -> Vec<T> {
        let added = self.added.read().unwrap_or_else(PoisonError::into_inner);
        self.built_in.iter().chain(added.iter()).copied().collect()
    }

    /// Returns the value with a name.
    ///
    /// # Errors
    /// A message that lists the known names.
    pub fn find(&self, name: &str) -> Result<T, String> {
        let all = self.all();
        all.iter().find(|thing| thing.name() == name).copied().ok_or_else(|| {
            let names: Vec<String> = all.iter().map(|thing| format!("`{}`", thing.name())).collect();
            format!("unknown variant `{name}`, expected one of {}", names.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Thing(&'static str);

    impl Named for Thing {
        fn name(self) -> &'static str {
            self.0
        }
    }

    static THINGS: Registry<Thing> = Registry::new(&[Thing("one"), Thing("two")]);

    #[test]
    fn names_are_unique_and_found() {
        assert_eq!(THINGS.add(Thing("one")), Err(RegistrationError::Taken { name: "one".into() }));
        for name in ["", "My net", "a_b"] {
            assert_eq!(THINGS.add(Thing(name)), Err(RegistrationError::Name { name: name.into() }));
        }
        assert!(THINGS.find("three").expect_err("unknown").contains("`one`, `two`"));
        assert_eq!(THINGS.add(Thing("three")), Ok(Thing("three")));
        assert_eq!(THINGS.find("three"), Ok(Thing("three")));
        assert!(THINGS.add(Thing("three")).is_err());
        assert_eq!(THINGS.all().len(), 3);
    }
}
