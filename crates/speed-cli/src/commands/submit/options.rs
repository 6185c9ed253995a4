//! The options of `speed submit`, and their checks, before anything is done.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::Args;
use speed_core::{printable, printable_path};
use speed_experiment::ExperimentError;

use crate::commands::{Failure, usage};
use crate::options::{ExperimentOptions, MaxEpsilon};

#[derive(Debug, Args)]
pub(crate) struct SubmitOptions {
    #[command(flatten)]
    pub(super) experiment: ExperimentOptions,
    /// Submit to Slurm, with sbatch, squeue, sacct and scancel
    #[arg(long, required = true)]
    pub(super) slurm: bool,
    /// Maximum number of shards of a stage [default: the previous submission's, else 100; never more than units]
    #[arg(long, value_name = "N")]
    pub(super) shards: Option<NonZeroUsize>,
    /// Maximum number of shards that run at the same time
    #[arg(long, value_name = "N")]
    pub(super) at_once: Option<NonZeroUsize>,
    /// Partition
    #[arg(long, value_name = "NAME")]
    pub(super) partition: Option<String>,
    /// Account
    #[arg(long, value_name = "NAME")]
    pub(super) account: Option<String>,
    /// Time limit of every job, in sbatch's format [default: twice the estimate from a few steps measured here, at least
    /// ten minutes]
    #[arg(long, value_name = "TIME")]
    pub(super) time: Option<String>,
    /// Number of processors and threads of every shard and job
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) cpus: u16,
    /// Memory of every shard and job, in sbatch's format [default: twice the size of the largest values]
    #[arg(long, value_name = "SIZE")]
    pub(super) memory: Option<String>,
    /// Any other option for sbatch, as --sbatch=--gres=gpu:1; may be given several times, and overrides all others
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    pub(super) sbatch: Vec<String>,
    #[command(flatten)]
    pub(super) limit: MaxEpsilon,
    /// Resume work of another kind of machine or another binary, as in speed run
    #[arg(long)]
    pub(super) mix_machines: bool,
    /// Print scripts and commands without writing or submitting anything
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// Options of sbatch, long and short, that the command itself sets, or that would place the jobs on another cluster
/// than the one it queries.
const OWN: [(&str, &str); 9] = [
    ("--array", "-a"),
    ("--dependency", "-d"),
    ("--output", "-o"),
    ("--chdir", "-D"),
    ("--job-name", "-J"),
    ("--wrap", "--wrap"),
    ("--parsable", "--parsable"),
    ("--wait", "-W"),
    ("--clusters", "-M"),
];

/// Refuses values that a script cannot hold, and options that would remove the jobs from the command's control.
pub(super) fn check(options: &SubmitOptions) -> Result<(), Failure> {
    let words = [
        ("partition", &options.partition),
        ("account", &options.account),
        ("time", &options.time),
        ("memory", &options.memory),
    ];
    for (name, word) in words {
        let is_fine = |c: char| c.is_ascii_alphanumeric() || "_.,:+-/".contains(c);
        if let Some(word) = word
            && (word.is_empty() || !word.chars().all(is_fine))
        {
            return Err(usage(
                name,
                format!("expected letters, digits and any of _.,:+-/, found {:?}", printable(word)),
            ));
        }
    }
    for option in &options.sbatch {
        let name = option.split('=').next().unwrap_or_default();
        let is_own =
            |(long, short): &&(&str, &str)| name == *long || (!name.starts_with("--") && name.starts_with(short));
        if !option.starts_with('-') {
            return Err(usage(
                "sbatch",
                format!("expected an option as --sbatch=--gres=gpu:1, found {:?}", printable(option)),
            ));
        }
        if let Some((long, _)) = OWN.iter().find(is_own) {
            return Err(usage(
                "sbatch",
                format!(
                    "{long} is not passed on: the command needs to know its jobs (--shards, --at-once and --results decide)"
                ),
            ));
        }
    }
    Ok(())
}

/// Returns an absolute path, which is valid on every machine that sees the directory.
pub(in crate::commands) fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    Ok(std::path::absolute(path).map_err(ExperimentError::io("find", path))?)
}

/// Returns a path as text for a script.
pub(super) fn text(path: &Path) -> Result<String, Failure> {
    let expected = "a path in a script is UTF-8 text, and this one is not: use a folder with another name";
    let text = path.to_str().map(str::to_owned);
    Ok(text.ok_or_else(|| ExperimentError::option(printable_path(path), expected))?)
}
