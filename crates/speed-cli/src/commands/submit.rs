//! `speed submit`: submits an experiment as jobs of a Slurm cluster.

mod arrange;
mod options;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Serialize;
use speed_core::printable_path;
use speed_experiment::{
    Config, ExperimentError, Lock, Plan, RunOptions, Source, Step, Steps, Sweep, begin_run, config_path, plan,
    slurm_folder, sweep_id, write_atomic,
};

use self::arrange::{StepPlan, arrange};
pub(in crate::commands) use self::options::{SubmitOptions, absolute};
use self::options::{check, text};
use super::{Failure, print_report, usage};
use crate::slurm::{self, JobCommand, Jobs, Needs, Script, Submitted, quoted};

/// The directory of the logs, beside the scripts.
const LOGS: &str = "logs";
/// The factor on the measured values, which are estimates within a factor of two.
const MARGIN: f64 = 2.0;
/// Smallest time limit of a shard, in minutes.
const LEAST: f64 = 10.0;
/// Smallest time limit of a job without shards, in minutes. It reads all results and runs the accountant, which is not
/// measured.
const LEAST_WHOLE: f64 = 60.0;
/// Smallest memory in megabytes, and the unit to which it is rounded up.
const LEAST_MEMORY: f64 = 500.0;
const MEMORY_STEP: f64 = 100.0;

pub(super) fn submit(options: &SubmitOptions) -> Result<(), Failure> {
    check(options)?;
    let source = Source::read(&options.experiment.config)?.with_overrides(&options.experiment.overrides)?;
    let results = absolute(&options.experiment.results)?;
    Submission::new(options, &Sweep::load(&source)?, &results)?.execute()
}

/// A submission: its config, its steps and the command of its jobs.
struct Submission<'a> {
    options: &'a SubmitOptions,
    /// The config, or a sweep's config for its first setting.
    config: &'a Config,
    steps: Steps<'a>,
    results: &'a Path,
    /// The directory of the run or sweep.
    folder: PathBuf,
    job: JobCommand,
    plan: Plan,
    is_sweep: bool,
}

/// The state of a step after `speed submit`, as printed.
#[derive(Serialize)]
struct StepReport<'a> {
    step: Step,
    script: PathBuf,
    /// The total number of shards; null for a step without shards.
    shards: Option<usize>,
    /// The state: `done`, `underway` (queued or running), `submitted`, or `to-do` (in a dry run).
    state: &'static str,
    /// The shards in this submission.
    submitted: &'a [usize],
    job: Option<String>,
    /// The program and its arguments.
    command: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

impl<'a> Submission<'a> {
    fn new(options: &'a SubmitOptions, sweep: &'a Sweep, results: &'a Path) -> Result<Self, Failure> {
        let (config, steps, is_sweep) = (sweep.first(), Steps::new(sweep, results), !sweep.is_plain());
        let datasets = options.experiment.datasets.clone().or_else(speed_data::folder_of_environment);
        let datasets = datasets.map(|folder| absolute(&folder)).transpose()?;
        let folder = steps.folder().to_path_buf();
        let mut run_options = vec!["--results".to_owned(), text(results)?];
        if let Some(datasets) = &datasets {
            run_options.extend(["--datasets".to_owned(), text(datasets)?]);
        }
        if let Some(most) = options.limit.limit()?.most() {
            run_options.extend(["--max-epsilon".to_owned(), most.to_string()]);
        }
        if options.mix_machines {
            run_options.push("--mix-machines".to_owned());
        }
        if is_sweep {
            run_options
                .extend(options.experiment.overrides.iter().flat_map(|change| ["--set".to_owned(), change.clone()]));
        }
        let program = std::env::current_exe().map_err(ExperimentError::io("find", "the running program"))?;
        let job = JobCommand {
            program: text(&program)?,
            working: text(&absolute(Path::new("."))?)?,
            config: text(&if is_sweep { slurm_folder(&folder).join("config.toml") } else { config_path(&folder) })?,
            options: run_options,
            kind: if is_sweep { "sweep" } else { "run" },
            run: sweep_id(sweep),
        };
        let settings = RunOptions {
            results: results.to_path_buf(),
            datasets,
            threads: NonZeroUsize::new(options.cpus.into()).unwrap_or(NonZeroUsize::MIN),
            force: Vec::new(),
            limit: options.limit.limit()?,
            mix_machines: options.mix_machines,
            latency_wait: Duration::ZERO,
        };
        let plan = plan(config, &settings)?;
        if let Some(questioned) = &plan.questioned {
            return Err(usage("max-epsilon", questioned.clone()));
        }
        match &plan.missing {
            Some(missing) => Err(usage("datasets", missing.clone())),
            None => Ok(Self { options, config, steps, results, folder, job, plan, is_sweep }),
        }
    }

    fn execute(&self) -> Result<(), Failure> {
        // Two processes that read the same record would submit the same shards twice.
        let _alone = if self.options.dry_run { None } else { Some(self.begin()?) };
        let mut jobs = Jobs::read(&self.folder)?.unwrap_or_default();
        let seen = match (jobs.jobs.is_empty(), self.options.dry_run) {
            (true, _) => Vec::new(),
            (false, true) => slurm::queue().unwrap_or_default(),
            (false, false) => slurm::queue()?,
        };
        let step_plans = arrange(&self.steps, &jobs, &seen, self.options.shards)?;
        let scripts: Vec<Script<'_>> = step_plans.iter().map(|step_plan| self.script(step_plan)).collect();
        if !self.options.dry_run {
            self.prepare(&scripts)?;
            let runs = self.steps.runs();
            let names = runs.iter().filter_map(|run| run.file_name());
            jobs.runs = names.map(|name| name.to_string_lossy().into_owned()).collect();
            jobs.wanted_shards = self.options.shards.map(NonZeroUsize::get).or(jobs.wanted_shards);
            jobs.write(&self.folder)?;
        }
        let (mut reports, mut after) = (Vec::new(), Vec::new());
        for (step_plan, script) in step_plans.iter().zip(&scripts) {
            reports.push(self.step(step_plan, script, &mut after, &mut jobs)?);
        }
        self.report(&reports)
    }

    fn script(&self, step_plan: &StepPlan) -> Script<'_> {
        let (step, of) = (step_plan.step, step_plan.of);
        Script { step, of, experiment: &self.config.name, job: &self.job, needs: self.needs(step, of) }
    }

    /// Returns the resources for a job of a step with `of` shards: from the user's options, else from a few steps measured here.
    fn needs(&self, step: Step, of: usize) -> Needs {
        let SubmitOptions { cpus, time: limit, memory: size, partition, account, .. } = self.options;
        let cost = self.plan.cost.as_ref();
        let measured = cost.and_then(|cost| self.steps.seconds(step, of, *cpus, cost));
        let bytes = cost.map_or(0.0, |cost| cost.memory_bytes);
        Needs {
            cpus: *cpus,
            time: limit.clone().or_else(|| measured.map(|seconds| time(step, seconds))),
            memory: size.clone().unwrap_or_else(|| memory(bytes)),
            partition: partition.clone(),
            account: account.clone(),
        }
    }

    /// Creates the directories and takes the lock for submitting.
    fn begin(&self) -> Result<Lock, Failure> {
        if !self.is_sweep {
            begin_run(self.config, self.results)?;
        }
        let logs = slurm_folder(&self.folder).join(LOGS);
        std::fs::create_dir_all(&logs).map_err(ExperimentError::io("create", &logs))?;
        Ok(Jobs::lock(&self.folder)?)
    }

    /// Writes the scripts and the config to the paths that the jobs read.
    fn prepare(&self, scripts: &[Script<'_>]) -> Result<(), Failure> {
        let folder = slurm_folder(&self.folder);
        if self.is_sweep {
            // The jobs read a copy of the config, because `--run` stops a job whose config has changed.
            let config = &self.options.experiment.config;
            let text = std::fs::read(config).map_err(ExperimentError::io("read", config))?;
            write_atomic(Path::new(&self.job.config), &text)?;
        }
        for script in scripts {
            write_atomic(&script.path(&folder), script.text().as_bytes())?;
        }
        Ok(())
    }

    /// Submits the missing shards with `after` as dependencies, then replaces `after` with the dependencies of the next step.
    fn step<'o>(
        &self,
        step_plan: &'o StepPlan,
        script: &Script<'_>,
        after: &mut Vec<String>,
        jobs: &mut Jobs,
    ) -> Result<StepReport<'o>, Failure> {
        let path = script.path(&slurm_folder(&self.folder));
        let mut report = StepReport {
            step: step_plan.step,
            script: path.clone(),
            shards: step_plan.step.has_shards().then_some(step_plan.of),
            state: if step_plan.alive.is_empty() { "done" } else { "underway" },
            submitted: &[],
            job: None,
            command: Vec::new(),
            text: self.options.dry_run.then(|| script.text()),
        };
        let mut next = step_plan.alive.clone();
        if let Some(shards) = &step_plan.todo {
            report.state = if self.options.dry_run { "to-do" } else { "submitted" };
            report.submitted = shards;
            let arguments = self.arguments(step_plan.step, shards, after, &path)?;
            report.command = [vec!["sbatch".to_owned()], arguments.clone()].concat();
            if self.options.dry_run {
                next.push(format!("${{{}%%;*}}", variable(step_plan.step)));
            } else {
                if !step_plan.stale.is_empty() {
                    slurm::cancel(&step_plan.stale)?;
                }
                let job = slurm::submit(&arguments)?;
                let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                jobs.jobs.push(Submitted {
                    step: step_plan.step,
                    job: job.clone(),
                    name: script.job_name(),
                    shards: shards.clone(),
                    of: step_plan.of,
                    submitted_at: since.as_secs(),
                });
                // Written after every job, so that no submitted job is lost.
                jobs.write(&self.folder)?;
                next.push(job.clone());
                report.job = Some(job);
            }
        }
        if !next.is_empty() {
            *after = next;
        }
        Ok(report)
    }

    /// Returns the options of sbatch that are not in the script.
    fn arguments(&self, step: Step, shards: &[usize], after: &[String], path: &Path) -> Result<Vec<String>, Failure> {
        // The logs' directory is passed as the job's working directory, because sbatch would interpret a `%` or `\` in the
        // path of a log.
        let logs = slurm_folder(&self.folder).join(LOGS);
        let mut arguments = vec!["--parsable".to_owned(), format!("--chdir={}", text(&logs)?)];
        if step.has_shards() {
            let at_once = self.options.at_once.map_or_else(String::new, |at_once| format!("%{at_once}"));
            arguments.push("--output=%x-%A_%a.out".to_owned());
            arguments.push(format!("--array={}{at_once}", slurm::ranges(shards)));
        } else {
            arguments.push("--output=%x-%j.out".to_owned());
        }
        if !after.is_empty() {
            arguments.push(format!("--dependency=afterok:{}", after.join(":")));
        }
        arguments.extend(self.options.sbatch.iter().cloned());
        arguments.push(text(path)?);
        Ok(arguments)
    }

    fn report(&self, reports: &[StepReport<'_>]) -> Result<(), Failure> {
        let value = serde_json::json!({
            "run": self.job.run,
            "folder": self.folder,
            "slurm": slurm_folder(&self.folder),
            "dry_run": self.options.dry_run,
            "refused": self.plan.refused,
            "steps": reports,
        });
        print_report(self.options.json, &value, || self.text(reports))
    }

    fn text(&self, reports: &[StepReport<'_>]) -> String {
        let mut text: String = reports.iter().map(|step| line(step)).collect();
        if !self.options.dry_run {
            let (folder, run) = (printable_path(&slurm_folder(&self.folder)), printable_path(&self.folder));
            text.push_str(&format!("scripts, jobs and logs: {folder}\nprogress: speed show {}\n", quoted(&run)));
        }
        if let Some(refused) = &self.plan.refused {
            text.push_str(&format!("WARNING: privacy.budget would refuse a row: {refused}\n"));
        }
        text
    }
}

/// Returns a step's outcome; in a dry run its script and its bash command.
fn line(report: &StepReport<'_>) -> String {
    let (name, variable) = (report.step.name(), variable(report.step));
    if let (Some(script), "to-do") = (&report.text, report.state) {
        // Shell variables replace the missing job IDs, so they must not be quoted.
        let word = |word: &String| if word.starts_with("--dependency=") { word.clone() } else { quoted(word) };
        let words: Vec<String> = report.command.iter().map(word).collect();
        return format!(
            "### {}\n{script}### submitted by\n{variable}=$({})\n\n",
            printable_path(&report.script),
            words.join(" ")
        );
    }
    let of = report.shards.map_or_else(String::new, |of| format!(" of {of} shards"));
    match (&report.job, report.submitted) {
        (Some(job), []) => format!("{name}: job {job}\n"),
        (Some(job), shards) => format!("{name}: job {job}, {}{of}\n", slurm::ranges(shards)),
        (None, _) if report.state == "underway" => format!("{name}: already queued or running\n"),
        (None, _) => format!("{name}: done\n"),
    }
}

/// Returns the name of the bash variable that holds the job ID of a step.
fn variable(step: Step) -> String {
    step.name().replace('-', "_")
}

/// Returns a time limit as `hours:minutes:seconds`.
fn time(step: Step, seconds: f64) -> String {
    let least = if step.has_shards() { LEAST } else { LEAST_WHOLE };
    let minutes = (MARGIN * seconds / 60.0).max(least).ceil();
    format!("{:.0}:{:02.0}:00", (minutes / 60.0).floor(), minutes % 60.0)
}

fn memory(bytes: f64) -> String {
    let megabytes = (MARGIN * bytes / 1e6 / MEMORY_STEP).ceil() * MEMORY_STEP;
    format!("{:.0}M", megabytes.max(LEAST_MEMORY))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn needs_are_rounded_up_generously() {
        let teachers: Step = serde_json::from_value("teachers".into()).expect("a step");
        assert_eq!(time(teachers, 1.0), "0:10:00");
        assert_eq!(time(Step::REPORT, 1.0), "1:00:00");
        assert_eq!(time(teachers, 3601.0), "2:01:00");
        assert_eq!(time(teachers, 100.0 * 3600.0), "200:00:00");
        assert_eq!(memory(1e6), "500M");
        assert_eq!(memory(550e6), "1100M");
        assert_eq!(memory(551e6), "1200M");
    }
}
