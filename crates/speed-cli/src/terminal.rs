//! The terminal of standard output, if there is one.

use std::io::IsTerminal;

use speed_experiment::report::Table;
use terminal_size::{Width, terminal_size_of};

/// Returns the number of characters in a line, from the terminal or `COLUMNS`, or `None` if lines may have any length.
pub(crate) fn width() -> Option<u16> {
    let stdout = std::io::stdout();
    let terminal = if stdout.is_terminal() { terminal_size_of(&stdout) } else { None };
    let columns = || std::env::var("COLUMNS").ok()?.parse().ok();
    terminal.map(|(Width(width), _)| width).or_else(columns).filter(|&width| width > 0)
}

/// Returns a table that fits the width.
pub(crate) fn table(table: &Table) -> String {
    table.fitted(width())
}

/// Returns lines that fit the width, broken between words.
pub(crate) fn text(text: &str) -> String {
    let Some(width) = width() else { return text.to_owned() };
    text.split_inclusive('\n').map(|line| broken(line, width.into())).collect()
}

fn broken(line: &str, width: usize) -> String {
    let indent = line.len() - line.trim_start_matches(' ').len();
    let mut text = " ".repeat(indent);
    let mut used = indent;
    for word in line.split_inclusive(' ').skip_while(|word| *word == " ") {
        let length = word.trim_end().chars().count();
        if used > indent && used + length > width {
            text.truncate(text.trim_end_matches(' ').len());
            text.push('\n');
            text.push_str(&" ".repeat(indent));
            used = indent;
        }
        text.push_str(word);
        used += word.chars().count();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words_and_keep_their_indent() {
        assert_eq!(broken("one two three\n", 8), "one two\nthree\n");
        assert_eq!(broken("  one two three\n", 8), "  one\n  two\n  three\n");
        assert_eq!(broken("unbreakable", 3), "unbreakable");
        assert_eq!(broken("\n", 3), "\n");
        assert_eq!(broken("exactly ten", 11), "exactly ten");
    }
}
