//! What is to be submitted: what is neither done nor in Slurm's hands.

use std::num::NonZeroUsize;

use speed_experiment::{Step, StepWork};

use crate::commands::{Failure, usage};
use crate::slurm::{Jobs, Seen, Submitted};

/// Shards of a stage where nobody says how many.
const SHARDS: usize = 100;

/// What becomes of a step.
#[derive(Debug)]
pub(super) struct Order {
    pub(super) step: Step,
    /// The number of its shards; 1 where it does not divide.
    pub(super) of: usize,
    /// The shards to submit, none of them in a step that does not divide; nothing where there is nothing to submit.
    pub(super) todo: Option<Vec<usize>>,
    /// Its jobs that wait or run, and are left to it.
    pub(super) alive: Vec<String>,
    /// Its jobs that wait for what is now submitted again, and so in vain.
    pub(super) stale: Vec<String>,
}

/// Returns what becomes of every step, in their order.
pub(super) fn arrange(
    work: &StepWork<'_>,
    jobs: &Jobs,
    seen: &[Seen],
    shards: Option<NonZeroUsize>,
) -> Result<Vec<Order>, Failure> {
    let (mut orders, mut is_behind) = (Vec::new(), false);
    for step in work.steps()? {
        let order = order(work, step, jobs, seen, shards, is_behind)?;
        is_behind |= order.todo.is_some();
        orders.push(order);
    }
    Ok(orders)
}

/// Returns what becomes of a step; `is_behind` tells whether an earlier one is submitted again.
fn order(
    work: &StepWork<'_>,
    step: Step,
    jobs: &Jobs,
    seen: &[Seen],
    shards: Option<NonZeroUsize>,
    is_behind: bool,
) -> Result<Order, Failure> {
    let last = jobs.of(step).last().map(|job| job.of);
    let wanted = shards.map(NonZeroUsize::get).or(last).unwrap_or(SHARDS);
    let of = if step.is_divided() { wanted.min(work.units(step)).max(1) } else { 1 };
    let living = |job: &Submitted| -> Vec<Seen> {
        seen.iter().filter(|task| task.job == job.job && task.is_alive()).cloned().collect()
    };
    let (mut alive, mut stale, mut taken) = (Vec::new(), Vec::new(), Vec::new());
    for job in jobs.of(step) {
        let tasks = living(job);
        if tasks.is_empty() {
            continue;
        }
        if is_behind && tasks.iter().all(|task| task.state == "PENDING") {
            stale.push(job.job.clone());
            continue;
        }
        if job.of != of {
            let message = format!(
                "{of} of {}, and job {} with {} of them waits or runs: use --shards {}, or scancel {} first",
                step.name(),
                job.job,
                job.of,
                job.of,
                job.job
            );
            return Err(usage("shards", message));
        }
        alive.push(job.job.clone());
        taken.extend(tasks.into_iter().filter_map(|task| task.task));
    }
    let todo = if step.is_divided() {
        let open = work.open_shards(step, of)?.into_iter().filter(|shard| !taken.contains(shard));
        Some(open.collect::<Vec<_>>()).filter(|open| !open.is_empty())
    } else {
        (alive.is_empty() && !work.is_done(step)).then(Vec::new)
    };
    Ok(Order { step, of, todo, alive, stale })
}
