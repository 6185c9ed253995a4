//! Options of an experiment on a cluster.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;

use super::{ExperimentOptions, MaxEpsilon};

#[derive(Debug, Args)]
pub(crate) struct SubmitOptions {
    #[command(flatten)]
    pub(crate) experiment: ExperimentOptions,
    /// Submit to Slurm, by sbatch, squeue, sacct and scancel
    #[arg(long, required = true)]
    pub(crate) slurm: bool,
    /// Shards of a stage at most [default: those of the last time, else 100, and never more than units]
    #[arg(long, value_name = "N")]
    pub(crate) shards: Option<NonZeroUsize>,
    /// Shards that run at once at most
    #[arg(long, value_name = "N")]
    pub(crate) at_once: Option<NonZeroUsize>,
    /// Partition
    #[arg(long, value_name = "NAME")]
    pub(crate) partition: Option<String>,
    /// Account
    #[arg(long, value_name = "NAME")]
    pub(crate) account: Option<String>,
    /// Time limit of every job, in sbatch's form [default: twice what a few steps take here, at least ten minutes]
    #[arg(long, value_name = "TIME")]
    pub(crate) time: Option<String>,
    /// Processors of every shard and job, and threads
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) cpus: u16,
    /// Memory of every shard and job, in sbatch's form [default: twice what the largest values take]
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<String>,
    /// Any other option for sbatch, as --sbatch=--gres=gpu:1; may be given several times, and wins over all others
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    pub(crate) sbatch: Vec<String>,
    #[command(flatten)]
    pub(crate) limit: MaxEpsilon,
    /// Go on with what another kind of machine, or another binary, began, as speed run does
    #[arg(long)]
    pub(crate) mix_machines: bool,
    /// Print scripts and commands; write and submit nothing
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
    /// Folder of all results, in which runs are looked for by name
    #[arg(long, value_name = "DIR", default_value = "results")]
    pub(crate) results: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
