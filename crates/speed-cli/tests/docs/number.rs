//! Printed numbers, and their agreement with a value.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

/// A printed number: digits with or without groups of thousands, fraction and exponent.
pub(crate) const NUMBER: &str = r"-?(?:\d{1,3}(?:[ ,]\d{3})+|\d+)(?:\.\d+)?(?:e-?\d+)?";

static NUMBERS: LazyLock<Regex> = LazyLock::new(|| Regex::new(NUMBER).expect("a pattern"));

#[derive(Clone, Copy, Debug)]
pub(crate) struct Printed {
    pub(crate) value: f64,
    /// One unit of the last digit.
    unit: f64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Rounding {
    #[default]
    Nearest,
    /// Rounding up, so that an epsilon in a table is never below the value.
    Up,
}

impl Printed {
    pub(crate) fn read(text: &str) -> Option<Self> {
        let text: String = text.chars().filter(|character| !matches!(character, ' ' | ',')).collect();
        let value = text.parse().ok()?;
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let decimals = mantissa.split_once('.').map_or(0, |(_, fraction)| fraction.len());
        let unit = 10f64.powi(exponent.parse::<i32>().ok()? - i32::try_from(decimals).ok()?);
        Some(Self { value, unit })
    }

    /// Returns whether `value` is printed as this number.
    pub(crate) fn agrees(self, value: f64, rounding: Rounding) -> bool {
        let slack = 1e-9 * (1.0 + value.abs());
        let over = self.value - value;
        match rounding {
            // A value in the middle is rounded up, so only one digit agrees.
            Rounding::Nearest => {
                let slack = slack.min(0.01 * self.unit);
                over > -0.5 * self.unit + slack && over <= 0.5 * self.unit + slack
            }
            Rounding::Up => over >= -slack && over < self.unit,
        }
    }
}

pub(crate) fn numbers(text: &str) -> Vec<Printed> {
    // "1-2" is a range, not a negative number; a sign counts at the beginning of a word only.
    let positions = NUMBERS.find_iter(text);
    positions
        .filter_map(|found| {
            let signed = found.as_str().starts_with('-')
                && text[..found.start()].chars().next_back().is_some_and(|before| !before.is_whitespace());
            Printed::read(found.as_str().strip_prefix('-').filter(|_| signed).unwrap_or(found.as_str()))
        })
        .collect()
}

static MEASUREMENT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?x) (?P<power> \d+\^-?\d+(?:\.\d+)? )
        | (?P<plain> \d+\.\d+(?:e-?\d+)? | \d+e-?\d+ | \d{1,3}(?:[\ ,]\d{3})+(?:\.\d+)? )
        | (?P<count> \d+ ) (?: [\ -]? (?: % | (?: s | ms | seconds? | minutes? | hours? | days? | min | core- | bytes? | B | kB | MB | GB | KiB | MiB | GiB ) \b ) )",
    )
    .expect("a pattern")
});

/// Words before a number that mark it as a parameter, a version or a reference, and not as a result.
static NAMED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?x) (?: \b(?: gamma | tau | delta | sigma | alpha | beta | seeds? | threshold | [a-zA-Z] ) (?: \s(?:of|is|=|at|from) | \s?= )? \s
        | \b(?: Rust | TLS | HTTP | version | WCAG | HTTP/ | tfhe-rs | TensorFlow | JAX | commit ) \s?
        | \b(?: Prop\. | Theorem | Thm\.? | Claim | Def\. | [Ss]ections? | Tables? | Figures? | [Ii]tems? | Lemma | Algorithms? | eprint ) \s ) $",
    )
    .expect("a pattern")
});

/// Returns the positions of results in `prose`: numbers with a fraction, an exponent, groups of thousands, a per cent sign or a unit.
pub(crate) fn measurements(prose: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for captures in MEASUREMENT.captures_iter(prose) {
        let number = captures.name("power").or(captures.name("plain")).or(captures.name("count")).expect("one of them");
        let (before, after) = (&prose[..number.start()], &prose[number.end()..]);
        let hyphenated = before.strip_suffix('-').is_some_and(|word| word.ends_with(char::is_alphanumeric));
        let part_of_a_word =
            hyphenated || before.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '^' | '/'));
        let version = after.starts_with('.') && after[1..].starts_with(|c: char| c.is_ascii_digit());
        let start = before.char_indices().rev().nth(24).map_or(0, |(at, _)| at);
        let words = before[start..].split_whitespace().collect::<Vec<_>>().join(" ");
        let context = if before.ends_with(char::is_whitespace) { format!("{words} ") } else { words };
        if !part_of_a_word && !version && !NAMED.is_match(&context) {
            found.push(number.range());
        }
    }
    found
}
