//! The page of a run and the page of a sweep. Each is one self-contained HTML file that can be opened, sent and
//! printed.
//!
//! With real noise, a page contains only public results: rows that a finite data-independent claim covers, and nothing
//! else that depends on the votes. A page of a simulation contains everything, because a simulation protects nothing.

mod about;
mod drawn;
mod frame;
mod public;
mod queries;
mod results;
mod sweep;

use std::path::{Path, PathBuf};

use maud::{Markup, html};

use self::frame::{Section, page, plot, simulation};
use self::queries::Sheet;
use crate::config::DataSource;
use crate::error::{Damage, ExperimentError, ResultsFault};
use crate::report::{AskedQueries, Report};
use crate::stages::{METRICS, PICTURE, read_epochs};
use crate::store::{ASKED_PICTURES, ASKED_QUERIES, read_table, stage_file_damage, table_path};

impl Report {
    /// Returns the page of the run in the directory `run`. Missing pictures and queries are left out.
    ///
    /// # Errors
    /// If one of the run's files is damaged.
    pub fn to_html(&self, run: &Path) -> Result<String, ExperimentError> {
        self.check_students(run)?;
        let report = self.for_anyone().with_epochs(run);
        let asked = asked_queries(run)?;
        let pictures = asked.as_ref().map(|asked| sheet(run, asked.pool_images.len())).transpose()?.flatten();
        let mut sections = vec![
            Section { id: "asked", title: "Settings", body: about::asked(&report) },
            Section { id: "results", title: "Results", body: results::results(&report, &report.table_for_anyone()) },
        ];
        let mut add = |id, title, body: Option<Markup>| sections.extend(body.map(|body| Section { id, title, body }));
        add("plots", "Plots", plots(&report));
        add("drawn", "Images drawn by the students", drawn::drawn(&report, run));
        add("queries", "Queries", asked.as_ref().map(|asked| queries::queries(asked, pictures.as_ref())));
        add("times", "Times", about::times(&report));
        add("config", "Config", Some(about::config(&report)));
        add("machine", "Machine and versions", Some(about::machine(&report.environment)));
        add("repeat", "Repeat the run", Some(about::repeat(&report)));
        let lead = html! {
            p.run { "Run " (report.run) " of experiment " (report.experiment) }
            @if report.simulation { (simulation()) } @else { (self.left_out()) }
        };
        Ok(page(&report.experiment, &lead, &sections, &pictures.map_or_else(String::new, |sheet| sheet.style)))
    }

    /// Returns the files that the page of the run in the directory `run` needs and lacks; the page leaves out their
    /// content.
    #[must_use]
    pub fn missing_for_page(&self, run: &Path) -> Vec<PathBuf> {
        let pictures = (self.config.data.source != DataSource::None).then_some(ASKED_PICTURES);
        let paths = [ASKED_QUERIES].into_iter().chain(pictures).map(|name| table_path(run, name));
        paths.filter(|path| !path.exists()).collect()
    }
}

impl Report {
    /// Checks the files of the students against the records of their stages, if these were kept.
    fn check_students(&self, run: &Path) -> Result<(), ExperimentError> {
        for student in self.rows.iter().flat_map(|row| &row.students) {
            for name in [METRICS, PICTURE] {
                if let Some((path, damage)) = stage_file_damage(run, &student.stage, name) {
                    return Err(ExperimentError::Results { path, fault: ResultsFault::Page { damage } });
                }
            }
        }
        Ok(())
    }

    /// Returns the report with its students' results by epoch, which the stored report does not contain.
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

fn asked_queries(run: &Path) -> Result<Option<AskedQueries>, ExperimentError> {
    let Some(bytes) = read_table(run, ASKED_QUERIES) else { return Ok(None) };
    let asked: Option<AskedQueries> = serde_json::from_slice(&bytes).ok();
    asked.filter(AskedQueries::is_whole).map(Some).ok_or_else(|| damaged(run, ASKED_QUERIES))
}

fn sheet(run: &Path, queries: usize) -> Result<Option<Sheet>, ExperimentError> {
    let Some(png) = read_table(run, ASKED_PICTURES) else { return Ok(None) };
    Sheet::new(&png, queries).map(Some).ok_or_else(|| damaged(run, ASKED_PICTURES))
}

fn damaged(run: &Path, name: &str) -> ExperimentError {
    ExperimentError::Results { path: table_path(run, name), fault: ResultsFault::Page { damage: Damage::Changed } }
}
