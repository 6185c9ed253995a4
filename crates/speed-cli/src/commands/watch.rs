//! `speed watch`: the state of a run, read from its directory.

use std::io::{IsTerminal, stderr};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use speed_core::{printable, printable_path};
use speed_experiment::report::Table;
use speed_experiment::{RunState, RunStatus, Shard, StageStatus, find_any_run, run_in_use};

use super::{Failure, print, print_json, print_json_line};
use crate::bar::note;
use crate::progress::Bars;
use crate::{progress, terminal};

/// The polling interval.
const EVERY: Duration = Duration::from_secs(1);

pub(super) fn watch(run: &Path, results: &Path, once: bool, json: bool) -> Result<(), Failure> {
    let folder = find_any_run(results, run)?;
    let status = RunStatus::read(&folder)?;
    match (once, json) {
        (true, true) => print_json(&status),
        (true, false) => print(&text(&status)),
        (false, true) => follow(folder, status, print_json_line).map(drop),
        (false, false) => {
            let end = if stderr().is_terminal() {
                let bars = Bars::new();
                follow(folder, status, |status| {
                    bars.show(status.view.clone());
                    Ok(())
                })?
            } else {
                follow_in_lines(folder, status)?
            };
            print(&ending(&end))
        }
    }
}

/// Shows changes until no process works on the run or on the next one of a sweep, and returns the final status of the
/// last one.
fn follow(
    mut folder: PathBuf,
    first: RunStatus,
    mut show: impl FnMut(&RunStatus) -> Result<(), Failure>,
) -> Result<RunStatus, Failure> {
    let mut status = first;
    loop {
        show(&status)?;
        std::thread::sleep(EVERY);
        if status.state != RunState::Running {
            match run_in_use(&folder) {
                Some(next) if status.state == RunState::Finished => folder = next,
                _ => return Ok(status),
            }
        }
        status = RunStatus::read(&folder)?;
    }
}

/// Prints when a stage begins, and its progress at intervals.
fn follow_in_lines(folder: PathBuf, first: RunStatus) -> Result<RunStatus, Failure> {
    let mut last_line: Option<(Option<String>, Instant)> = None;
    follow(folder, first, |status| {
        let running = status.view.running().map(|stage| stage.name.clone());
        let is_due = |(stage, at): &(Option<String>, Instant)| *stage != running || at.elapsed() >= progress::EVERY;
        if status.state == RunState::Running && last_line.as_ref().is_none_or(is_due) {
            if let Some(doing) = doing(status) {
                note(&doing);
            }
            last_line = Some((running, Instant::now()));
        }
        Ok(())
    })
}

/// Returns the current work of a run in one line.
fn doing(status: &RunStatus) -> Option<String> {
    let work = status.view.work.as_ref().map(ToString::to_string);
    work.or_else(|| status.view.running().map(|stage| format!("{}: running", stage.name))).map(|text| printable(&text))
}

fn text(status: &RunStatus) -> String {
    let mut table = Table::new(["stage", "state"]);
    for stage in &status.view.stages {
        table.push(vec![stage.name.clone(), stage.state.to_string()]);
    }
    let doing = doing(status).map_or_else(String::new, |doing| format!("{doing}\n"));
    format!("{}\n{}{}", terminal::table(&table), terminal::text(&doing), ending(status))
}

/// Returns the state of the run in one line.
fn ending(status: &RunStatus) -> String {
    let done = |state| matches!(state, StageStatus::Done | StageStatus::DoneAlready);
    let (stages, folder) = (&status.view.stages, printable_path(&status.folder));
    let of_all = format!("{} of {} stages", stages.iter().filter(|stage| done(stage.state)).count(), stages.len());
    match status.state {
        RunState::Running => format!("running, {of_all} done: {folder}\n"),
        RunState::Finished => format!("finished: {folder}\n"),
        RunState::Stopped if !Shard::at_work(&status.folder).is_empty() => {
            format!("shards work on it, {of_all} done; `speed status` shows their units: {folder}\n")
        }
        RunState::Stopped => {
            format!(
                "stopped, {of_all} done: no process works on {folder}; `speed run` with the same config resumes it\n"
            )
        }
    }
}
