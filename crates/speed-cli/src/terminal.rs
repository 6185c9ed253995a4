//! Tables on a terminal.

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table as Fitted, Width, presets};
use speed_experiment::Table;

/// Returns a table fitted to the width of the terminal that standard output is; as wide as it is elsewhere.
pub(crate) fn table(table: &Table) -> String {
    terminal_size::terminal_size_of(std::io::stdout())
        .map_or_else(|| table.to_text(), |(width, _)| fitted(table, width.0))
}

/// Spaces between two columns.
const GAP: u16 = 2;

/// Returns a table of at most so many characters a line: long heads and cells are broken between words, no number is, and columns at
/// the end that have no room are left out.
fn fitted(table: &Table, width: u16) -> String {
    let least: Vec<u16> = (0..table.columns().len()).map(|column| least_width(table, column)).collect();
    let needed = |count: usize| least[..count].iter().map(|width| width + GAP).sum::<u16>();
    let shown = (1..=least.len()).rev().find(|&count| needed(count) <= width).unwrap_or(1);
    let mut fitted = Fitted::new();
    fitted.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    fitted.set_header(&table.columns()[..shown]);
    for row in table.rows() {
        fitted.add_row(&row[..shown]);
    }
    for (place, column) in fitted.column_iter_mut().enumerate() {
        let alignment = if place == 0 { CellAlignment::Left } else { CellAlignment::Right };
        column.set_padding((0, GAP)).set_cell_alignment(alignment);
        column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(least[place] + GAP)));
    }
    fitted.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// Returns the length of the longest word of a column's cells and of its head, which may be broken at a hyphen too.
fn least_width(table: &Table, column: usize) -> u16 {
    let cells = table.rows().iter().flat_map(|row| row[column].split_whitespace());
    let words = table.columns()[column].split([' ', '-']).chain(cells);
    words.map(|word| word.chars().count()).max().and_then(|longest| longest.try_into().ok()).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_is_wider_than_the_terminal_and_nothing_is_lost() {
        let mut wide = Table::new([
            "row",
            "ε data-independent",
            "ε data-dependent",
            "labels %",
            "student",
            "student %",
            "HE = clear",
        ]);
        wide.push(
            ["tau = 0.9, ours", "6.08", "0.30", "99.00", "98.97 ± 0.40", "ours", "100/100"].map(String::from).to_vec(),
        );
        for width in [40, 60, 80, 100] {
            let text = fitted(&wide, width);
            assert!(text.lines().all(|line| line.chars().count() <= usize::from(width)), "{width}:\n{text}");
            let letters: String = text.split_whitespace().collect();
            let cells = ["6.08", "0.30", "99.00", "98.97±0.40", "ours", "100/100"];
            let shown = cells.iter().take_while(|cell| letters.contains(*cell)).count();
            // What has no room is left out, from the end, and only on narrow terminals.
            assert!(shown == cells.len() || width < 60 && shown >= 3, "{shown} of them in {width}:\n{text}");
            assert!(cells[shown..].iter().all(|cell| !letters.contains(cell)), "{text}");
        }
    }
}
