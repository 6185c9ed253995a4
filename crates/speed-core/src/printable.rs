//! Untrusted text, escaped for terminal output.

use std::path::Path;

/// Returns whether a character could move a terminal's cursor, reverse its text or forge a line: a control character,
/// or one that changes the direction of the following text (Unicode, UAX 9, "explicit directional formatting").
pub fn moves_the_cursor(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns whether a character is invisible, so that two names may look alike (Unicode: "default ignorable code
/// points", annotation marks, and the empty Braille pattern).
fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{2800}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Returns whether people can read a name as it is written. Such a name is not empty, neither begins nor ends with a
/// space, contains only plain spaces, and has no character that is invisible or [moves the cursor](moves_the_cursor).
pub fn is_legible(name: &str) -> bool {
    let is_legible = |c: char| c == ' ' || !(c.is_whitespace() || is_invisible(c) || moves_the_cursor(c));
    !name.is_empty() && name.trim() == name && name.chars().all(is_legible)
}

/// Returns untrusted text escaped for printing within a line: every character that [moves the cursor](moves_the_cursor)
/// is escaped.
pub fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if moves_the_cursor(c) { shown.extend(c.escape_unicode()) } else { shown.push(c) }
    }
    shown
}

/// Returns a path escaped for printing within a line.
pub fn printable_path(path: &Path) -> String {
    printable(&path.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_look_like_others_or_like_nothing_are_not_legible() {
        for name in ["St Mary's", "Straße", "日本 病院", "A-1 (north)"] {
            assert!(is_legible(name), "{name}");
        }
        let hidden = [
            "",
            " ",
            "   ",
            " a",
            "a ",
            "a\tb",
            "a\nb",
            "a\u{a0}b",
            "a\u{200b}b",
            "a\u{ad}b",
            "\u{202e}a",
            "a\u{2066}",
        ];
        for name in hidden.into_iter().chain([
            "a\u{3000}b",
            "\u{3164}",
            "\u{2800}",
            "a\u{feff}",
            "a\u{e0041}",
            "a\u{0}",
            "a\u{85}",
        ]) {
            assert!(!is_legible(name), "{name:?}");
        }
    }

    #[test]
    fn names_cannot_move_the_cursor() {
        assert_eq!(printable("1\u{1b}[2J\nforged\u{202e}"), "1\\u{1b}[2J\\u{a}forged\\u{202e}");
        assert_eq!(printable_path(Path::new("Straße/日本.png")), "Straße/日本.png");
    }
}
