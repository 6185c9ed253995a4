//! A table of text cells, printed aligned, as Markdown and as CSV.

use crate::csv;

/// The cell of a value that there is not.
pub(crate) const DASH: &str = "-";

/// Columns and rows of text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table with these column heads.
    #[must_use]
    pub fn new<S: Into<String>>(columns: impl IntoIterator<Item = S>) -> Self {
        Self { columns: columns.into_iter().map(Into::into).collect(), rows: Vec::new() }
    }

    /// Adds a row; missing cells are empty.
    pub fn push(&mut self, mut cells: Vec<String>) {
        cells.resize(self.columns.len(), String::new());
        self.rows.push(cells);
    }

    /// Returns the column heads.
    #[must_use]
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// Returns the rows, with a cell for every column.
    #[must_use]
    pub fn rows(&self) -> &[Vec<String>] {
        &self.rows
    }

    /// Returns the table without the columns in which no cell holds a value.
    #[must_use]
    pub fn without_empty_columns(&self) -> Self {
        let kept: Vec<usize> = (0..self.columns.len())
            .filter(|&column| self.rows.iter().any(|row| !matches!(&*row[column], "" | DASH)))
            .collect();
        let choose = |cells: &[String]| kept.iter().map(|&column| cells[column].clone()).collect::<Vec<_>>();
        Self { columns: choose(&self.columns), rows: self.rows.iter().map(|row| choose(row)).collect() }
    }

    /// Returns columns padded to their widest cell, the first to the left and the others to the right.
    #[must_use]
    pub fn to_text(&self) -> String {
        let rule: Vec<String> = self.widths().iter().map(|width| "-".repeat(*width)).collect();
        let mut lines = vec![self.padded(&self.columns), rule.join("  ")];
        lines.extend(self.rows.iter().map(|row| self.padded(row)));
        lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
    }

    /// Returns a Markdown table, readable as text too.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        let line = |cells: &[String]| {
            let cells: Vec<String> = self.align(cells).iter().map(|cell| cell.replace('|', "\\|")).collect();
            format!("| {} |\n", cells.join(" | "))
        };
        let rule: Vec<String> = self
            .widths()
            .iter()
            .enumerate()
            .map(|(column, width)| {
                format!("{}{}", "-".repeat((*width).max(2) - 1), if column == 0 { '-' } else { ':' })
            })
            .collect();
        let mut text = line(&self.columns);
        text.push_str(&format!("| {} |\n", rule.join(" | ")));
        text.extend(self.rows.iter().map(|row| line(row)));
        text
    }

    /// Returns comma-separated values as in RFC 4180, with a head line.
    #[must_use]
    pub fn to_csv(&self) -> String {
        csv::write(&self.columns, &self.rows)
    }

    fn widths(&self) -> Vec<usize> {
        (0..self.columns.len())
            .map(|column| {
                let cells = std::iter::once(&self.columns).chain(&self.rows);
                cells.map(|row| row[column].chars().count()).max().unwrap_or(0)
            })
            .collect()
    }

    fn align(&self, cells: &[String]) -> Vec<String> {
        cells
            .iter()
            .zip(self.widths())
            .enumerate()
            .map(
                |(column, (cell, width))| {
                    if column == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
                },
            )
            .collect()
    }

    fn padded(&self, cells: &[String]) -> String {
        self.align(cells).join("  ")
    }
}

/// Formats a share as a cell: percent, two digits.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.2}", 100.0 * share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_forms() {
        let mut table = Table::new(["row", "ε"]);
        table.push(vec!["tau = 1".into(), "1.41".into()]);
        table.push(vec!["a,\"b\"|c".into()]);
        assert_eq!(table.to_text(), "row         ε\n-------  ----\ntau = 1  1.41\na,\"b\"|c\n");
        assert_eq!(
            table.to_markdown(),
            "| row     |    ε |\n| ------- | ---: |\n| tau = 1 | 1.41 |\n| a,\"b\"\\|c |      |\n"
        );
        let mut sparse = Table::new(["row", "a", "b"]);
        sparse.push(vec!["x".into(), "-".into(), "1".into()]);
        sparse.push(vec!["y".into(), String::new(), "-".into()]);
        assert_eq!(sparse.without_empty_columns().to_csv(), "row,b\nx,1\ny,-\n");
        assert_eq!(table.to_csv(), "row,ε\ntau = 1,1.41\n\"a,\"\"b\"\"|c\",\n");
    }
}
