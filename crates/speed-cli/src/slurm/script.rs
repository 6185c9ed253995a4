//! Bash scripts, one for each step, for Slurm and for manual use with any other scheduler.

use std::path::{Path, PathBuf};

use speed_core::printable;
use speed_experiment::Step;

use super::quote::quoted;

/// Seconds that a shard waits for the results of earlier steps. NFS shows files after at most 60 s (`acdirmax`), and if
/// the shard gives up, Slurm removes the jobs that depend on it.
const LATENCY_WAIT: u32 = 90;

/// The resources that a job requests.
#[derive(Clone, Debug)]
pub(crate) struct Needs {
    /// Number of processors and of threads.
    pub(crate) cpus: u16,
    /// The time limit; `None` for the cluster's default.
    pub(crate) time: Option<String>,
    /// Memory, in sbatch's format.
    pub(crate) memory: String,
    pub(crate) partition: Option<String>,
    pub(crate) account: Option<String>,
}

/// The command of a run's jobs; its paths are valid on all machines.
#[derive(Clone, Debug)]
pub(crate) struct JobCommand {
    pub(crate) program: String,
    /// The directory that relative paths of the config refer to.
    pub(crate) working: String,
    pub(crate) config: String,
    /// Options of `speed run`, unchanged.
    pub(crate) options: Vec<String>,
    /// The word "run" or "sweep", and its id.
    pub(crate) kind: &'static str,
    pub(crate) run: String,
}

#[derive(Debug)]
pub(crate) struct Script<'a> {
    pub(crate) step: Step,
    /// The number of all shards; 1 for a step without shards.
    pub(crate) of: usize,
    pub(crate) experiment: &'a str,
    pub(crate) job: &'a JobCommand,
    pub(crate) needs: Needs,
}

impl Script<'_> {
    /// Returns the name of its jobs, which identifies the run in Slurm's lists.
    pub(crate) fn job_name(&self) -> String {
        let id: String = self.job.run.chars().take(8).collect();
        format!("speed-{}-{id}", self.step.name())
    }

    pub(crate) fn path(&self, folder: &Path) -> PathBuf {
        folder.join(format!("{}.sh", self.step.name()))
    }

    pub(crate) fn text(&self) -> String {
        let Self { step, of, experiment, job, needs } = self;
        let mut text = format!("#!/bin/bash\n# Experiment {}, {} {}: ", printable(experiment), job.kind, job.run);
        let shard = if step.has_shards() { format!(", one of {of} shards") } else { String::new() };
        text.push_str(&format!("{step}{shard}.\n"));
        text.push_str(
            "# Written by `speed submit`, which writes it again. Slurm may end it at any moment and start it again.\n",
        );
        if step.has_shards() {
            text.push_str(&format!(
                "# By hand: bash {}.sh I, for I from 1 to {of}, any number at a time, in any order.\n",
                step.name()
            ));
        } else {
            text.push_str(&format!("# By hand: bash {}.sh, once everything before it is done.\n", step.name()));
        }
        text.push_str(&self.directives(needs));
        text.push_str("\nset -euo pipefail\n");
        if step.has_shards() {
            text.push_str(&format!(
                "shard=\"${{SLURM_ARRAY_TASK_ID:-${{1:?expected the number of a shard, from 1 to {of}}}}}\"\n"
            ));
        }
        text.push_str(&format!("cd {}\n{}\n", quoted(&job.working), self.command()));
        text
    }

    /// Returns the lines for sbatch; no text in them needs quotes.
    fn directives(&self, needs: &Needs) -> String {
        let mut options = vec![
            format!("--job-name={}", self.job_name()),
            format!("--cpus-per-task={}", needs.cpus),
            format!("--mem={}", needs.memory),
        ];
        options.extend(needs.time.iter().map(|time| format!("--time={time}")));
        options.extend(needs.partition.iter().map(|name| format!("--partition={name}")));
        options.extend(needs.account.iter().map(|name| format!("--account={name}")));
        // Work is saved unit by unit, so jobs can be requeued after a node failure. A job that depends on a failed one
        // is removed, which the next `speed submit` detects.
        options.extend(["--requeue", "--open-mode=append", "--kill-on-invalid-dep=yes"].map(str::to_owned));
        options.iter().map(|option| format!("#SBATCH {option}\n")).collect()
    }

    fn command(&self) -> String {
        let JobCommand { program, config, options, run, .. } = self.job;
        let words: Vec<String> = [program.as_str(), "run", config.as_str(), "--run", run.as_str()]
            .into_iter()
            .chain(options.iter().map(String::as_str))
            .map(quoted)
            .collect();
        let mut command =
            format!("exec {} \\\n    --threads \"${{SLURM_CPUS_PER_TASK:-{}}}\"", words.join(" "), self.needs.cpus);
        if let Some(stage) = self.step.stage() {
            command.push_str(&format!(" --stage {stage}"));
        }
        if self.step.has_shards() {
            command.push_str(&format!(" --shard \"$shard/{}\" --latency-wait {LATENCY_WAIT}", self.of));
        }
        command
    }
}

/// Returns sorted numbers in the format of sbatch's `--array`: `1-3,7`.
pub(crate) fn ranges(numbers: &[usize]) -> String {
    let mut parts: Vec<(usize, usize)> = Vec::new();
    for &number in numbers {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => parts.push((number, number)),
        }
    }
    let parts = parts.iter().map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    parts.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_have_the_syntax_of_sbatch() {
        assert_eq!(ranges(&[1, 2, 3, 7, 9, 10]), "1-3,7,9-10");
        assert_eq!(ranges(&[4]), "4");
        assert_eq!(ranges(&[]), "");
    }
}
