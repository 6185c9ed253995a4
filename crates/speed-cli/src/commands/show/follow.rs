//! `speed show --follow`: the progress of a run that another process executes.

use std::io::{IsTerminal, stderr};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use speed_core::printable;
use speed_experiment::{RunState, RunStatus, run_in_use};

use crate::bar::note;
use crate::failure::Failure;
use crate::output::print_json_line;
use crate::progress::{self, Bars};

const EVERY: Duration = Duration::from_secs(1);

enum Display {
    /// An object a line on standard output.
    Objects,
    Bars(Bars),
    /// A line on standard error when a stage begins, and at intervals: the stage and the time of the last line.
    Lines(Option<(Option<String>, Instant)>),
}

/// Shows changes until no process works on the run or on the next one of a sweep, and returns the directory of the last
/// one.
pub(super) fn follow(mut folder: PathBuf, json: bool) -> Result<PathBuf, Failure> {
    let mut status = RunStatus::read(&folder)?;
    let mut display = match json {
        true => Display::Objects,
        false if stderr().is_terminal() => Display::Bars(Bars::new()),
        false => Display::Lines(None),
    };
    loop {
        display.show(&status)?;
        std::thread::sleep(EVERY);
        if status.state != RunState::Running {
            match run_in_use(&folder) {
                Some(next) if status.state == RunState::Finished => folder = next,
                _ => return Ok(folder),
            }
        }
        status = RunStatus::read(&folder)?;
    }
}

impl Display {
    fn show(&mut self, status: &RunStatus) -> Result<(), Failure> {
        match self {
            Self::Objects => print_json_line(status)?,
            Self::Bars(bars) => bars.show(status.view.clone()),
            Self::Lines(last) if status.state == RunState::Running => {
                let running = status.view.running().map(|stage| stage.name.clone());
                let is_due =
                    |(stage, at): &(Option<String>, Instant)| *stage != running || at.elapsed() >= progress::EVERY;
                if last.as_ref().is_none_or(is_due) {
                    doing(status).iter().for_each(|line| note(line));
                    *last = Some((running, Instant::now()));
                }
            }
            Self::Lines(_) => {}
        }
        Ok(())
    }
}

/// Returns the current work of a run in one line.
pub(super) fn doing(status: &RunStatus) -> Option<String> {
    let work = status.view.work.as_ref().map(ToString::to_string);
    work.or_else(|| status.view.running().map(|stage| format!("{}: running", stage.name))).map(|text| printable(&text))
}
