//! The record, in a run's directory, of the jobs that were submitted to Slurm for it.

use std::io::ErrorKind;
use std::path::Path;

use serde::{Deserialize, Serialize};
use speed_experiment::{ExperimentError, Lock, Step, found_instead, read_small, slurm_folder, write_atomic};

use super::programs::is_number;

const FILE: &str = "jobs.json";
/// The largest number of shards, which is Slurm's limit on the size of an array.
const MAX_SHARDS: usize = 4_000_001;
/// The lock file: only one process at a time submits jobs of a run.
const LOCK: &str = "submit.lock";

/// The jobs that were submitted to Slurm for a run or sweep.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Jobs {
    /// The most recently requested number of shards of each step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) wanted_shards: Option<usize>,
    /// The run itself, or the runs of the sweep.
    pub(crate) runs: Vec<String>,
    /// The jobs in the order of submission.
    pub(crate) jobs: Vec<Submitted>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Submitted {
    pub(crate) step: Step,
    pub(crate) job: String,
    pub(crate) name: String,
    /// The job's shards; empty for a step without shards.
    pub(crate) shards: Vec<usize>,
    /// The number of all shards.
    pub(crate) of: usize,
    /// Seconds since 1970 when it was submitted.
    pub(crate) submitted_at: u64,
}

impl Submitted {
    /// Returns the job's tasks: a number for each shard, or `None` if the job is not an array.
    pub(crate) fn tasks(&self) -> Vec<Option<usize>> {
        if self.shards.is_empty() { vec![None] } else { self.shards.iter().copied().map(Some).collect() }
    }
}

pub(crate) fn log_name(name: &str, job: &str, task: Option<usize>) -> String {
    task.map_or_else(|| format!("{name}-{job}.out"), |task| format!("{name}-{job}_{task}.out"))
}

impl Jobs {
    /// Reads the record of a run, or returns `None` if there is no such file.
    pub(crate) fn read(run: &Path) -> Result<Option<Self>, ExperimentError> {
        let path = slurm_folder(run).join(FILE);
        let bytes = match read_small(&path) {
            Ok(bytes) => bytes,
            Err(error) => match error.kind() {
                ErrorKind::NotFound | ErrorKind::NotADirectory => return Ok(None),
                ErrorKind::FileTooLarge | ErrorKind::InvalidInput => {
                    return Err(ExperimentError::unlikely("a regular file of at most 16 MiB", error).at(path));
                }
                _ => return Err(ExperimentError::io("read", path)(error)),
            },
        };
        let read: Self = serde_json::from_slice(&bytes).map_err(|error| {
            let expected = "the record of submitted jobs in JSON; take it from a copy";
            ExperimentError::unlikely(expected, found_instead(&bytes, &error)).at(&path)
        })?;
        // The record is untrusted: its numbers become arguments of Slurm's programs, and its names become parts of paths.
        let is_odd = |job: &&Submitted| {
            !is_number(&job.job) || job.name.contains(['/', '\\']) || !(1..=MAX_SHARDS).contains(&job.of)
        };
        if let Some(job) = read.jobs.iter().find(is_odd) {
            let expected = format!("numbers of jobs, names without slashes, and 1 to {MAX_SHARDS} shards");
            let found = format!("{:?}, {:?}, {}", job.job, job.name, job.of);
            return Err(ExperimentError::unlikely(expected, found).at(path));
        }
        Ok(Some(read))
    }

    /// Takes the lock for submitting jobs of a run.
    pub(crate) fn lock(run: &Path) -> Result<Lock, ExperimentError> {
        let folder = slurm_folder(run);
        Lock::try_take(folder.join(LOCK), &folder)
    }

    pub(crate) fn write(&self, run: &Path) -> Result<(), ExperimentError> {
        let path = slurm_folder(run).join(FILE);
        let mut text = serde_json::to_string_pretty(self).map_err(ExperimentError::unwritable(&path))?;
        text.push('\n');
        write_atomic(&path, text.as_bytes())
    }

    pub(crate) fn of_step(&self, step: Step) -> impl Iterator<Item = &Submitted> {
        self.jobs.iter().filter(move |job| job.step == step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_untrusted_record_cannot_inject_options_or_paths() {
        let run = tempfile::tempdir().expect("a folder");
        std::fs::create_dir_all(slurm_folder(run.path())).expect("a folder");
        let job = |job: &str, name: &str| Submitted {
            step: serde_json::from_value("teachers".into()).expect("a step"),
            job: job.into(),
            name: name.into(),
            shards: vec![1],
            of: 1,
            submitted_at: 0,
        };
        let read = |jobs: Vec<Submitted>| {
            Jobs { jobs, ..Jobs::default() }.write(run.path()).expect("written");
            Jobs::read(run.path())
        };
        assert!(read(vec![job("12", "tiny-teachers")]).expect("a record").is_some());
        let endless = Submitted { of: usize::MAX, ..job("12", "a") };
        for odd in [job("--user=me", "a"), job("", "a"), job("12", "../../a"), endless] {
            let error = read(vec![job("12", "a"), odd]).expect_err("refused").to_string();
            assert!(error.contains("numbers of jobs"), "{error}");
        }
    }
}
