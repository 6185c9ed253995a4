//! The state of an unfinished run or sweep as text for people.

use speed_core::printable_path;
use speed_experiment::report::Table;
use speed_experiment::{RunState, RunStatus, Shard, StageStatus, StageUnits, Step, config_path};

use super::follow::doing;
use super::state::{Outcome, State, StateOfRun, Task};
use crate::slurm::ranges;
use crate::terminal;

const MAX_LINES: usize = 20;

impl State {
    pub(super) fn to_text(&self) -> String {
        let is_submitted = self.slurm_error.is_some() || !self.tasks.is_empty();
        let mut text: String = self.runs.iter().map(|run| run.to_text(is_submitted)).collect();
        if let Some(error) = &self.slurm_error {
            text.push_str(&format!("\nSlurm was not asked: {error}\n"));
        }
        if !self.tasks.is_empty() {
            text.push_str(&format!("\n{}", terminal::table(&self.jobs_table())));
        }
        let held: Vec<String> = self.tasks.iter().filter_map(held).collect();
        if !held.is_empty() {
            text.push_str(&format!("\nheld; they do nothing until this happens:\n{}", listed(&held)));
        }
        let failed = failed(&self.tasks);
        if !failed.is_empty() {
            text.push_str(
                "\nnot done, and in no job that waits or runs; the same `speed submit` submits them again:\n",
            );
            text.push_str(&listed(&failed));
        }
        if !config_path(&self.folder).exists() {
            text.push_str(&format!("{}\n", printable_path(&self.folder)));
        }
        text
    }

    fn jobs_table(&self) -> Table {
        let mut table = Table::new(["jobs", "waiting", "running", "done", "failed", "forgotten"]);
        let mut steps: Vec<Step> = self.tasks.iter().map(|task| task.step).collect();
        steps.dedup();
        for step in steps {
            let count = |outcome| {
                let is_counted = |task: &&Task| match task.outcome {
                    Outcome::Held => outcome == Outcome::Waiting,
                    other => outcome == other,
                };
                self.tasks.iter().filter(|task| task.step == step).filter(is_counted).count().to_string()
            };
            let outcomes =
                [Outcome::Waiting, Outcome::Running, Outcome::Done, Outcome::Failed, Outcome::Forgotten].map(count);
            table.push([vec![step.name()], outcomes.to_vec()].concat());
        }
        table
    }
}

impl StateOfRun {
    /// Returns the stages with their units, the current work, the shards at work, and the state in one line.
    fn to_text(&self, is_submitted: bool) -> String {
        let Self { status, units, shards } = self;
        let mut table = Table::new(["stage", "state", "units"]);
        for stage in &status.view.stages {
            let units = units.iter().find(|units| units.stage == stage.name).map_or_else(String::new, of_all);
            table.push(vec![stage.name.clone(), stage.state.to_string(), units]);
        }
        let doing = doing(status).map_or_else(String::new, |doing| format!("{doing}\n"));
        let at_work = shards.chunk_by(|one, next| (&one.stage, one.of) == (&next.stage, next.of)).map(at_work);
        let lines =
            format!("{doing}{}{}", at_work.collect::<String>(), ending(status, !shards.is_empty(), is_submitted));
        format!("{}\n{}", terminal::table(&table), terminal::text(&lines))
    }
}

/// Returns the number of finished units of a stage.
fn of_all(units: &StageUnits) -> String {
    format!("{} of {}{}", units.done, if units.at_most { "at most " } else { "" }, units.of)
}

fn ending(status: &RunStatus, has_shards: bool, is_submitted: bool) -> String {
    let done = |state| matches!(state, StageStatus::Done | StageStatus::DoneAlready);
    let (stages, folder) = (&status.view.stages, printable_path(&status.folder));
    let of_all = format!("{} of {} stages", stages.iter().filter(|stage| done(stage.state)).count(), stages.len());
    match status.state {
        RunState::Running => format!("running, {of_all} done: {folder}\n"),
        RunState::Finished => format!("finished: {folder}\n"),
        RunState::Stopped if has_shards => format!("shards work on it, {of_all} done: {folder}\n"),
        RunState::Stopped if is_submitted => format!("not finished, {of_all} done: {folder}\n"),
        RunState::Stopped => format!(
            "stopped, {of_all} done: no process works on {folder}; `speed run` with the same config resumes it\n"
        ),
    }
}

/// Returns the line of the shards of a stage that are at work.
fn at_work(shards: &[Shard]) -> String {
    let Some(Shard { stage, of, .. }) = shards.first() else { return String::new() };
    let numbers: Vec<usize> = shards.iter().map(|shard| shard.number).collect();
    format!("at work: {stage} {}/{of}\n", ranges(&numbers))
}

/// Returns the line of a held task, with the command that lets it go on.
fn held(task: &Task) -> Option<String> {
    let Task { step, job, shard, of, state, needs, .. } = task;
    let (which, number) = match shard {
        Some(shard) => (format!(" {shard}/{of}"), format!("{job}_{shard}")),
        None => (String::new(), job.clone()),
    };
    let state = state.as_deref().unwrap_or_default();
    Some(format!("  {}{which}: {state}: {} {number}", step.name(), (*needs)?))
}

/// Returns a line for every failed task. Tasks of one job that left no log, because they never began, share a line.
fn failed(tasks: &[Task]) -> Vec<String> {
    let mut groups: Vec<Vec<&Task>> = Vec::new();
    for task in tasks.iter().filter(|task| matches!(task.outcome, Outcome::Failed | Outcome::Forgotten)) {
        let is_like = |other: &Task| {
            let both_without = !task.log.exists() && !other.log.exists();
            let same_job = (other.step, &other.job, &other.state) == (task.step, &task.job, &task.state);
            both_without && same_job && other.exit_code == task.exit_code
        };
        match groups.last_mut() {
            Some(group) if group.first().is_some_and(|other| is_like(other)) => group.push(task),
            _ => groups.push(vec![task]),
        }
    }
    groups.iter().filter_map(|group| group_text(group)).collect()
}

fn group_text(group: &[&Task]) -> Option<String> {
    let Task { step, job, of, state, exit_code, log, .. } = group.first()?;
    let shards: Vec<usize> = group.iter().filter_map(|task| task.shard).collect();
    let which = if shards.is_empty() { String::new() } else { format!(" {}/{of}", ranges(&shards)) };
    let state = state.as_deref().unwrap_or("not known to Slurm any more");
    let code = exit_code.as_ref().map_or_else(String::new, |code| format!(", exit {code}"));
    let log = if log.exists() { printable_path(log) } else { "none".to_owned() };
    Some(format!("  {}{which}: job {job}, {state}{code}; log: {log}", step.name()))
}

/// Returns the first lines, and the number of others if there are many.
fn listed(lines: &[String]) -> String {
    let mut text: String = lines.iter().take(MAX_LINES).map(|line| format!("{line}\n")).collect();
    if lines.len() > MAX_LINES {
        text.push_str(&format!("  and {} others: --json has all\n", lines.len() - MAX_LINES));
    }
    text
}
