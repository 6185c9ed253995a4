//! The record of the jobs that Slurm was given for a run, in its folder.

use std::io::ErrorKind;
use std::path::Path;

use serde::{Deserialize, Serialize};
use speed_experiment::{
    ExperimentError, Lock, ResultsFault, Step, found_instead, read_small, slurm_folder, write_atomic,
};

use super::programs::is_number;

/// The record's file.
const FILE: &str = "jobs.json";
/// Shards at most: as many as an array of Slurm can have.
const MAX_SHARDS: usize = 4_000_001;
/// The file by whose lock one process at a time submits.
const LOCK: &str = "submit.lock";

/// The jobs that Slurm was given for a run or sweep.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Jobs {
    /// The number of shards that was asked for last, of every step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) wanted_shards: Option<usize>,
    /// The runs: its own, or those of the sweep.
    pub(crate) runs: Vec<String>,
    /// The jobs, in the order in which they were submitted.
    pub(crate) jobs: Vec<Submitted>,
}

/// A job that was submitted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Submitted {
    /// The step.
    pub(crate) step: Step,
    /// Its number.
    pub(crate) job: String,
    /// Its name.
    pub(crate) name: String,
    /// The shards that it does; none of a step that does not divide.
    pub(crate) shards: Vec<usize>,
    /// The number of all shards.
    pub(crate) of: usize,
    /// Seconds since 1970 when it was submitted.
    pub(crate) submitted_at: u64,
}

impl Submitted {
    /// Returns its tasks: a number for each shard, or none where it is no array.
    pub(crate) fn tasks(&self) -> Vec<Option<usize>> {
        if self.shards.is_empty() { vec![None] } else { self.shards.iter().copied().map(Some).collect() }
    }
}

/// Returns the name of the log of a task.
pub(crate) fn log_name(name: &str, job: &str, task: Option<usize>) -> String {
    task.map_or_else(|| format!("{name}-{job}.out"), |task| format!("{name}-{job}_{task}.out"))
}

impl Jobs {
    /// Reads the record of a run; none where there is none.
    pub(crate) fn read(run: &Path) -> Result<Option<Self>, ExperimentError> {
        let path = slurm_folder(run).join(FILE);
        let fault = |fault| ExperimentError::Results { path: path.clone(), fault };
        let bytes = match read_small(&path) {
            Ok(bytes) => bytes,
            Err(error) => match error.kind() {
                ErrorKind::NotFound | ErrorKind::NotADirectory => return Ok(None),
                ErrorKind::FileTooLarge | ErrorKind::InvalidInput => {
                    let expected = "a regular file of at most 16 MiB".to_owned();
                    return Err(fault(ResultsFault::Unlikely { expected, found: error.to_string() }));
                }
                _ => return Err(ExperimentError::io("read", path)(error)),
            },
        };
        let read: Self = serde_json::from_slice(&bytes).map_err(|error| {
            let expected = "the record of submitted jobs in JSON; take it from a copy".to_owned();
            fault(ResultsFault::Unlikely { expected, found: found_instead(&bytes, &error) })
        })?;
        // Results may be from anywhere: numbers go to Slurm's programs, and names into paths.
        let is_odd = |job: &&Submitted| {
            !is_number(&job.job) || job.name.contains(['/', '\\']) || !(1..=MAX_SHARDS).contains(&job.of)
        };
        if let Some(job) = read.jobs.iter().find(is_odd) {
            let expected = format!("numbers of jobs, names without slashes, and 1 to {MAX_SHARDS} shards");
            let found = format!("{:?}, {:?}, {}", job.job, job.name, job.of);
            return Err(fault(ResultsFault::Unlikely { expected, found }));
        }
        Ok(Some(read))
    }

    /// Takes the lock of whoever submits jobs of a run.
    ///
    /// # Errors
    /// If another process submits them, or the folder cannot be written.
    pub(crate) fn lock(run: &Path) -> Result<Lock, ExperimentError> {
        let folder = slurm_folder(run);
        Lock::try_take(folder.join(LOCK), &folder)
    }

    /// Writes the record.
    pub(crate) fn write(&self, run: &Path) -> Result<(), ExperimentError> {
        let path = slurm_folder(run).join(FILE);
        let fault = |error| ExperimentError::Results { path: path.clone(), fault: ResultsFault::Unwritable(error) };
        let mut text = serde_json::to_string_pretty(self).map_err(fault)?;
        text.push('\n');
        write_atomic(&path, text.as_bytes())
    }

    /// Returns the jobs of a step.
    pub(crate) fn of(&self, step: Step) -> impl Iterator<Item = &Submitted> {
        self.jobs.iter().filter(move |job| job.step == step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_from_elsewhere_names_no_option_and_no_other_folder() {
        let run = tempfile::tempdir().expect("a folder");
        std::fs::create_dir_all(slurm_folder(run.path())).expect("a folder");
        let job = |job: &str, name: &str| Submitted {
            step: Step::Teachers,
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
