//! The labels of a row, and the times of their computation.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use speed_core::Circuit;

use super::argmax::LabellingOutcome;
use super::question::RowQuestion;
use crate::config::AggregationKind;
use crate::report::{LabellingTimes, csv};
use crate::stages::queries::QueryList;
use crate::stages::truth::Truth;
use crate::store::StageRemains;

pub(super) const RECORD: &str = "aggregate.json";

pub(super) const TIMES: &str = "times.json";

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RowLabels {
    /// One label per query; `None` if no count reached the threshold, if enough others had an answer, without noise also if
    /// all votes are empty, or if the paper's circuit found no winner or several.
    pub(crate) labels: Vec<Option<u8>>,
    /// Number of queries whose label equals the clear-text argmax of the same noisy votes.
    pub(crate) agreement: usize,
    /// Number of queries without a label, for the paper's circuit, which can leave one without.
    pub(crate) unresolved: Option<usize>,
    /// Share of right labels; `None` without true labels.
    pub(crate) label_accuracy: Option<f64>,
    /// Mean over the true classes of the share of right labels, measured when the record is read.
    #[serde(skip)]
    pub(crate) label_balanced_accuracy: Option<f64>,
    pub(crate) noisy_teachers: usize,
    /// Bytes that each teacher sends for all queries; 0 in clear text.
    pub(crate) message_bytes: usize,
}

impl RowLabels {
    /// Creates the record of the labels of a row's queries with `noisy_teachers` noisy teachers. Queries that were not
    /// asked, because their check failed, have no label.
    pub(super) fn new(
        question: &RowQuestion<'_>,
        labelled: LabellingOutcome,
        noisy_teachers: usize,
        label_accuracy: Option<f64>,
    ) -> Self {
        let row = question.row;
        let LabellingOutcome { labels, clear, aggregated, .. } = labelled;
        let (labels, clear) = (of_all(question, &labels), of_all(question, &clear));
        Self {
            agreement: labels.iter().zip(&clear).filter(|(label, clear)| label == clear).count(),
            unresolved: (row.circuit == Circuit::Paper).then(|| labels.iter().filter(|label| label.is_none()).count()),
            label_accuracy,
            label_balanced_accuracy: None,
            noisy_teachers: if row.aggregation == AggregationKind::NonPrivate { 0 } else { noisy_teachers },
            message_bytes: aggregated.message_bytes,
            labels,
        }
    }

    pub(crate) fn read(remains: &StageRemains) -> Option<Self> {
        serde_json::from_str(&remains.read(RECORD)?).ok()
    }

    pub(crate) fn answered(&self) -> usize {
        self.labels.iter().flatten().count()
    }

    /// Returns the queries that have a label, and their labels; the labels may cover only the first queries of a run.
    pub(crate) fn answers(&self) -> impl Iterator<Item = (usize, u8)> {
        self.labels.iter().enumerate().filter_map(|(query, &label)| Some((query, label?)))
    }

    pub(super) fn to_csv(&self, queries: QueryList<'_>) -> String {
        let lines = queries.images().iter().zip(&self.labels).enumerate().map(|(query, (image, label))| {
            vec![query.to_string(), image.to_string(), label.map_or_else(String::new, |label| label.to_string())]
        });
        csv::write(["query", "pool_image", "label"], lines)
    }
}

/// Returns the labels of all queries of the row from those of the asked ones.
pub(super) fn of_all(question: &RowQuestion<'_>, labels: &[Option<u8>]) -> Vec<Option<u8>> {
    let mut all = vec![None; question.queries.len()];
    labels.iter().enumerate().for_each(|(query, label)| all[question.place(query)] = *label);
    all
}

pub(super) fn times(labelled: &LabellingOutcome, threads: NonZeroUsize) -> LabellingTimes {
    let LabellingOutcome { aggregated, core_seconds, .. } = labelled;
    LabellingTimes {
        key_generation_seconds: aggregated.key_generation.as_secs_f64(),
        encrypt_seconds: aggregated.encryption.as_secs_f64(),
        sum_seconds: aggregated.sum.as_secs_f64(),
        argmax_seconds: aggregated.argmax.as_secs_f64(),
        threads: threads.get(),
        core_seconds: *core_seconds,
        query_seconds: aggregated.query_times.iter().map(Duration::as_secs_f64).collect(),
    }
}

/// Returns the share of right labels among the answered queries. The right label of a group is the most frequent true label.
pub(super) fn share_right(labels: &[Option<u8>], queries: QueryList<'_>, truth: &Truth<'_>) -> Option<f64> {
    let truth = queries.truth(truth.labels());
    let right = labels.iter().zip(&truth).filter(|(label, truth)| **label == Some(**truth)).count();
    let answered = labels.iter().flatten().count();
    (answered > 0).then(|| right as f64 / answered as f64)
}

/// Returns the mean over the true classes of the answered queries of the share of right labels; `None` without answers.
pub(super) fn mean_share_right(labels: &[Option<u8>], queries: QueryList<'_>, truth: &Truth<'_>) -> Option<f64> {
    let truth = queries.truth(truth.labels());
    // Answers and right answers by true class.
    let mut counts = BTreeMap::<u8, [u32; 2]>::new();
    for (label, truth) in labels.iter().zip(&truth).filter_map(|(label, truth)| Some(((*label)?, *truth))) {
        let [answers, right] = counts.entry(truth).or_default();
        *answers += 1;
        *right += u32::from(label == truth);
    }
    let shares = counts.values().map(|[answers, right]| f64::from(*right) / f64::from(*answers));
    (!counts.is_empty()).then(|| shares.sum::<f64>() / counts.len() as f64)
}
