//! Choices with the same names on the command line, in config files and in messages.

/// A name that is not one of the choices.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {}, found {found:?}{}", list(expected), did_you_mean(found, expected.iter().copied()))]
#[non_exhaustive]
pub struct NameError {
    /// The names of the choices.
    pub expected: &'static [&'static str],
    /// The name found, cut after 80 characters.
    pub found: String,
}

impl NameError {
    /// Creates the error for the text `found`.
    pub fn new(expected: &'static [&'static str], found: &str) -> Self {
        Self { expected, found: found.chars().take(80).collect() }
    }
}

/// Formats a list as "a, b or c".
fn list(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

/// Returns the name that `found` is most likely a misspelling of: it differs in at most one of three letters, ignoring
/// case.
pub fn nearest<'a>(found: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Longer texts are not names, and comparing them takes time proportional to the product of both lengths.
    if found.len() > MAX_COMPARED {
        return None;
    }
    let found = found.to_lowercase();
    let names = names.into_iter().filter(|name| name.len() <= MAX_COMPARED);
    let distances = names.map(|name| (strsim::damerau_levenshtein(&found, &name.to_lowercase()), name));
    let near = distances.filter(|(distance, name)| *distance <= name.chars().count().min(found.chars().count()) / 3);
    near.min_by_key(|(distance, _)| *distance).map(|(_, name)| name)
}

/// The longest text that is compared with names, in bytes.
const MAX_COMPARED: usize = 100;

/// Returns "; did you mean NAME?" if `found` is close to a name, otherwise an empty text.
pub fn did_you_mean<'a>(found: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    nearest(found, names).map_or_else(String::new, |name| format!("; did you mean {name}?"))
}

/// Gives an enum without fields its names: `NAMES`, `name`, `Display` and `FromStr`. Serde's names are declared
/// separately, because some files spell them in another way. Variants after a semicolon have a name, but no text is read as one.
#[macro_export]
macro_rules! named {
    ($type:ident: $($variant:ident = $name:literal),+ $(,)? $(; $($hidden:ident = $other:literal),+)?) => {
        impl $type {
            /// All names that are read, in order of declaration.
            pub const NAMES: &'static [&'static str] = &[$($name),+];

            /// The name in commands, files and messages.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ $($(Self::$hidden => $other,)+)? }
            }
        }

        impl ::std::fmt::Display for $type {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.pad(self.name())
            }
        }

        impl ::std::str::FromStr for $type {
            type Err = $crate::NameError;

            fn from_str(name: &str) -> Result<Self, $crate::NameError> {
                match name {
                    $($name => Ok(Self::$variant),)+
                    _ => Err($crate::NameError::new(Self::NAMES, name)),
                }
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::nearest;
    use crate::{Circuit, NoisePlacement, RandomnessKind};

    #[test]
    fn a_misspelt_name_is_found_and_another_word_is_not() {
        let keys = ["gamma", "sigma", "batch", "epochs", "honest_ratio"];
        for (found, name) in [
            ("gama", Some("gamma")),
            ("GAMMA", Some("gamma")),
            ("epcohs", Some("epochs")),
            ("honest-ratio", Some("honest_ratio")),
            ("epsilon", None),
            ("", None),
        ] {
            assert_eq!(nearest(found, keys), name, "{found}");
        }
        assert_eq!(nearest(&"x".repeat(1 << 20), keys), None);
    }

    #[test]
    fn names_round_trip_and_agree_with_serde() {
        fn check<T>(names: &[&str])
        where
            T: std::str::FromStr<Err = super::NameError> + std::fmt::Display + serde::Serialize,
        {
            for name in names {
                let value: T = name.parse().expect("a known name");
                assert_eq!(value.to_string(), *name);
                assert_eq!(serde_json::to_value(&value).expect("a text"), *name);
            }
        }
        check::<Circuit>(Circuit::NAMES);
        check::<NoisePlacement>(NoisePlacement::NAMES);
        check::<RandomnessKind>(RandomnessKind::NAMES);
        let error = "Paper".parse::<Circuit>().expect_err("case matters");
        assert_eq!(error.to_string(), "expected tournament, all-pairs or paper, found \"Paper\"; did you mean paper?");
        let error = "torus".parse::<Circuit>().expect_err("another word");
        assert_eq!(error.to_string(), "expected tournament, all-pairs or paper, found \"torus\"");
    }
}
