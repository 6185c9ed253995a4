//! The page of a run and the page of a sweep. Each is one self-contained HTML file that can be opened, sent and
//! printed.
//!
//! With real noise, a page contains only public results: rows that a finite data-independent claim covers, and nothing
//! else that depends on the votes. A page of a simulation contains everything, because a simulation protects nothing.

mod about;
mod baselines;
mod classes;
mod drawn;
mod frame;
mod models;
mod public;
mod queries;
mod results;
mod sweep;

use std::fmt;

use maud::{Markup, html};

use self::frame::{Section, page, plot, simulation};
pub(crate) use self::public::{BASELINE_STAGE, STUDENT_STAGE};
pub use self::queries::Sheet;
use crate::report::asked::AskedQueries;
use crate::report::run::Report;

/// The parts of a run's page that its report does not contain. Missing parts are left out of the page.
pub struct PageParts<'a> {
    /// The queries with their answers.
    pub asked: Option<&'a AskedQueries>,
    /// The pictures of the queries.
    pub sheet: Option<&'a Sheet>,
    /// Returns the PNG file that the student of a stage drew.
    pub drawn: &'a dyn Fn(&str) -> Option<Vec<u8>>,
    /// Returns the path of the model of a row's student, by the row's name and the student's place, relative to the run's
    /// folder.
    pub model: &'a dyn Fn(&str, usize) -> Option<String>,
}

impl fmt::Debug for PageParts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PageParts").field("asked", &self.asked).field("sheet", &self.sheet).finish_non_exhaustive()
    }
}

impl Report {
    /// Returns the page of the run. Its plots need the students' accuracies by epoch, which a stored report does not
    /// contain.
    pub fn to_html(&self, parts: &PageParts<'_>) -> String {
        let report = self.for_anyone();
        let mut sections = vec![
            Section { id: "asked", title: "Settings", body: about::asked(&report) },
            Section { id: "results", title: "Results", body: results::results(&report, &report.table_for_anyone()) },
        ];
        let mut add = |id, title, body: Option<Markup>| sections.extend(body.map(|body| Section { id, title, body }));
        add("plots", "Plots", plots(&report));
        add("classes", "Results by class", classes::classes(&report));
        add("baselines", "Baselines", baselines::baselines(&report));
        add("drawn", "Images drawn by the students", drawn::drawn(&report, parts.drawn));
        add("models", "Trained students", models::models(&report, parts.model));
        add("queries", "Queries", parts.asked.map(|asked| queries::queries(asked, &report.classes, parts.sheet)));
        add("times", "Times", about::times(&report));
        add("config", "Config", Some(about::config(&report)));
        add("machine", "Machine and versions", Some(about::machine(&report.environment)));
        add("repeat", "Repeat the run", Some(about::repeat(&report)));
        let lead = html! {
            p.run { "Run " (report.run) " of experiment " (report.experiment) }
            @if report.simulation { (simulation()) } @else { (self.left_out()) }
        };
        let style = parts.sheet.map_or("", |sheet| sheet.style.as_str());
        page(&report.experiment, &lead, &sections, style)
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
