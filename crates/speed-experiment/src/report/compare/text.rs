//! A comparison as text and Markdown.

use speed_accountant::round_up;
use speed_core::printable;

use super::rows::shown;
use super::{ComparedRun, Comparison, Difference, FigureComparison, Measure};
use crate::report::run::RunNoise;
use crate::report::table::{NO_VALUE, Table};

const LEGEND: &str = "\
student %: mean ± deviation (number of students). A difference of means: ± its standard error, [Welch's interval at 95 %], as if the students
of the two runs were drawn independently. The spread covers repeated trainings on the same labels, not other labels, noise or teachers.
Data-dependent epsilons must not be published as they are.
";

impl Comparison {
    /// Returns the comparison as text: the runs, the differences of their settings, and their figures, in tables of at
    /// most `width` characters per line, or of any width.
    pub fn to_text(&self, width: Option<u16>) -> String {
        self.in_form(|text| format!("{text}\n"), |table| table.fitted(width))
    }

    /// Returns the comparison as Markdown.
    pub fn to_markdown(&self) -> String {
        self.in_form(|text| format!("## {text}\n\n"), Table::to_markdown)
    }

    fn in_form(&self, heading: fn(&str) -> String, table: impl Fn(&Table) -> String) -> String {
        let mut text = heading("Runs");
        text.push_str(&table(&self.runs_table()));
        text.push('\n');
        if self.settings.is_empty() {
            text.push_str("Configs, versions and machines are the same.\n\n");
        } else {
            text.push_str(&heading("Differences of configs, versions and machines"));
            text.push_str(&format!("{}\n", table(&self.settings_table())));
        }
        let mut figures = |name: &str, figures: &[FigureComparison]| {
            if !figures.is_empty() {
                text.push_str(&heading(&printable(name)));
                text.push_str(&format!("{}\n", table(&self.figures_table(figures))));
            }
        };
        figures("All rows", &self.run_figures);
        for row in &self.rows {
            figures(&format!("Row {}", row.name), &row.figures);
        }
        for line in
            self.rows.iter().filter_map(|row| self.absence(&row.name, &row.missing_in)).chain(self.notes.clone())
        {
            text.push_str(&format!("- {}\n", printable(&line)));
        }
        text.push_str(&format!("\n{LEGEND}"));
        text
    }

    /// Notes the runs that contain a row if others lack it.
    fn absence(&self, name: &str, missing_in: &[String]) -> Option<String> {
        let having = self.runs.iter().map(|run| &run.label).filter(|label| !missing_in.contains(label));
        let having: Vec<&str> = having.map(String::as_str).collect();
        (!missing_in.is_empty()).then(|| format!("row {name:?} is only in {}", having.join(", ")))
    }

    fn runs_table(&self) -> Table {
        let mut table = Table::new(["", "folder", "experiment", "run", "noise"]);
        for ComparedRun { label, folder, experiment, run, noise, .. } in &self.runs {
            let cell = |text: &Option<String>| printable(text.as_deref().unwrap_or(NO_VALUE));
            let noise = match noise {
                Some(RunNoise::Simulation) => "SIMULATION".to_owned(),
                Some(noise) => noise.to_string(),
                None => NO_VALUE.to_owned(),
            };
            table.push(vec![label.clone(), cell(folder), cell(experiment), cell(run), noise]);
        }
        table
    }

    fn settings_table(&self) -> Table {
        let runs = self.runs.iter().filter(|run| run.folder.is_some()).map(|run| run.label.clone());
        let mut table = Table::new(["key".to_owned()].into_iter().chain(runs));
        for setting in &self.settings {
            let cell = |value: &Option<_>| printable(&value.as_ref().map_or(NO_VALUE.to_owned(), shown));
            table.push([printable(&setting.key)].into_iter().chain(setting.values.iter().map(cell)).collect());
        }
        table
    }

    /// Returns a table of figures: the columns that contain any, then the differences from the first run if it contains
    /// any.
    fn figures_table(&self, figures: &[FigureComparison]) -> Table {
        let has_any = |index: &usize| figures.iter().any(|line| line.values[*index].is_some());
        let shown: Vec<usize> = (0..self.runs.len()).filter(has_any).collect();
        let compared: Vec<usize> = shown.iter().copied().filter(|index| *index > 0 && has_any(&0)).collect();
        let label = |index: &usize| self.runs[*index].label.clone();
        let differences = compared.iter().map(|index| format!("{} - {}", label(index), label(&0)));
        let mut table = Table::new(["figure".to_owned()].into_iter().chain(shown.iter().map(label)).chain(differences));
        for line in figures {
            let value = |index: &usize| {
                line.values[*index].as_ref().map_or_else(|| NO_VALUE.to_owned(), |value| measure(line, value))
            };
            let cells = [line.title.to_owned()].into_iter().chain(shown.iter().map(value));
            table.push(cells.chain(compared.iter().map(|index| difference(line, *index))).collect());
        }
        table
    }
}

/// Formats a figure with its deviation, as in the report's table.
fn measure(line: &FigureComparison, measure: &Measure) -> String {
    let Measure { value, deviation, students, of } = measure;
    if let Some(of) = of {
        return format!("{value:.0}/{of}");
    }
    if line.is_epsilon {
        return format!("{:.2}", round_up(*value, 2));
    }
    let digits = line.digits;
    let deviation = deviation.map_or_else(String::new, |deviation| format!(" ± {deviation:.digits$}"));
    let students = students.map_or_else(String::new, |students| format!(" ({students})"));
    format!("{value:.digits$}{deviation}{students}")
}

fn difference(line: &FigureComparison, index: usize) -> String {
    let Some(difference) = &line.differences[index] else {
        let both = line.values[0].is_some() && line.values[index].is_some();
        return if both && line.is_epsilon { "other claim" } else { NO_VALUE }.to_owned();
    };
    let Difference { difference, standard_error, interval, without_spread, .. } = difference;
    let is_count = line.values[index].as_ref().is_some_and(|value| value.of.is_some());
    let digits = if is_count { 0 } else { line.digits };
    let mut text = signed(*difference, digits);
    if let Some(error) = standard_error {
        text.push_str(&format!(" ± {error:.digits$}"));
    }
    if let Some([low, high]) = interval {
        text.push_str(&format!(" [{}, {}]", signed(*low, digits), signed(*high, digits)));
    }
    if let Some(why) = without_spread {
        text.push_str(&format!(" ({})", why.words()));
    }
    text
}

/// Formats a number with its sign; a number that rounds to zero has no sign.
fn signed(value: f64, digits: usize) -> String {
    let text = format!("{value:+.digits$}");
    if text.bytes().any(|byte| byte.is_ascii_digit() && byte != b'0') || !value.is_finite() {
        text
    } else {
        text.trim_start_matches(['+', '-']).to_owned()
    }
}
