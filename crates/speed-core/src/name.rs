//! Choices that have the same name on the command line, in config files and in messages.

/// A name that is none of a choice's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {}, found {found:?}", list(expected))]
pub struct NameError {
    /// The names of the choice.
    pub expected: &'static [&'static str],
    /// The name found, cut after 80 characters.
    pub found: String,
}

impl NameError {
    /// An error for the text `found`.
    #[must_use]
    pub fn new(expected: &'static [&'static str], found: &str) -> Self {
        Self { expected, found: found.chars().take(80).collect() }
    }
}

/// "a, b or c".
fn list(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

/// Gives an enum without fields its names: `NAMES`, `name`, `Display` and `FromStr`. Serde's names are the enum's own matter:
/// files may hold older ones.
#[macro_export]
macro_rules! named {
    ($type:ident: $($variant:ident = $name:literal),+ $(,)?) => {
        impl $type {
            /// All names, in order of declaration.
            pub const NAMES: &'static [&'static str] = &[$($name),+];

            /// The name in commands, files and messages.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
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
    use crate::{Circuit, NoisePlacement, RandomnessKind};

    #[test]
    fn names_come_back_and_are_those_of_serde() {
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
        assert_eq!(error.to_string(), "expected tournament, all-pairs or paper, found \"Paper\"");
    }
}
