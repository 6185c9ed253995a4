//! `speed compare`

use std::path::PathBuf;

use clap::Args;
use speed_core::printable_path;
use speed_experiment::report::{Comparison, Report};
use speed_experiment::{find_run, read_report};

use super::{Failure, print_report, usage};
use crate::terminal;

#[derive(Debug, Args)]
pub(crate) struct CompareOptions {
    /// Runs, each a folder results/EXPERIMENT/RUN, an experiment with one finished run, or the beginning of a run's id;
    /// differences are relative to the first
    #[arg(required = true, value_name = "RUN", num_args = 1..=26)]
    runs: Vec<PathBuf>,
    /// Compare with the paper's own figures that the configs contain
    #[arg(long)]
    paper: bool,
    /// Folder of all results, searched for runs by name
    #[arg(long, value_name = "DIR", default_value = "results")]
    results: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Print Markdown
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
}

pub(super) fn compare(options: &CompareOptions) -> Result<(), Failure> {
    let read = |run| -> Result<(String, Report), Failure> {
        let folder = find_run(&options.results, run)?;
        Ok((printable_path(&folder), read_report(&folder)?))
    };
    let runs: Vec<(String, Report)> = options.runs.iter().map(|run| read(run)).collect::<Result<_, Failure>>()?;
    if runs.len() + usize::from(options.paper) < 2 {
        return Err(usage("paper", "one run alone cannot be compared: name another run, or give --paper"));
    }
    let comparison = Comparison::new(&runs, options.paper);
    print_report(options.json, &comparison, || match options.markdown {
        true => comparison.to_markdown(),
        false => terminal::text(&comparison.to_text(terminal::width())),
    })
}
