//! `speed show`: the table of a finished run or sweep, or the state of an unfinished one.

mod follow;
mod state;
mod text;

use std::path::{Path, PathBuf};

use clap::Args;
use speed_core::printable_path;
use speed_experiment::{
    ExperimentError, FoundResults, find_any_run, find_results, is_finished, missing_for_page, read_report, read_sweep,
    report_path, run_page,
};

use self::state::State;
use super::runs::{report_text, sweep_text};
use super::{Failure, print, print_report};
use crate::bar::line;
use crate::slurm::Jobs;

#[derive(Debug, Args)]
pub(crate) struct ShowOptions {
    /// A run or sweep: its folder, such as results/EXPERIMENT/RUN, an experiment with one finished run or one run, or the
    /// beginning of its id
    run: PathBuf,
    /// Folder of all results, searched for runs by name
    #[arg(long, value_name = "DIR", default_value = "results")]
    results: PathBuf,
    /// Follow a run until no process works on it, then print its table or state; of several runs of an experiment, the
    /// active one
    #[arg(long, conflicts_with = "html")]
    follow: bool,
    /// Print an explanation of the columns below the table
    #[arg(long)]
    legend: bool,
    /// Print the complete report or the state as JSON; with --follow, the state as one object a line every second
    #[arg(long)]
    json: bool,
    /// Print the page, one HTML file: speed show RUN --html > page.html
    #[arg(long, conflicts_with_all = ["json", "legend"])]
    html: bool,
}

pub(super) fn show(options: &ShowOptions) -> Result<(), Failure> {
    let found = match options.follow {
        true => {
            let folder = follow::follow(find_any_run(&options.results, &options.run)?, options.json)?;
            if options.json {
                // The last object has the state.
                return Ok(());
            }
            if is_finished(&folder) { FoundResults::Run(folder) } else { FoundResults::Unfinished(folder) }
        }
        false => find(&options.results, &options.run)?,
    };
    match found {
        FoundResults::Run(run) => show_run(options, &run),
        FoundResults::Sweep(sweep) => {
            let report = read_sweep(&sweep)?;
            print_report(options.json, &report, || match options.html {
                true => report.to_html(),
                false => sweep_text(&report, &sweep),
            })
        }
        FoundResults::Unfinished(folder) if options.html => {
            Err(ExperimentError::not_finished(report_path(&folder)).into())
        }
        FoundResults::Unfinished(folder) => {
            let state = State::read(folder)?;
            print_report(options.json, &state, || state.to_text())
        }
    }
}

/// Finds a run or sweep. A submitted sweep is found by its directory, because it may have no run yet.
fn find(results: &Path, name: &Path) -> Result<FoundResults, Failure> {
    for folder in [name.to_path_buf(), results.join(name)] {
        if !is_finished(&folder) && Jobs::read(&folder)?.is_some() {
            return Ok(FoundResults::Unfinished(folder));
        }
    }
    Ok(find_results(results, name)?)
}

fn show_run(options: &ShowOptions, run: &Path) -> Result<(), Failure> {
    let report = read_report(run)?;
    if options.html {
        for path in missing_for_page(&report, run) {
            line(&format!("{} is missing, so the page lacks its content", printable_path(&path)));
        }
        return print(&run_page(&report, run)?);
    }
    print_report(options.json, &report, || report_text(&report, run, options.legend))
}
