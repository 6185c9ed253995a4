//! The state of an unfinished run or sweep: its stages, their units, the shards at work and the jobs of a cluster.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::Serialize;
use speed_experiment::{
    Config, RunStatus, Shard, Source, StageUnits, Step, StepState, Steps, config_path, slurm_folder,
};

use crate::commands::Failure;
use crate::commands::submit::absolute;
use crate::slurm::{self, Jobs, Seen, SlurmError, Submitted, log_name};

/// The state of a run or sweep.
#[derive(Serialize)]
pub(super) struct State {
    /// The directory of the run or sweep.
    pub(super) folder: PathBuf,
    /// The run, or the runs of the sweep that have begun.
    pub(super) runs: Vec<StateOfRun>,
    /// The error, if Slurm could not be queried.
    pub(super) slurm_error: Option<String>,
    /// The last job of each shard that was submitted to Slurm.
    pub(super) tasks: Vec<Task>,
}

#[derive(Serialize)]
pub(super) struct StateOfRun {
    #[serde(flatten)]
    pub(super) status: RunStatus,
    pub(super) units: Vec<StageUnits>,
    /// The shards whose locks are held.
    pub(super) shards: Vec<Shard>,
}

/// A job, or the task of a job array that runs one shard.
#[derive(Serialize)]
pub(super) struct Task {
    pub(super) step: Step,
    pub(super) job: String,
    /// Null for a step without shards.
    pub(super) shard: Option<usize>,
    pub(super) of: usize,
    pub(super) outcome: Outcome,
    /// Slurm's name of the state; null if Slurm has forgotten the job.
    pub(super) state: Option<String>,
    /// The command, or who must give it, that lets a held job go on; the job's number follows it.
    pub(super) needs: Option<&'static str>,
    /// Exit code and signal, if Slurm's accounting has them.
    pub(super) exit_code: Option<String>,
    pub(super) log: PathBuf,
}

/// A step without shards, or a shard of a step.
type StepShard = (Step, Option<usize>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Outcome {
    Waiting,
    Running,
    /// The job does nothing until somebody, or Slurm after a preemption, lets it go on.
    Held,
    Done,
    Failed,
    /// Slurm has forgotten the job, and its units are not known to be done.
    Forgotten,
}

impl State {
    /// Reads the state of the run or submitted sweep in `folder`, and changes nothing there.
    pub(super) fn read(folder: PathBuf) -> Result<Self, Failure> {
        let jobs = Jobs::read(&folder)?;
        let folders = match &jobs {
            Some(jobs) if !config_path(&folder).exists() => beside(&folder, &jobs.runs),
            _ => vec![folder.clone()],
        };
        let runs = folders.iter().filter(|run| config_path(run).exists()).map(|run| StateOfRun::read(run));
        let runs = runs.collect::<Result<_, Failure>>()?;
        let mut state = Self { folder, runs, slurm_error: None, tasks: Vec::new() };
        if let Some(jobs) = jobs {
            state.ask(&jobs)?;
        }
        Ok(state)
    }

    /// Queries Slurm for the outcomes of the jobs. If the query fails, only the units are known.
    fn ask(&mut self, jobs: &Jobs) -> Result<(), Failure> {
        let numbers: Vec<&str> = jobs.jobs.iter().map(|job| job.job.as_str()).collect();
        let seen = match ask_slurm(&numbers) {
            Ok(seen) => seen,
            Err(error) => {
                self.slurm_error = Some(error.to_string());
                return Ok(());
            }
        };
        let open = self.open(jobs)?;
        let mut known = BTreeSet::new();
        // Only the last job of each shard counts.
        for job in jobs.jobs.iter().rev() {
            let of = jobs.of_step(job.step).last().map(|last| last.of);
            for shard in job.tasks() {
                if of == Some(job.of) && known.insert((job.step, shard)) {
                    let is_open = open.as_ref().is_none_or(|open| open.contains(&(job.step, shard)));
                    self.tasks.push(task(&self.folder, job, shard, &seen, is_open));
                }
            }
        }
        self.tasks.sort_by_key(|task| (task.step, task.shard));
        Ok(())
    }

    /// Returns the shards and steps that are not done, or `None` if some runs of a sweep have not begun: then no shard
    /// or step counts as done.
    fn open(&self, jobs: &Jobs) -> Result<Option<BTreeSet<StepShard>>, Failure> {
        if self.runs.len() < jobs.runs.len() {
            return Ok(None);
        }
        let folder = absolute(&self.folder)?;
        let results = folder.parent().and_then(Path::parent).unwrap_or(&folder);
        let configs = self.runs.iter().map(|run| {
            let path = config_path(&folder.with_file_name(&run.status.run));
            Ok(Config::load(&Source::read(&path)?)?)
        });
        let configs: Vec<Config> = configs.collect::<Result<_, Failure>>()?;
        let steps = Steps::in_folder(folder.clone(), &configs, results);
        let states = steps.states(|step| jobs.of_step(step).last().map_or(1, |job| job.of))?;
        let open = states.into_iter().filter_map(|StepState { step, open, .. }| Some((step, open?)));
        let open = open.flat_map(|(step, shards)| match step.has_shards() {
            true => shards.into_iter().map(|shard| (step, Some(shard))).collect(),
            false => vec![(step, None)],
        });
        Ok(Some(open.collect()))
    }
}

/// Returns Slurm's information on all jobs that wait or run, and on the finished jobs with these numbers.
fn ask_slurm(numbers: &[&str]) -> Result<Vec<Seen>, SlurmError> {
    let mut seen = slurm::queue()?;
    if !numbers.is_empty() {
        seen.extend(slurm::accounted(numbers)?.unwrap_or_default());
    }
    Ok(seen)
}

/// Returns the directories of the runs of a sweep. Their names are untrusted, so only names that stay in the directory
/// are used.
fn beside(sweep: &Path, runs: &[String]) -> Vec<PathBuf> {
    let is_name = |run: &&String| run.bytes().all(|byte| byte.is_ascii_alphanumeric());
    runs.iter().filter(is_name).map(|run| sweep.with_file_name(run)).collect()
}

impl StateOfRun {
    fn read(run: &Path) -> Result<Self, Failure> {
        Ok(Self { status: RunStatus::read(run)?, units: StageUnits::of_run(run)?, shards: Shard::at_work(run) })
    }
}

/// Returns the task of a job, or of one of its shards, with its outcome.
fn task(folder: &Path, job: &Submitted, shard: Option<usize>, seen: &[Seen], is_open: bool) -> Task {
    let of_it = || seen.iter().filter(|task| task.job == job.job && task.task == shard);
    // The queue comes first. A preempted task that is also in the accounts will not run again.
    let in_accounts = || of_it().find(|task| task.exit_code.is_some());
    let found = of_it().next().map(|task| if task.state == "PREEMPTED" { in_accounts().unwrap_or(task) } else { task });
    let outcome = match found {
        Some(found) if found.needs().is_some() => Outcome::Held,
        Some(found) if found.is_alive() && matches!(&*found.state, "PENDING" | "PREEMPTED") => Outcome::Waiting,
        Some(found) if found.is_alive() => Outcome::Running,
        Some(found) if found.state == "COMPLETED" => Outcome::Done,
        Some(_) if is_open => Outcome::Failed,
        None if is_open => Outcome::Forgotten,
        Some(_) | None => Outcome::Done,
    };
    Task {
        step: job.step,
        job: job.job.clone(),
        shard,
        of: job.of,
        outcome,
        state: found.map(|found| found.state.clone()),
        needs: found.and_then(Seen::needs),
        exit_code: of_it().find_map(|found| found.exit_code.clone()),
        log: slurm_folder(folder).join("logs").join(log_name(&job.name, &job.job, shard)),
    }
}
