//! The lines of a run's report, from the outputs of its stages.

use crate::config::{AggregationKind, Config};
use crate::report::{ReportRow, mean_and_deviation, median};
use crate::stages::{Outputs, RowBaselines, RowBounds, RowLabellings, RowStudents};

/// Returns the line of the row at `index`. Rows may share labels and bounds.
pub(crate) fn report_row(config: &Config, outputs: &Outputs, index: usize) -> ReportRow {
    let own = config.labels_of(index);
    let (row, source) = (&config.rows[index], &config.rows[own]);
    let (labels, times) = &outputs.get::<RowLabellings>().0[&own];
    let bounds = outputs.find::<RowBounds>().and_then(|bounds| bounds.0.get(&own)).cloned().unwrap_or_default();
    let students = outputs.find::<RowStudents>().map_or_else(Vec::new, |students| students.0[index].clone());
    let accuracies: Vec<f64> = students.iter().map(|student| student.accuracy).collect();
    let (student_mean, student_deviation) = mean_and_deviation(&accuracies);
    // Without noise a query has no label if all votes on it are empty.
    let is_partly_empty = source.aggregation == AggregationKind::NonPrivate && labels.answered() < labels.labels.len();
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
        label_balanced_accuracy: labels.label_balanced_accuracy,
        agreement: labels.agreement,
        unresolved: labels.unresolved,
        answered: (source.threshold().is_some() || is_partly_empty).then(|| labels.answered()),
        queries: labels.labels.len(),
        classification: students.first().and_then(|student| student.classification.clone()),
        students,
        baselines: outputs.find::<RowBaselines>().map(|baselines| baselines.0[index].clone()),
        student_mean,
        student_deviation,
        student_median: (!accuracies.is_empty()).then(|| median(&accuracies)),
        paper: row.paper,
        encrypted_times: times.clone(),
    }
}
