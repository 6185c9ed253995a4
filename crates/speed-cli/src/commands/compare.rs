//! `speed compare`

use speed_core::printable_path;
use speed_experiment::report::{Comparison, Report};
use speed_experiment::{find_run, read_report};

use super::{Failure, print, print_json, usage};
use crate::options::CompareOptions;
use crate::terminal;

pub(super) fn compare(options: &CompareOptions) -> Result<(), Failure> {
    let read = |run| -> Result<(String, Report), Failure> {
        let folder = find_run(&options.results, run)?;
        Ok((printable_path(&folder), read_report(&folder)?))
    };
    let runs: Vec<(String, Report)> = options.runs.iter().map(|run| read(run)).collect::<Result<_, Failure>>()?;
    if runs.len() + usize::from(options.paper) < 2 {
        return Err(usage("paper", "one run alone cannot be compared: name another run, or give --paper".into()));
    }
    let comparison = Comparison::new(&runs, options.paper);
    if options.json {
        print_json(&comparison)
    } else if options.csv {
        print(&comparison.to_csv())
    } else if options.markdown {
        print(&comparison.to_markdown())
    } else {
        print(&terminal::text(&comparison.to_text(terminal::width())))
    }
}
