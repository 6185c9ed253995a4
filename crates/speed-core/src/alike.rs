//! Names that people or programs may take for one another.

use std::collections::HashMap;

use unicode_normalization::UnicodeNormalization as _;
use unicode_security::confusable_detection::skeleton;

/// Returns a name in Unicode's form NFC, so that keyboards and file systems do not make different names of one.
pub fn composed(name: &str) -> String {
    name.nfc().collect()
}

/// Returns whether a name has no private-use character and no noncharacter, whose looks depend on the reader's fonts.
pub fn is_assigned(name: &str) -> bool {
    let is_noncharacter =
        |letter: char| matches!(letter, '\u{fdd0}'..='\u{fdef}') || u32::from(letter) & 0xfffe == 0xfffe;
    name.chars().all(|letter| !matches!(letter, '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..) && !is_noncharacter(letter))
}

/// Returns two texts; names that share one of them may be taken for one another: they differ in case, in compatible characters (NFKC), in
/// spaces, or in characters that look alike (Unicode Technical Standard 39), such as Latin and Cyrillic ones, or `I` and `l`, which
/// the first text with its small letters does not confuse.
pub(crate) fn appearances(name: &str) -> [String; 2] {
    let compatible: String = name.nfkc().collect();
    let compatible = compatible.split_whitespace().collect::<Vec<_>>().join(" ");
    // Also letters whose capitals are several or shared, such as ß and ς.
    let small = compatible.to_uppercase().to_lowercase();
    [&small, &compatible].map(|name| skeleton(name).collect())
}

/// Returns the pairs of an earlier and a later name that may be taken for one another.
///
/// ```
/// let names = ["cat", "dog", "Cat"].map(String::from);
/// assert_eq!(speed_core::alike(&names), [("cat", "Cat")]);
/// ```
pub fn alike<'a>(names: impl IntoIterator<Item = &'a String>) -> Vec<(&'a str, &'a str)> {
    let (mut seen, mut pairs) = (HashMap::new(), Vec::new());
    for name in names {
        let mut other = None;
        for look in appearances(name) {
            let first = *seen.entry(look).or_insert(name);
            other = other.or((!std::ptr::eq(first, name)).then_some(first));
        }
        pairs.extend(other.map(|other| (other.as_str(), name.as_str())));
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_look_alike_are_found() {
        let is_alike = |one: &str, other: &str| !alike(&[one.to_owned(), other.to_owned()]).is_empty();
        for (one, other) in [
            ("Cat", "cat"),
            ("\u{e9}", "e\u{301}"),
            ("cat", "c\u{430}t"),
            ("\u{ff41}", "a"),
            ("Stra\u{df}e", "STRASSE"),
            ("\u{3c2}", "\u{3c3}"),
            ("a  b", "a b"),
            ("a ", "a"),
            ("a", "a"),
            ("o\u{fb03}ce", "office"),
            ("Clinic I", "Clinic l"),
            ("Clinic I", "Clinic 1"),
            ("HOSPITAL O", "HOSPITAL 0"),
        ] {
            assert!(is_alike(one, other), "{one:?} {other:?}");
        }
        assert!(!is_alike("cat", "car") && !is_alike("1", "2"));
        assert!(!is_assigned("a\u{e000}") && !is_assigned("\u{fffe}") && is_assigned("\u{e9}"));
    }
}
