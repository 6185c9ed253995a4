//! The comparison of a sweep as a table and as text.

use super::lines::{SWEEP_COLUMNS, SweepColumn, SweepLine};
use super::plots::Plot;
use super::report::SweepReport;
use crate::report::columns::{DATA_INDEPENDENT, NONE, largest_epsilon, without_epsilon};
use crate::report::encoder::FROM_PUBLIC_DATA;
use crate::report::run::ReportFile;
use crate::report::table::Table;

impl SweepReport {
    /// Returns the files of the sweep: its table, plots, report and page.
    pub(crate) fn files(&self) -> Vec<ReportFile> {
        let plots = self.plots();
        let markdown = self.to_markdown(&plots);
        let plots = plots.into_iter().map(|plot| (plot.name, plot.svg));
        let files = std::iter::once(("sweep.csv", self.table().to_csv())).chain(plots);
        let files = files.chain([("sweep.md", markdown), ("report.html", self.to_html())]);
        files.map(|(name, text)| ReportFile { name, text }).collect()
    }

    /// Returns the comparison; a row with noise but without a data-independent epsilon is marked.
    pub fn summary(&self) -> Table {
        let noisy: Vec<&str> = self.rows().filter(|row| row.is_noisy()).map(|row| row.name.as_str()).collect();
        let is_missing = |column: &SweepColumn, line: &SweepLine| {
            column.head == DATA_INDEPENDENT && noisy.contains(&line.row.as_str())
        };
        self.table_of(|column, line| (column.cell)(line).or_else(|| is_missing(column, line).then(|| NONE.to_owned())))
    }

    /// Returns the reasons why rows with noise have no data-independent epsilon, each with the names of its rows.
    pub fn without_epsilon(&self) -> Vec<(String, Vec<String>)> {
        without_epsilon(self.rows())
    }

    /// Returns the largest data-independent epsilon of all settings, if any.
    pub fn largest_epsilon(&self) -> Option<f64> {
        largest_epsilon(self.rows())
    }

    /// Returns the comparison: a line for each setting and row, without columns that have no values.
    pub(crate) fn table(&self) -> Table {
        self.table_of(|column, line| (column.cell)(line))
    }

    fn table_of(&self, cell: impl Fn(&SweepColumn, &SweepLine) -> Option<String>) -> Table {
        let heads = SWEEP_COLUMNS.iter().map(|column| column.head);
        let mut table = Table::new(self.compared_keys().into_iter().chain(heads));
        for line in self.lines() {
            let cells = SWEEP_COLUMNS.iter().map(|column| cell(column, &line).unwrap_or_default());
            table.push(line.values.iter().cloned().chain(cells).collect());
        }
        table.without_empty_columns()
    }

    /// Returns the comparison with its conditions as Markdown.
    fn to_markdown(&self, plots: &[Plot]) -> String {
        let plots: String = plots.iter().map(|plot| format!("\n![{}]({})\n", plot.title, plot.name)).collect();
        format!("# {}\n\n{}\n{}\n{NOTES}{plots}", self.experiment, self.conditions(), self.table().to_markdown())
    }

    /// Returns the conditions of the sweep; the mark of a simulation is first.
    pub fn conditions(&self) -> String {
        let simulation = "SIMULATION: noise and keys come from the seed. Reproducible, not private.\n\n";
        let machine = self.environment.as_ref().map_or_else(String::new, |machine| {
            format!("{}, {} processors; speed {}.\n", machine.processor, machine.processors, machine.speed)
        });
        let has_encoder = self.config.features.encoder().is_some();
        let encoder = if has_encoder { format!("{FROM_PUBLIC_DATA}\n") } else { String::new() };
        format!(
            "{}Sweep {} of {}: {} runs.\n{machine}{encoder}{}",
            if self.simulation { simulation } else { "" },
            self.sweep,
            self.keys.join(", "),
            self.settings.len(),
            self.ledger
                .as_ref()
                .map_or_else(String::new, |ledger| format!("Ledger of the experiment: {}\n", ledger.claim)),
        )
    }
}

/// The meaning of the columns.
pub(crate) const NOTES: &str = "\
- **ε data-independent** holds for all votes and may be published; **ε data-dependent** is the tightest valid claim at these \
votes (dropout) and must not be published as it is. Both are rounded up; for several seeds, the largest is shown; a cell is empty without noise \
or a finite value.
- **labels %**: right labels among the answered queries. Spreads are sample standard deviations over seeds, and for students over seeds and \
repeats.
";
