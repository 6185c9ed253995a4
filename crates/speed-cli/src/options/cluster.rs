//! Options of an experiment on a cluster.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;

use super::{ExperimentOptions, MaxEpsilon};

#[derive(Debug, Args)]
pub(crate) struct SubmitOptions {
    #[command(flatten)]
    pub(crate) experiment: ExperimentOptions,
    /// Submit to Slurm, with sbatch, squeue, sacct and scancel
    #[arg(long, required = true)]
    pub(crate) slurm: bool,
    /// Maximum number of shards of a stage [default: the previous submission's, else 100; never more than units]
    #[arg(long, value_name = "N")]
    pub(crate) shards: Option<NonZeroUsize>,
    /// Maximum number of shards that run at the same time
    #[arg(long, value_name = "N")]
    pub(crate) at_once: Option<NonZeroUsize>,
    /// Partition
    #[arg(long, value_name = "NAME")]
    pub(crate) partition: Option<String>,
    /// Account
    #[arg(long, value_name = "NAME")]
    pub(crate) account: Option<String>,
    /// Time limit of every job, in sbatch's format [default: twice the estimate from a few steps measured here, at least
    /// ten minutes]
    #[arg(long, value_name = "TIME")]
    pub(crate) time: Option<String>,
    /// Number of processors and threads of every shard and job
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) cpus: u16,
    /// Memory of every shard and job, in sbatch's format [default: twice the size of the largest values]
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<String>,
    /// Any other option for sbatch, as --sbatch=--gres=gpu:1; may be given several times, and overrides all others
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    pub(crate) sbatch: Vec<String>,
    #[command(flatten)]
    pub(crate) limit: MaxEpsilon,
    /// Resume work of another kind of machine or another binary, as in speed run
    #[arg(long)]
    pub(crate) mix_machines: bool,
    /// Print scripts and commands without writing or submitting anything
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct StatusOptions {
    /// A run: its folder results/EXPERIMENT/RUN, an experiment with one run, or the beginning of a run's id; or a sweep's folder
    pub(crate) run: PathBuf,
    /// Folder of all results, searched for runs by name
    #[arg(long, value_name = "DIR", default_value = "results")]
    pub(crate) results: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
