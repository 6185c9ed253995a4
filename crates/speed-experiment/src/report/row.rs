//! One line of the table.

use serde::{Deserialize, Serialize};
use speed_accountant::Account;
use speed_student::StudentMethod;

use super::columns::EPSILONS;
use super::statistics::{mean_and_deviation, median};
use crate::config::{AggregationKind, Config, PaperFigures};
use crate::stages::{Bounds, LabellingTimes, RowLabels, StudentRun};

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
}

/// One line of the table.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReportRow {
    /// The row's name.
    pub name: String,
    /// How its labels were computed.
    pub aggregation: AggregationKind,
    /// Fraction of the teachers that added noise (tau).
    pub honest_ratio: f64,
    /// The row that its labels are from; empty if they are its own.
    #[serde(default)]
    pub labels_of: String,
    /// The method of its students.
    #[serde(default)]
    pub method: StudentMethod,
    /// The tightest valid claim for the integer noise, at these votes.
    #[serde(alias = "privacy")]
    pub data_dependent: Option<Account>,
    /// The same claim if the adversary knows the other teachers' noise.
    #[serde(default, alias = "privacy_collusion")]
    pub data_dependent_collusion: Option<Account>,
    /// The tightest claim for all votes.
    #[serde(alias = "privacy_data_independent")]
    pub data_independent: Option<Account>,
    /// Algorithm 1 with the paper's formulas for continuous noise, at these votes.
    #[serde(alias = "privacy_paper_formulas")]
    pub paper_formulas: Option<Account>,
    /// The bounds without a value despite noise, and the reasons.
    #[serde(default, alias = "privacy_without_value")]
    pub without_value: Vec<String>,
    /// Share of right labels among the answered queries, 0 to 1.
    pub label_accuracy: Option<f64>,
    /// Number of queries whose label equals the clear-text argmax.
    pub agreement: usize,
    /// Number of queries without a unique winner; only the paper's circuit leaves any.
    #[serde(default)]
    pub unresolved: Option<usize>,
    /// Number of queries with a label, if a threshold may leave some without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered: Option<usize>,
    /// Number of queries asked.
    pub queries: usize,
    /// The students, one per repeat.
    pub students: Vec<StudentRun>,
    /// Mean accuracy of the students, 0 to 1.
    pub student_mean: Option<f64>,
    /// Their sample standard deviation; `None` for one repeat.
    pub student_deviation: Option<f64>,
    /// Their median.
    #[serde(default)]
    pub student_median: Option<f64>,
    /// The paper's own figures.
    pub paper: PaperFigures,
    /// Times of the homomorphic part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) encrypted_times: Option<LabellingTimes>,
}

impl ReportRow {
    /// Creates the line of the row at `index` of `config`.
    pub(crate) fn new(config: &Config, index: usize, result: RowResult) -> Self {
        let (row, source) = (&config.rows[index], &config.rows[config.labels_of(index)]);
        let RowResult { labels, times, bounds, students } = result;
        let accuracies: Vec<f64> = students.iter().map(|student| student.accuracy).collect();
        let (student_mean, student_deviation) = mean_and_deviation(&accuracies);
        let bounds = bounds.unwrap_or_default();
        Self {
            name: row.name.clone(),
            aggregation: source.aggregation,
            honest_ratio: source.honest_ratio.get(),
            labels_of: row.labels_of.map_or_else(String::new, |source| config.rows[source].name.clone()),
            method: config.method_of(row),
            data_dependent: bounds.data_dependent,
            data_dependent_collusion: bounds.data_dependent_collusion,
            data_independent: bounds.data_independent,
            paper_formulas: bounds.paper_formulas,
            without_value: bounds.without_value,
            label_accuracy: labels.label_accuracy,
            agreement: labels.agreement,
            unresolved: labels.unresolved,
            answered: source.threshold().map(|_| labels.answered()),
            queries: labels.labels.len(),
            students,
            student_mean,
            student_deviation,
            student_median: (!accuracies.is_empty()).then(|| median(&accuracies)),
            paper: row.paper,
            encrypted_times: times,
        }
    }

    /// Returns the line without times, which is the part that config and seed determine.
    pub(crate) fn without_times(&self) -> Self {
        Self { encrypted_times: None, ..self.clone() }
    }

    /// Returns whether noise was added to its votes.
    pub(crate) fn is_noisy(&self) -> bool {
        self.aggregation != AggregationKind::NonPrivate
    }

    /// Returns its claims in the order of their columns, each with its columns.
    pub(crate) fn claims(&self) -> Vec<(&Account, Vec<&'static str>)> {
        let mut claims: Vec<(&Account, Vec<&'static str>)> = Vec::new();
        let bounds =
            [&self.data_independent, &self.data_dependent, &self.data_dependent_collusion, &self.paper_formulas];
        for (account, column) in bounds.into_iter().zip(EPSILONS) {
            let Some(account) = account else { continue };
            match claims.iter_mut().find(|(other, _)| other.claim == account.claim) {
                Some((_, columns)) => columns.push(column),
                None => claims.push((account, vec![column])),
            }
        }
        claims
    }
}
