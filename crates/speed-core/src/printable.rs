//! Text of others as it may be shown.

use std::path::Path;

/// Returns whether a character could move a terminal's cursor, turn its writing or forge a line: control characters, and those that change
/// the direction of what follows (Unicode, UAX 9, "explicit directional formatting").
#[must_use]
pub fn moves_the_cursor(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns a text that somebody else chose as it may be printed within a line: what [moves the cursor](moves_the_cursor) is escaped.
#[must_use]
pub fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if moves_the_cursor(c) { shown.extend(c.escape_unicode()) } else { shown.push(c) }
    }
    shown
}

/// Returns a path as it may be printed within a line.
#[must_use]
pub fn printable_path(path: &Path) -> String {
    printable(&path.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_move_the_cursor() {
        assert_eq!(printable("1\u{1b}[2J\nforged\u{202e}"), "1\\u{1b}[2J\\u{a}forged\\u{202e}");
        assert_eq!(printable_path(Path::new("Straße/日本.png")), "Straße/日本.png");
    }
}
