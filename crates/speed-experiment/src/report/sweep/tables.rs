//! The comparison of a sweep as a table and as text: one line for each setting and row, with the seeds combined.

use speed_accountant::epsilon_text;

use super::report::{SettingReport, SweepReport};
use crate::report::columns::{DATA_DEPENDENT, DATA_INDEPENDENT, LABELS, NONE, ROW, STUDENTS, plus_minus};
use crate::report::row::ReportRow;
use crate::report::run::FROM_PUBLIC_DATA;
use crate::report::statistics::mean_and_deviation;
use crate::report::table::Table;

/// The key whose values are repetitions of a setting.
const SEED: &str = "seed";

/// The results of a row at one setting, over all seeds.
pub(crate) struct SweepLine {
    /// The value of each swept key except the seed.
    pub values: Vec<String>,
    pub row: String,
    /// The largest data-independent epsilon of all seeds; `None` if a seed has none.
    pub data_independent: Option<f64>,
    /// The largest epsilon at these votes of all seeds; not for publication. `None` if a seed has none.
    pub data_dependent: Option<f64>,
    /// Share of right labels among the answered queries, over seeds.
    pub labels: Spread,
    /// Share of answered queries, over seeds.
    pub answered: Spread,
    /// Accuracy of the students, over seeds and repeats.
    pub students: Spread,
}

/// The mean and the sample standard deviation of values.
pub(crate) struct Spread {
    /// Their number.
    pub count: usize,
    /// Their mean; `None` without values.
    pub mean: Option<f64>,
    /// Their deviation; `None` for fewer than two values.
    pub deviation: Option<f64>,
}

impl Spread {
    fn from_values(values: impl IntoIterator<Item = f64>) -> Self {
        let values: Vec<f64> = values.into_iter().collect();
        let (mean, deviation) = mean_and_deviation(&values);
        Self { count: values.len(), mean, deviation }
    }

    /// Returns the mean and the deviation of a share, in percent.
    pub(super) fn in_percent(&self) -> Option<(f64, Option<f64>)> {
        Some((100.0 * self.mean?, self.deviation.map(|deviation| 100.0 * deviation)))
    }

    fn cell(&self) -> Option<String> {
        self.in_percent().map(plus_minus)
    }
}

/// A column of the comparison: its head, and the cell of a line if it has a value.
type SweepColumn = (&'static str, fn(&SweepLine) -> Option<String>);

/// The columns of the comparison after the swept keys, in their order.
static SWEEP_COLUMNS: [SweepColumn; 7] = [
    (ROW, |line| Some(line.row.clone())),
    (DATA_INDEPENDENT, |line| line.data_independent.map(epsilon_text)),
    (DATA_DEPENDENT, |line| line.data_dependent.map(epsilon_text)),
    (LABELS, |line| line.labels.cell()),
    ("answered %", |line| line.answered.cell()),
    (STUDENTS, |line| line.students.cell()),
    ("students", |line| (line.students.count > 0).then(|| line.students.count.to_string())),
];

impl SweepReport {
    /// Returns the swept keys by which settings differ: all except the seed.
    pub(crate) fn compared_keys(&self) -> Vec<&str> {
        self.keys.iter().map(String::as_str).filter(|key| *key != SEED).collect()
    }

    /// Returns a line for each setting and row, with the seeds combined, in the order of the sweep.
    pub(crate) fn lines(&self) -> Vec<SweepLine> {
        let compared = |setting: &SettingReport| -> Vec<String> {
            let values = self.keys.iter().zip(&setting.values);
            values.filter(|(key, _)| *key != SEED).map(|(_, value)| value.clone()).collect()
        };
        let mut groups: Vec<(Vec<String>, Vec<&SettingReport>)> = Vec::new();
        for setting in &self.settings {
            let values = compared(setting);
            match groups.iter_mut().find(|(other, _)| *other == values) {
                Some((_, group)) => group.push(setting),
                None => groups.push((values, vec![setting])),
            }
        }
        groups.iter().flat_map(|(values, group)| lines_of(values, group)).collect()
    }
}

/// Returns the lines of one setting from its runs, with one run per seed.
fn lines_of(values: &[String], runs: &[&SettingReport]) -> Vec<SweepLine> {
    let rows = runs.first().map_or(0, |run| run.rows.len());
    let line = |row: usize| {
        let of_seeds: Vec<&ReportRow> = runs.iter().filter_map(|run| run.rows.get(row)).collect();
        let largest = |epsilon: fn(&ReportRow) -> Option<f64>| {
            of_seeds.iter().map(|row| epsilon(row)).reduce(|largest, other| Some(largest?.max(other?))).flatten()
        };
        #[expect(clippy::cast_precision_loss, reason = "counts of queries")]
        let answered = |row: &&ReportRow| row.answered.map(|answered| answered as f64 / row.queries.max(1) as f64);
        let students = of_seeds.iter().flat_map(|row| row.students.iter().map(|student| student.accuracy));
        Some(SweepLine {
            values: values.to_vec(),
            row: of_seeds.first()?.name.clone(),
            data_independent: largest(|row| row.data_independent.as_ref().map(|account| account.epsilon)),
            data_dependent: largest(|row| row.data_dependent.as_ref().map(|account| account.epsilon)),
            labels: Spread::from_values(of_seeds.iter().filter_map(|row| row.label_accuracy)),
            answered: Spread::from_values(of_seeds.iter().filter_map(answered)),
            students: Spread::from_values(students),
        })
    };
    (0..rows).filter_map(line).collect()
}

impl SweepReport {
    /// Returns the comparison; a row with noise but without a data-independent epsilon is marked.
    pub fn summary(&self) -> Table {
        let noisy: Vec<&str> = self.rows().filter(|row| row.is_noisy()).map(|row| row.name.as_str()).collect();
        self.table_of(|(head, cell), line| {
            let is_missing = *head == DATA_INDEPENDENT && noisy.contains(&line.row.as_str());
            cell(line).or_else(|| is_missing.then(|| NONE.to_owned()))
        })
    }

    /// Returns the comparison: a line for each setting and row, without columns that have no values.
    pub(crate) fn table(&self) -> Table {
        self.table_of(|(_, cell), line| cell(line))
    }

    fn table_of(&self, cell: impl Fn(&SweepColumn, &SweepLine) -> Option<String>) -> Table {
        let heads = SWEEP_COLUMNS.iter().map(|(head, _)| *head);
        let mut table = Table::new(self.compared_keys().into_iter().chain(heads));
        for line in self.lines() {
            let cells = SWEEP_COLUMNS.iter().map(|column| cell(column, &line).unwrap_or_default());
            table.push(line.values.iter().cloned().chain(cells).collect());
        }
        table.without_empty_columns()
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

pub(crate) const NOTES: &str = "\
- **ε data-independent** holds for all votes and may be published; **ε data-dependent** is the tightest valid claim at these \
votes (dropout) and must not be published as it is. Both are rounded up; for several seeds, the largest is shown; a cell is empty without noise \
or a finite value.
- **labels %**: right labels among the answered queries. Spreads are sample standard deviations over seeds, and for students over seeds and \
repeats.
";
