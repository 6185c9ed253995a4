//! The lines of a run's report, from the outputs of its stages.

use crate::report::{Baselines, LabellingTimes, ReportRow, StudentRun, mean_and_deviation, median};

use crate::config::Config;
use crate::stages::{Bounds, RowLabels};

/// All results of a run for one row.
#[derive(Clone)]
pub(crate) struct RowResult {
    /// Its own labels, or the labels of the row that it names.
    pub(crate) labels: RowLabels,
    /// Times of the homomorphic part.
    pub(crate) times: Option<LabellingTimes>,
    /// The privacy bounds, if noise was added.
    pub(crate) bounds: Option<Bounds>,
    /// The students, one per repeat.
    pub(crate) students: Vec<StudentRun>,
    /// The baselines, if measured.
    pub(crate) baselines: Option<Baselines>,
}

impl RowResult {
    /// Returns the line of the row at `index` of `config`.
    pub(crate) fn into_row(self, config: &Config, index: usize) -> ReportRow {
        let (row, source) = (&config.rows[index], &config.rows[config.labels_of(index)]);
        let Self { labels, times, bounds, students, baselines } = self;
        let classification = students.first().and_then(|student| student.classification.clone());
        let accuracies: Vec<f64> = students.iter().map(|student| student.accuracy).collect();
        let (student_mean, student_deviation) = mean_and_deviation(&accuracies);
        let bounds = bounds.unwrap_or_default();
        ReportRow {
            name: row.name.clone(),
            aggregation: source.aggregation,
            honest_ratio: source.honest_ratio.get(),
            labels_of: row.labels_of.map_or_else(String::new, |source| config.rows[source].name.clone()),
            method: config.method_of(row).name().to_owned(),
            data_dependent: bounds.data_dependent,
            data_dependent_collusion: bounds.data_dependent_collusion,
            data_independent: bounds.data_independent,
            data_independent_party: bounds.data_independent_party,
            paper_formulas: bounds.paper_formulas,
            without_value: bounds.without_value,
            label_accuracy: labels.label_accuracy,
            agreement: labels.agreement,
            unresolved: labels.unresolved,
            answered: source.threshold().map(|_| labels.answered()),
            queries: labels.labels.len(),
            students,
            classification,
            baselines,
            student_mean,
            student_deviation,
            student_median: (!accuracies.is_empty()).then(|| median(&accuracies)),
            paper: row.paper,
            encrypted_times: times,
        }
    }
}
