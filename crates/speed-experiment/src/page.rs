//! The page of a run and that of a sweep: one HTML file each, to be opened, sent and printed as it is.
//!
//! With real noise a page holds what anyone may see: rows that a finite claim covers whatever the votes are, and nothing else that
//! depends on the votes. A simulation hides nothing, since it protects nothing.

mod about;
mod drawn;
mod frame;
mod public;
mod queries;
mod results;
mod sweep;

use std::path::Path;

use maud::{Markup, html};

use self::frame::{Section, page, plot, simulation};
use self::queries::Sheet;
use crate::report::{AskedQueries, Report};
use crate::stages::read_epochs;
use crate::store::{ASKED_PICTURES, ASKED_QUERIES, read_table};

impl Report {
    /// Returns the page of the run in the folder `run`. Pictures and queries that are not there, or not as they should be, are left out.
    #[must_use]
    pub fn to_html(&self, run: &Path) -> String {
        let report = self.for_anyone().with_epochs(run);
        let asked = asked_queries(run);
        let pictures =
            asked.as_ref().and_then(|asked| Sheet::new(&read_table(run, ASKED_PICTURES)?, asked.pool_images.len()));
        let mut sections = vec![
            Section { id: "asked", title: "What was asked", body: about::asked(&report) },
            Section { id: "results", title: "Results", body: results::results(&report, &report.table_for_anyone()) },
        ];
        let mut add = |id, title, body: Option<Markup>| sections.extend(body.map(|body| Section { id, title, body }));
        add("plots", "Plots", plots(&report));
        add("drawn", "Drawn by the students", drawn::drawn(&report, run));
        add("queries", "Queries", asked.as_ref().map(|asked| queries::queries(asked, pictures.as_ref())));
        add("times", "Times", about::times(&report));
        add("config", "Config", Some(about::config(&report)));
        add("machine", "Machine and versions", Some(about::machine(&report.environment)));
        add("repeat", "How to repeat it", Some(about::repeat(&report)));
        let lead = html! {
            p.run { "Run " (report.run) " of experiment " (report.experiment) }
            @if report.simulation { (simulation()) } @else { (self.left_out()) }
        };
        page(&report.experiment, &lead, &sections, &pictures.map_or_else(String::new, |sheet| sheet.style))
    }
}

impl Report {
    /// Returns the report with what its students learnt by epoch, which a report that was read lacks.
    fn with_epochs(mut self, run: &Path) -> Self {
        for student in self.rows.iter_mut().flat_map(|row| &mut row.students) {
            if student.by_epoch.is_empty() {
                student.by_epoch = read_epochs(run, &student.stage);
            }
        }
        self
    }
}

fn plots(report: &Report) -> Option<Markup> {
    let file = |name| (!report.is_protected()).then_some(name);
    let [students, epochs] = [report.strip_plot(), report.epochs_plot()];
    (students.is_some() || epochs.is_some()).then(|| html! {
        @if let Some(svg) = students { (plot(&svg, "Accuracy of every student on the test images", file("students.csv"))) }
        @if let Some(svg) = epochs { (plot(&svg, "Accuracy of every student by epoch", file("epochs.csv"))) }
    })
}

fn asked_queries(run: &Path) -> Option<AskedQueries> {
    let asked: AskedQueries = serde_json::from_slice(&read_table(run, ASKED_QUERIES)?).ok()?;
    asked.is_whole().then_some(asked)
}
