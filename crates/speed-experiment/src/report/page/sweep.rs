//! The page of a sweep: its comparison, its plots, and its runs.

use std::borrow::Cow;

use maud::{Markup, html};

use super::frame::{Section, facts, folded, page, plot, simulation, wide};
use super::{about, covered};
use crate::report::columns::ROW;
use crate::report::row::ReportRow;
use crate::report::statistics::distinct;
use crate::report::sweep::{NOTES, SweepReport};

impl SweepReport {
    /// Returns the page of the sweep.
    pub fn to_html(&self) -> String {
        let sweep = self.for_anyone();
        let mut sections: Vec<Section> =
            vec![("asked", "Settings", sweep.asked()), ("results", "Comparison", sweep.comparison())];
        let mut add = |id, title, body: Option<Markup>| sections.extend(body.map(|body| (id, title, body)));
        add("plots", "Plots", sweep.figures());
        add("runs", "Runs", Some(sweep.runs()));
        add("config", "Config", Some(about::config_of_sweep(&sweep.config_to_repeat())));
        add("machine", "Machine and versions", sweep.environment.as_ref().map(about::machine));
        let lead = html! {
            p.run { "Sweep " (self.sweep) " of experiment " (self.experiment) }
            @if self.simulation { (simulation()) }
            @if self.is_protected() { p.note {
                "The noise is real. This page shows only public results: rows that a finite data-independent claim covers, without epsilons at "
                "these votes. " (about::spent(self.ledger.as_ref()))
            } }
        };
        page(&format!("{}: {}", self.experiment, self.keys.join(", ")), &lead, &sections, "")
    }

    /// Returns the public part of the sweep, which is the complete sweep if no answers are protected.
    pub fn for_anyone(&self) -> Cow<'_, Self> {
        if !self.is_protected() {
            return Cow::Borrowed(self);
        }
        let mut public = self.clone();
        for setting in &mut public.settings {
            // The results of a simulation do not show which results of a run with real noise may be public.
            setting.rows = if setting.simulation { Vec::new() } else { covered(&setting.rows) };
        }
        Cow::Owned(public)
    }

    /// Returns whether noise protects the answers of any run.
    pub fn is_protected(&self) -> bool {
        self.settings.iter().any(|setting| !setting.simulation && setting.rows.iter().any(ReportRow::is_noisy))
    }

    fn asked(&self) -> Markup {
        let values = |key: usize| {
            let values = self.settings.iter().map(|setting| setting.values.get(key).map_or("", String::as_str));
            distinct(values).join(", ")
        };
        let mut swept: Vec<(&str, String)> =
            self.keys.iter().enumerate().map(|(place, key)| (key.as_str(), values(place))).collect();
        swept.push(("Runs", self.settings.len().to_string()));
        facts(&swept)
    }

    fn comparison(&self) -> Markup {
        let table = self.table();
        html! {
            (wide("Comparison", &html! { table {
                thead { tr { @for head in table.columns() { th.words[head == ROW] scope="col" { (head) } } } }
                tbody { @for row in &table.rows { tr {
                    @for (head, cell) in table.columns().iter().zip(row) { td.words[head == ROW] { (cell) } }
                } } }
            } }))
            (folded("Meaning of the columns", &html! {
                ul { @for note in NOTES.split("- **").filter(|note| !note.is_empty()) { li { (note.replace("**", "")) } } }
            }))
        }
    }

    fn figures(&self) -> Option<Markup> {
        let (plots, file) = (self.plots(), (!self.is_protected()).then_some("sweep.csv"));
        (!plots.is_empty()).then(|| html! { @for drawn in &plots { (plot(&drawn.svg, &drawn.title, file)) } })
    }

    fn runs(&self) -> Markup {
        html! {
            p.note { "Every setting is a separate run, with its own page in " code { "RUN/tables/report.html" } " beside the sweep's folder." }
            (wide("Runs", &html! { table {
                thead { tr { @for key in &self.keys { th scope="col" { (key) } } th scope="col" { "run" } } }
                tbody { @for setting in &self.settings { tr {
                    @for value in &setting.values { td { (value) } }
                    td { code { (setting.run) } }
                } } }
            } }))
        }
    }
}
