//! The public part of a report.

use maud::{Markup, html};

use crate::report::row::ReportRow;
use crate::report::run::Report;

/// The beginning of the names of stages that train a student.
pub(crate) const STUDENT_STAGE: &str = "student";

/// The beginning of the names of stages that measure baselines.
pub(crate) const BASELINE_STAGE: &str = "baseline";

/// Returns the rows with a finite data-independent claim, without the figures that such a claim does not cover.
pub(super) fn covered(rows: &[ReportRow]) -> Vec<ReportRow> {
    let covered = rows.iter().filter(|row| row.data_independent.is_some());
    let public = covered.map(|row| ReportRow {
        data_dependent: None,
        data_dependent_collusion: None,
        paper_formulas: None,
        without_value: Vec::new(),
        ..row.clone()
    });
    public.collect()
}

impl Report {
    /// Returns the public part of the report, which is the complete report if no answers are protected.
    pub fn for_anyone(&self) -> Self {
        if !self.is_protected() {
            return self.clone();
        }
        let mut public = Self { rows: covered(&self.rows), ..self.clone() };
        // The name of a stage of students and baselines contains the hash of its labels, and labels are few enough to guess.
        let is_covered = |stage: &str| {
            let named_by_labels = [STUDENT_STAGE, BASELINE_STAGE];
            let has_labels = named_by_labels.iter().any(|kind| stage.starts_with(kind));
            !has_labels || public.rows.iter().flat_map(ReportRow::stages).any(|other| other == stage)
        };
        public.stage_times = self.stage_times.iter().filter(|time| is_covered(&time.stage)).cloned().collect();
        public.ensemble.mean_accuracy = None;
        public.ensemble.empty_votes = None;
        public.ensemble.plurality_accuracy = None;
        public.ensemble.test_accuracy = None;
        public
    }

    /// Returns the names of the rows that [`for_anyone`](Self::for_anyone) leaves out.
    pub fn left_out_rows(&self) -> Vec<&str> {
        let is_left_out = |row: &&ReportRow| self.is_protected() && row.data_independent.is_none();
        self.rows.iter().filter(is_left_out).map(|row| row.name.as_str()).collect()
    }

    /// Returns a note on the parts that [`for_anyone`](Self::for_anyone) left out.
    pub(super) fn left_out(&self) -> Markup {
        let missing = self.left_out_rows();
        html! {
            @if !self.is_protected() { p.warning { "No row has noise: nothing here is private." } } @else { p.note {
                "The noise is real. This page shows only public results: labels and students that a finite data-independent claim covers. "
                "Left out: epsilons at these votes, the ensemble's accuracy"
                @if !missing.is_empty() { ", and rows without such a claim (" (missing.join(", ")) ")" }
                ". Readers who may see the votes find them in " code { "report.md" } "."
            } }
        }
    }
}
