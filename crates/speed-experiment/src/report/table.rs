//! A table of text cells, as Markdown and as CSV.

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, LineStyle, TableStyle, Width};
use maud::html;
use speed_core::printable;

use crate::report::csv;

pub(crate) const NO_VALUE: &str = "-";

const GAP: u16 = 2;
/// A line below the header, without other borders.
const STYLE: TableStyle = NOTHING.header_separator(LineStyle::none().fill('-').junction('-'));

/// A table of text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    columns: Vec<String>,
    /// The rows, each with a cell for every column.
    pub(crate) rows: Vec<Vec<String>>,
}

impl Table {
    /// Creates an empty table with these column heads.
    pub fn new<S: Into<String>>(columns: impl IntoIterator<Item = S>) -> Self {
        Self { columns: columns.into_iter().map(Into::into).collect(), rows: Vec::new() }
    }

    /// Adds a row; missing cells are empty.
    pub fn push(&mut self, mut cells: Vec<String>) {
        cells.resize(self.columns.len(), String::new());
        self.rows.push(cells);
    }

    /// Returns the column heads.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// Returns aligned columns, the first left-aligned and the others right-aligned.
    pub fn to_text(&self) -> String {
        self.fitted(None)
    }

    /// Returns the same table within `width` characters: names and heads are wrapped, and if the figures do not fit side by
    /// side, every row becomes a list.
    pub fn fitted(&self, width: Option<u16>) -> String {
        let narrowest: Vec<u16> = (0..self.columns.len()).map(|column| self.narrowest(column)).collect();
        let gaps = GAP * u16::try_from(narrowest.len().saturating_sub(1)).unwrap_or(u16::MAX / GAP);
        let least = narrowest.iter().fold(gaps, |sum, width| sum.saturating_add(*width));
        if width.is_some_and(|width| width < least) {
            return self.as_lists();
        }
        let last = self.columns.len().saturating_sub(1);
        let mut table = comfy_table::Table::new();
        table.load_style(STYLE).set_header(&self.columns).add_rows(&self.rows);
        if let Some(width) = width {
            table.set_width(width).set_content_arrangement(ContentArrangement::Dynamic);
            // Includes the padding.
            let least = |(column, width): (usize, &u16)| width.saturating_add(if column == last { 0 } else { GAP });
            let least = narrowest.iter().enumerate().map(least);
            table.set_constraints(least.map(|width| ColumnConstraint::LowerBoundary(Width::Fixed(width))));
        }
        for (index, column) in table.column_iter_mut().enumerate() {
            column.set_padding((0, if index == last { 0 } else { GAP }));
            column.set_cell_alignment(if index == 0 { CellAlignment::Left } else { CellAlignment::Right });
        }
        table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
    }

    /// Returns the minimum width of a column: its longest figure or word.
    fn narrowest(&self, column: usize) -> u16 {
        let longest_word = |text: &str| text.split(' ').map(|word| word.chars().count()).max().unwrap_or(0);
        let is_figure = |cell: &str| column > 0 && cell.starts_with(|first: char| first.is_ascii_digit());
        let cells = self.rows.iter().map(|row| match row[column].as_str() {
            figure if is_figure(figure) => figure.chars().count(),
            words => longest_word(words),
        });
        let width = cells.chain([longest_word(&self.columns[column])]).max().unwrap_or(0);
        u16::try_from(width).unwrap_or(u16::MAX)
    }

    /// Returns a list for each row: its name, followed by one line per value.
    fn as_lists(&self) -> String {
        let widest = self.columns.iter().skip(1).map(|head| head.chars().count()).max().unwrap_or(0);
        let list = |row: &Vec<String>| {
            let values = self.columns.iter().zip(row).skip(1).filter(|(_, cell)| is_value(cell));
            let lines: String = values.map(|(head, cell)| format!("  {head:<widest$}  {cell}\n")).collect();
            format!("{}\n{lines}", row[0])
        };
        self.rows.iter().map(list).collect()
    }

    /// Returns the table without columns that have no values; the first column stays.
    pub(crate) fn without_empty_columns(&self) -> Self {
        let is_kept = |column: &usize| *column == 0 || self.rows.iter().any(|row| is_value(&row[*column]));
        let kept: Vec<usize> = (0..self.columns.len()).filter(is_kept).collect();
        let choose = |cells: &[String]| kept.iter().map(|&column| cells[column].clone()).collect();
        Self { columns: choose(&self.columns), rows: self.rows.iter().map(|row| choose(row)).collect() }
    }

    /// Returns the table with every cell below the head escaped for [`to_markdown`](Self::to_markdown), so that untrusted
    /// text is shown as it is.
    pub(crate) fn for_markdown(&self) -> Self {
        let rows = self.rows.iter().map(|row| row.iter().map(|cell| markdown(cell)).collect()).collect();
        Self { columns: self.columns.clone(), rows }
    }

    /// Returns a Markdown table that is also readable as plain text.
    pub(crate) fn to_markdown(&self) -> String {
        let lines = || std::iter::once(&self.columns).chain(&self.rows);
        let width = |column: usize| lines().map(|cells| cells[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let joined = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let line = |cells: &Vec<String>| {
            let cells = cells.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
                let cell = if column == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") };
                cell.replace('|', "\\|")
            });
            joined(cells.collect())
        };
        let rule = widths.iter().enumerate().map(|(column, width)| {
            format!("{}{}", "-".repeat((*width).max(2) - 1), if column == 0 { '-' } else { ':' })
        });
        let rule = joined(rule.collect());
        line(&self.columns) + &rule + &self.rows.iter().map(line).collect::<String>()
    }

    /// Returns comma-separated values as in RFC 4180, with a header line.
    pub fn to_csv(&self) -> String {
        csv::write(&self.columns, &self.rows)
    }
}

fn is_value(cell: &str) -> bool {
    !cell.is_empty() && cell != NO_VALUE
}

pub(crate) fn percent(share: f64) -> String {
    format!("{:.2}", 100.0 * share)
}

/// Returns untrusted text for Markdown, except for the bar, which only tables escape: no part of it is an image, HTML, or a
/// link with a scheme.
pub(crate) fn markdown(text: &str) -> String {
    let text = html! { (printable(text)) }.into_string();
    let escaped = text.chars().fold(String::new(), |mut text, c| {
        if "\\`*_[]#~".contains(c) {
            text.push('\\');
        }
        text.push(c);
        text
    });
    // Without its colon, an address is no link.
    escaped.replace("://", "&#58;//")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms() {
        let mut table = Table::new(["row", "ε"]);
        table.push(vec!["tau = 1".into(), "1.41".into()]);
        table.push(vec!["a,\"b\"|c".into()]);
        assert_eq!(
            table.to_markdown(),
            "| row     |    ε |\n| ------- | ---: |\n| tau = 1 | 1.41 |\n| a,\"b\"\\|c |      |\n"
        );
        assert_eq!(table.to_csv(), "row,ε\ntau = 1,1.41\n\"a,\"\"b\"\"|c\",\n");
    }

    #[test]
    fn a_table_fits_and_breaks_no_figure() {
        let mut table = Table::new(["row", "ε data-independent", "student %"]);
        table.push(vec!["tau = 0.9, ours".into(), "5.40".into(), "97.83 ± 0.21".into()]);
        table.push(vec!["Non-private".into(), "-".into(), "9.00".into()]);
        let whole = "\
row               ε data-independent      student %
---------------------------------------------------
tau = 0.9, ours                 5.40   97.83 ± 0.21
Non-private                        -           9.00
";
        assert_eq!(table.to_text(), whole);
        assert_eq!(table.fitted(Some(60)), whole);
        for width in [50, 46, 45] {
            let fitted = table.fitted(Some(width));
            assert!(fitted.contains("97.83 ± 0.21") && fitted.contains("data-independent"), "{fitted}");
            assert!(fitted.lines().all(|line| line.chars().count() <= usize::from(width)), "{fitted}");
        }
        let list = "\
tau = 0.9, ours
  ε data-independent  5.40
  student %           97.83 ± 0.21
Non-private
  student %           9.00
";
        assert_eq!(table.fitted(Some(30)), list);
    }

    #[test]
    fn columns_without_a_value_are_left_out() {
        let mut table = Table::new(["row", "none", "some", "no word"]);
        table.push(vec!["a".into(), "-".into(), "-".into()]);
        table.push(vec!["b".into(), "-".into(), "1".into()]);
        assert_eq!(table.without_empty_columns().to_csv(), "row,some\na,-\nb,1\n");
    }
}
