//! One line of the table.

use serde::{Deserialize, Serialize};
use speed_accountant::Account;

use crate::report::classification::Classification;
use crate::report::statistics::{Interval, mean_and_deviation};

/// The way of computing a row's labels: `row.aggregation`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AggregationKind {
    /// Plurality without noise or encryption.
    NonPrivate,
    /// Noise, and a trusted server that sees the sums.
    Trusted,
    /// Noise, and a server that sees only ciphertexts.
    Encrypted,
}

/// The paper's figures for a row, if the paper gives them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PaperFigures {
    /// Epsilon.
    pub epsilon: Option<f64>,
    /// Student accuracy, percent.
    pub accuracy: Option<f64>,
    /// Its deviation, percentage points.
    pub deviation: Option<f64>,
    /// Homomorphic time for all queries, minutes.
    pub minutes: Option<f64>,
}

/// A trained student.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StudentRun {
    /// Name of the directory below `stages/` with its metrics and samples. Rows with the same labels share it.
    pub stage: String,
    /// Accuracy of the averaged parameters on the test images.
    pub accuracy: f64,
    /// Accuracy of the last parameters.
    pub accuracy_raw: f64,
    /// Mean over classes of the share of right ones among the test images of a class, 0 to 1, if recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub balanced_accuracy: Option<f64>,
    /// The area under the ROC curve of two classes, if recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auc: Option<f64>,
    /// Accuracies after each epoch; not in reports, because the list is long.
    #[serde(skip)]
    pub by_epoch: Vec<EpochAccuracy>,
    /// Results by class of the averaged parameters on the test images, if recorded. A report has those of the first student
    /// of each row: [`ReportRow::classification`].
    #[serde(skip)]
    pub classification: Option<Classification>,
}

/// The accuracy of a classifier on the test images.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Score {
    /// Name of the directory below `stages/` with its results by class.
    pub stage: String,
    /// Number of test images.
    pub images: u64,
    /// Number of them that were classified right.
    pub right: u64,
    /// Share of right ones, 0 to 1.
    pub accuracy: f64,
    /// Its Wilson interval at 95 %.
    pub interval: Interval,
}

impl Score {
    /// Returns the accuracy of a classification; `None` without images.
    pub(crate) fn new(stage: impl Into<String>, result: &Classification) -> Option<Self> {
        Some(Self {
            stage: stage.into(),
            images: result.images(),
            right: result.right(),
            accuracy: result.accuracy()?,
            interval: result.interval()?,
        })
    }
}

/// Classifiers that learn from a row's labels in other ways, on the same test images as its students.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Baselines {
    /// Students of the same network that learn from the labelled images alone, one per repeat.
    pub labelled_only: Vec<StudentRun>,
    /// Label spreading along a graph of the pool's nearest neighbours.
    pub label_spreading: Option<Score>,
}

/// Accuracies after an epoch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EpochAccuracy {
    /// The epoch, from 1.
    pub epoch: u32,
    /// Accuracy of the averaged parameters on the test images.
    pub average: f64,
    /// Accuracy of the last parameters on the test images.
    pub raw: f64,
}

/// Times of the homomorphic part, in seconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say what is timed")]
pub struct LabellingTimes {
    pub key_generation_seconds: f64,
    pub encrypt_seconds: f64,
    pub sum_seconds: f64,
    /// Wall-clock time of the argmax of all queries.
    pub argmax_seconds: f64,
    pub threads: usize,
    /// Wall-clock time of each query on its thread.
    pub query_seconds: Vec<f64>,
    /// Processor time of all threads for the complete round, including encryption, sum and decryption.
    pub core_seconds: Option<f64>,
}

impl LabellingTimes {
    /// Returns the times of these queries and of others together. Keys may have been generated once or for each; the longer time counts.
    #[must_use]
    pub fn with(mut self, other: &Self) -> Self {
        self.key_generation_seconds = self.key_generation_seconds.max(other.key_generation_seconds);
        self.encrypt_seconds += other.encrypt_seconds;
        self.sum_seconds += other.sum_seconds;
        self.argmax_seconds += other.argmax_seconds;
        // Without queries, no time is measured.
        self.core_seconds = match (self.core_seconds, other.core_seconds) {
            (core, _) if other.query_seconds.is_empty() => core,
            (core, also) => core.zip(also).map(|(core, also)| core + also),
        };
        self.query_seconds.extend(&other.query_seconds);
        self
    }
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
    pub labels_of: String,
    /// The name of its students' method.
    pub method: String,
    /// The tightest valid claim for the integer noise, at these votes.
    pub data_dependent: Option<Account>,
    /// The same claim if the adversary knows the other teachers' noise.
    pub data_dependent_collusion: Option<Account>,
    /// The tightest claim for all votes.
    pub data_independent: Option<Account>,
    /// The same claim for neighbours that differ in all votes of the largest party, if teachers are grouped into parties.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_independent_party: Option<Account>,
    /// Algorithm 1 with the paper's formulas for continuous noise, at these votes.
    pub paper_formulas: Option<Account>,
    /// The bounds without a value despite noise, and the reasons.
    pub without_value: Vec<String>,
    /// Share of right labels among the answered queries, 0 to 1.
    pub label_accuracy: Option<f64>,
    /// Mean over the true classes of the answered queries of the share of right labels, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_balanced_accuracy: Option<f64>,
    /// Number of queries whose label equals the clear-text argmax.
    pub agreement: usize,
    /// Number of queries without a unique winner; only the paper's circuit leaves any.
    pub unresolved: Option<usize>,
    /// Number of queries with a label, if a threshold may leave some without one, or a row without noise has some with empty votes only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answered: Option<usize>,
    /// Number of queries asked.
    pub queries: usize,
    /// The students, one per repeat.
    pub students: Vec<StudentRun>,
    /// Results by class of the first student on the test images; `None` without students.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub classification: Option<Classification>,
    /// Its baselines; `None` unless `table.baselines` is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baselines: Option<Baselines>,
    /// Mean accuracy of the students, 0 to 1.
    pub student_mean: Option<f64>,
    /// Their sample standard deviation; `None` for one repeat.
    pub student_deviation: Option<f64>,
    /// Their median.
    pub student_median: Option<f64>,
    /// The paper's own figures.
    pub paper: PaperFigures,
    /// Times of the homomorphic part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encrypted_times: Option<LabellingTimes>,
}

impl ReportRow {
    /// Returns the line without times and results by class: the figures of the table, which config and seed determine.
    pub(crate) fn figures_only(&self) -> Self {
        Self { encrypted_times: None, classification: None, ..self.clone() }
    }

    /// Returns the mean over the students of a result; `None` unless every student has it.
    pub(crate) fn mean_of_students(&self, result: fn(&StudentRun) -> Option<f64>) -> Option<f64> {
        let found: Vec<f64> = self.students.iter().map(result).collect::<Option<_>>()?;
        mean_and_deviation(&found).0
    }

    /// Returns the names of the stages that learned from its labels.
    pub(crate) fn stages(&self) -> impl Iterator<Item = &str> {
        let students = self.students.iter().chain(self.baselines.iter().flat_map(|other| &other.labelled_only));
        let spreading = self.baselines.iter().filter_map(|other| other.label_spreading.as_ref());
        students.map(|student| &*student.stage).chain(spreading.map(|score| &*score.stage))
    }

    pub(crate) fn is_noisy(&self) -> bool {
        self.aggregation != AggregationKind::NonPrivate
    }
}
