//! Selects the steps and shards that are neither finished nor queued.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;

use speed_experiment::{Step, StepState, Steps};

use crate::commands::{Failure, usage};
use crate::slurm::{Jobs, Seen, Submitted};

/// The default number of shards of a stage.
const SHARDS: usize = 100;

/// The largest number of tasks in a dependency, because the length of sbatch's arguments is limited.
const MOST_NAMED: usize = 4000;

#[derive(Debug)]
pub(super) struct StepPlan {
    pub(super) step: Step,
    /// The number of its shards; 1 for a step without shards.
    pub(super) of: usize,
    /// The shards to submit, empty for a step without shards; `None` if there is nothing to submit.
    pub(super) todo: Option<Vec<usize>>,
    /// Its jobs that wait or run, or tasks of these jobs, in the format of the next step's dependency.
    pub(super) alive: Vec<String>,
    /// Its jobs that wait in vain, because their dependency is now submitted again.
    pub(super) stale: Vec<String>,
}

/// Returns the plan for every step, in their order.
pub(super) fn arrange(
    steps: &Steps<'_>,
    jobs: &Jobs,
    seen: &[Seen],
    shards: Option<NonZeroUsize>,
) -> Result<Vec<StepPlan>, Failure> {
    let shards_of = |step: Step| {
        let last = jobs.of_step(step).last().map(|job| job.of);
        let wanted = shards.map(NonZeroUsize::get).or(last).or(jobs.wanted_shards).unwrap_or(SHARDS);
        wanted.min(steps.units(step)).max(1)
    };
    let (mut plans, mut is_behind) = (Vec::new(), false);
    for state in steps.states(shards_of)? {
        let plan = plan_step(state, jobs, seen, is_behind)?;
        is_behind |= plan.todo.is_some();
        plans.push(plan);
    }
    Ok(plans)
}

/// Returns the plan for a step; `is_behind` is true if an earlier step is submitted again.
fn plan_step(state: StepState, jobs: &Jobs, seen: &[Seen], is_behind: bool) -> Result<StepPlan, Failure> {
    let StepState { step, of, open } = state;
    let (is_open, open) = (open.is_some(), BTreeSet::from_iter(open.unwrap_or_default()));
    let (mut alive, mut stale, mut taken) = (Vec::new(), Vec::new(), BTreeSet::new());
    for job in jobs.of_step(step) {
        let (tasks, ended): (Vec<&Seen>, Vec<&Seen>) =
            seen.iter().filter(|task| task.job == job.job).partition(|task| task.is_alive());
        if tasks.is_empty() {
            continue;
        }
        if is_behind && tasks.iter().all(|task| task.state == "PENDING") {
            stale.push(job.job.clone());
            continue;
        }
        if job.of != of {
            return Err(other_number(step, of, job));
        }
        let living: BTreeSet<usize> = tasks.iter().filter_map(|task| task.task).collect();
        alive.extend(worth_waiting_for(job, &living, &ended, &open));
        taken.extend(living);
    }
    let todo = if step.has_shards() {
        let todo: Vec<usize> = open.difference(&taken).copied().collect();
        Some(todo).filter(|todo| !todo.is_empty())
    } else {
        (alive.is_empty() && is_open).then(Vec::new)
    };
    Ok(StepPlan { step, of, todo, alive, stale })
}

/// Returns the dependencies for a job that follows `job`: all of `job`, or only its tasks that wait or run if another
/// task is not known to have succeeded. A job cannot depend on a complete array of which a task failed, even if its
/// shard was done later.
fn worth_waiting_for(
    job: &Submitted,
    living: &BTreeSet<usize>,
    ended: &[&Seen],
    open: &BTreeSet<usize>,
) -> Vec<String> {
    let ended: BTreeMap<usize, &Seen> = ended.iter().filter_map(|task| Some((task.task?, *task))).collect();
    let is_well = |shard: &usize| match ended.get(shard) {
        _ if living.contains(shard) => true,
        Some(task) => task.state == "COMPLETED",
        // Slurm has forgotten the task.
        None => living.len() > MOST_NAMED && !open.contains(shard),
    };
    match job.shards.iter().all(is_well) {
        true => vec![job.job.clone()],
        false => living.iter().map(|task| format!("{}_{task}", job.job)).collect(),
    }
}

fn other_number(step: Step, of: usize, job: &Submitted) -> Failure {
    let (name, number, there) = (step.name(), &job.job, job.of);
    let message = format!(
        "{of} of {name}, and job {number} with {there} of them waits or runs: use --shards {there}, or scancel {number} first"
    );
    usage("shards", message)
}
