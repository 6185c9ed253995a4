//! The page of a run and the page of a sweep. Each is one self-contained HTML file that can be opened, sent and
//! printed.
//!
//! With real noise, a page contains only public results: rows that a finite data-independent claim covers, and nothing
//! else that depends on the votes. A page of a simulation contains everything, because a simulation protects nothing.

mod about;
mod frame;
mod queries;
mod results;
mod students;
mod sweep;

use maud::{Markup, html};

use self::frame::{Section, page, plot, simulation};
pub(crate) use self::queries::{AskedQueries, RowAnswers, Sheet};
use crate::report::row::ReportRow;
use crate::report::run::Report;

/// The beginning of the names of stages that train a student.
pub(crate) const STUDENT_STAGE: &str = "student";

/// The beginning of the names of stages that measure baselines.
pub(crate) const BASELINE_STAGE: &str = "baseline";

impl Report {
    /// Returns the page of the run. Its plots need the students' accuracies by epoch, which a stored report does not
    /// contain. `drawn` gives the PNG file that the student of a stage drew, and `model` the path of a model relative to the
    /// run's folder, by the row's name and the student's place. Missing parts are left out of the page.
    pub(crate) fn to_html(
        &self,
        asked: Option<&AskedQueries>,
        sheet: Option<&Sheet>,
        drawn: impl Fn(&str) -> Option<Vec<u8>>,
        model: impl Fn(&str, usize) -> Option<String>,
    ) -> String {
        let report = self.for_anyone();
        let mut sections: Vec<Section> = vec![
            ("asked", "Settings", about::asked(&report)),
            ("results", "Results", results::results(&report, &report.table_for_anyone())),
        ];
        let mut add = |id, title, body: Option<Markup>| sections.extend(body.map(|body| (id, title, body)));
        add("plots", "Plots", plots(&report));
        add("classes", "Results by class", students::classes(&report));
        add("baselines", "Baselines", students::baselines(&report));
        add("drawn", "Images drawn by the students", students::drawn(&report, drawn));
        add("models", "Trained students", students::models(&report, model));
        add("queries", "Queries", asked.map(|asked| queries::queries(asked, &report.classes, sheet)));
        add("times", "Times", about::times(&report));
        add("config", "Config", Some(about::config(&report)));
        add("machine", "Machine and versions", Some(about::machine(&report.environment)));
        add("repeat", "Repeat the run", Some(about::repeat(&report)));
        let lead = html! {
            p.run { "Run " (report.run) " of experiment " (report.experiment) }
            @if report.simulation { (simulation()) } @else { (self.left_out()) }
        };
        page(&report.experiment, &lead, &sections, sheet.map_or("", |sheet| &sheet.style))
    }

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
    fn left_out(&self) -> Markup {
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

/// Returns the rows with a finite data-independent claim, without the figures that such a claim does not cover.
fn covered(rows: &[ReportRow]) -> Vec<ReportRow> {
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

fn plots(report: &Report) -> Option<Markup> {
    let file = |name| (!report.is_protected()).then_some(name);
    let [students, epochs] = [report.strip_plot(), report.epochs_plot()];
    (students.is_some() || epochs.is_some()).then(|| html! {
        @if let Some(svg) = students { (plot(&svg, "Accuracy of every student on the test images", file("students.csv"))) }
        @if let Some(svg) = epochs { (plot(&svg, "Accuracy of every student by epoch", file("epochs.csv"))) }
    })
}
