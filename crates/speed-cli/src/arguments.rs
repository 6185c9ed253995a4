//! The arguments of a command line, before they are parsed.

use std::ffi::OsString;

/// Joins a negative number to the option before it, `--delta -1e-5` to `--delta=-1e-5`, so that clap reads it as a value
/// and the option's own check accepts or refuses it.
pub(crate) fn with_negative_numbers(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut joined: Vec<OsString> = Vec::new();
    let mut are_values = false;
    for argument in arguments {
        let is_value = !are_values && is_negative_number(&argument);
        match joined.last_mut().filter(|option| is_value && is_open_option(option)) {
            Some(option) => {
                option.push("=");
                option.push(argument);
            }
            None => {
                are_values |= argument == "--";
                joined.push(argument);
            }
        }
    }
    joined
}

fn is_negative_number(argument: &OsString) -> bool {
    argument.to_str().is_some_and(|text| text.starts_with('-') && text.parse::<f64>().is_ok())
}

/// Returns whether an argument is a long option without a value.
fn is_open_option(argument: &OsString) -> bool {
    argument.to_str().is_some_and(|text| text.len() > 2 && text.starts_with("--") && !text.contains('='))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negative_numbers_are_values_of_the_option_before_them() {
        let joined = |line: &str| {
            let joined = with_negative_numbers(line.split(' ').map(OsString::from));
            joined.iter().map(|argument| argument.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
        };
        for (line, expected) in [
            ("account --delta -1e-5 --json", "account --delta=-1e-5 --json"),
            ("account --gamma -inf --delta -NaN", "account --gamma=-inf --delta=-NaN"),
            ("round --queries -5 --out -x", "round --queries=-5 --out -x"),
            ("a -1 --b=1 -2 -q -3 --c -4 -5", "a -1 --b=1 -2 -q -3 --c=-4 -5"),
            ("a -- --b -1", "a -- --b -1"),
        ] {
            assert_eq!(joined(line), expected);
        }
    }
}
