//! `speed list`, and the text of finished runs and sweeps.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use speed_accountant::{epsilon_text, without_protection};
use speed_core::{printable, printable_path};
use speed_experiment::report::{Report, ReportRow, SweepReport, Table, largest_epsilon, without_epsilon};
use speed_experiment::{ExperimentError, ListedState, RunSummary, list_runs, pages};

use super::{Failure, print_report};
use crate::terminal;

#[derive(Debug, Args)]
pub(crate) struct ListOptions {
    /// Folder of all results
    #[arg(long, value_name = "DIR", default_value = "results")]
    results: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn list(ListOptions { results, json }: &ListOptions) -> Result<(), Failure> {
    if !results.is_dir() {
        let missing = "there is no such folder of results: expected the --results of a run";
        return Err(match results.exists() {
            true => ExperimentError::not_a_folder(results).into(),
            false => ExperimentError::results(results, missing).into(),
        });
    }
    let runs = list_runs(results);
    print_report(*json, &json!({ "runs": runs }), || list_text(&runs))
}

fn list_text(runs: &[RunSummary]) -> String {
    let mut table = Table::new(["run", "date (UTC)", "state", "epsilon", "student %", "labels %", "noise"]);
    for run in runs {
        let percent =
            |share: Option<f64>| share.map_or_else(|| "-".to_owned(), |share| format!("{:.2}", 100.0 * share));
        table.push(vec![
            printable_path(&run.folder),
            run.ended_at.and_then(date).unwrap_or_else(|| "-".to_owned()),
            state(run),
            epsilon(run),
            percent(run.student_accuracy),
            percent(run.label_accuracy),
            run.noise.map_or_else(|| "-".to_owned(), |noise| noise.to_string()),
        ]);
    }
    let damages: String = runs
        .iter()
        .filter_map(|run| Some(format!("{}: {}\n", printable_path(&run.folder), run.damage.as_ref()?)))
        .collect();
    format!("{}{}", terminal::table(&table), terminal::text(&damages))
}

/// Returns a run's progress in a few words.
fn state(run: &RunSummary) -> String {
    let word = match run.state {
        ListedState::Running => "running",
        ListedState::Finished => return "finished".to_owned(),
        ListedState::Unfinished => "unfinished",
        ListedState::Damaged => return "damaged".to_owned(),
    };
    format!("{word}, {} stages", run.stages_done)
}

/// Returns the data-independent epsilon of a run: "none" if it does not exist for a row with noise, and "-" if it is
/// unknown or the run has no noise.
fn epsilon(run: &RunSummary) -> String {
    match run.epsilon {
        Some(epsilon) => epsilon_text(epsilon),
        None if !run.without_epsilon.is_empty() => "none".to_owned(),
        None => "-".to_owned(),
    }
}

/// Returns a time in seconds since 1970 as a date and a time of the day, in UTC.
fn date(seconds: u64) -> Option<String> {
    let time = jiff::Timestamp::from_second(i64::try_from(seconds).ok()?).ok()?;
    Some(time.strftime("%Y-%m-%d %H:%M").to_string())
}

/// Returns the comparison of a sweep for a terminal, and the location of the complete results.
pub(super) fn sweep_text(report: &SweepReport, folder: &Path) -> String {
    // Output is often kept in the logs of a cluster.
    let (table, folder) = (terminal::table(&report.for_anyone().summary()), printable_path(folder));
    let price = terminal::text(&price_text(report.rows()));
    let public = if report.is_protected() { "Only rows with a finite data-independent claim are shown.\n" } else { "" };
    format!("{}\n{table}\n{price}{public}tables, plots and page: {folder}\n", report.conditions())
}

/// Returns a report for a terminal: its conditions, the first columns, and the location of the complete results.
pub(super) fn report_text(report: &Report, run: &Path, legend: bool) -> String {
    // Output is often kept in the logs of a cluster.
    let public = report.for_anyone();
    let summary = public.summary();
    let mut below = String::new();
    if legend {
        below.push_str(&report.legend());
    } else if summary.columns().iter().any(|head| head.starts_with('ε')) {
        below.push_str("ε is data-independent and may be published; --legend explains every column.\n");
    }
    below.push_str(&public.missed_classes());
    below.push_str(&price_text(report.rows.iter()));
    let mut pages: Vec<String> = pages(run).iter().map(|page| printable_path(page)).collect();
    if report.is_protected() {
        pages.retain(|page| page.ends_with(".html"));
        let left_out = report.left_out_rows();
        if !left_out.is_empty() {
            let names = printable(&left_out.join(", "));
            below.push_str(&format!("Left out, because no finite data-independent claim covers them: {names}\n"));
        }
        below.push_str(&format!(
            "May be published: {} and the models of these rows. Secret, because their figures depend on the votes: all other files in {}\n",
            pages.join(" "),
            printable_path(run)
        ));
    } else if !pages.is_empty() {
        below.push_str(&format!("All columns, claims, plots: {}\n", pages.join(" ")));
    }
    format!("{}\n{}\n{}", terminal::text(&public.heading()), terminal::table(&summary), terminal::text(&below))
}

/// Explains why rows lack a data-independent epsilon, and that a very large epsilon gives no protection.
fn price_text<'a>(rows: impl Iterator<Item = &'a ReportRow> + Clone) -> String {
    let mut text = String::new();
    for (why, rows) in without_epsilon(rows.clone()) {
        text.push_str(&format!(
            "ε data-independent is none for {}: {why}. A smaller noise.gamma (a larger sigma, more coins), fewer queries or a larger privacy.delta gives one.\n",
            rows.join(", ")
        ));
    }
    if let Some(words) = largest_epsilon(rows).and_then(without_protection) {
        text.push_str(&format!(
            "{words} A smaller noise.gamma (a larger sigma, more coins) and fewer queries lower it; more teachers keep the labels right under more noise.\n"
        ));
    }
    text
}
