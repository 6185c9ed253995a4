//! The comparison of a sweep: one line for each setting and row, with the seeds combined.

use serde::{Deserialize, Serialize};
use speed_accountant::epsilon_text;

use super::report::{SettingReport, SweepReport};
use crate::report::columns::{DATA_DEPENDENT, DATA_INDEPENDENT, LABELS, ROW, STUDENTS};
use crate::report::row::ReportRow;
use crate::report::statistics::mean_and_deviation;
use crate::report::table::percent;

/// The key whose values are repetitions of a setting.
const SEED: &str = "seed";

/// The results of a row at one setting, over all seeds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SweepLine {
    /// The value of each swept key except the seed.
    pub values: Vec<String>,
    /// The row.
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
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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

    /// Formats a share as a percentage with its deviation.
    fn in_percent(&self) -> Option<String> {
        let mean = percent(self.mean?);
        Some(match self.deviation {
            Some(deviation) => format!("{mean} ± {}", percent(deviation)),
            None => mean,
        })
    }
}

/// A column of the comparison: its head, and the cell of a line if it has a value.
pub(super) struct SweepColumn {
    pub(super) head: &'static str,
    pub(super) cell: fn(&SweepLine) -> Option<String>,
}

/// The columns of the comparison after the swept keys, in their order.
pub(super) static SWEEP_COLUMNS: [SweepColumn; 7] = [
    SweepColumn { head: ROW, cell: |line| Some(line.row.clone()) },
    SweepColumn { head: DATA_INDEPENDENT, cell: |line| line.data_independent.map(epsilon_text) },
    SweepColumn { head: DATA_DEPENDENT, cell: |line| line.data_dependent.map(epsilon_text) },
    SweepColumn { head: LABELS, cell: |line| line.labels.in_percent() },
    SweepColumn { head: "answered %", cell: |line| line.answered.in_percent() },
    SweepColumn { head: STUDENTS, cell: |line| line.students.in_percent() },
    SweepColumn { head: "students", cell: |line| (line.students.count > 0).then(|| line.students.count.to_string()) },
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
