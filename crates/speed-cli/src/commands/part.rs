//! `speed run --stage`: a run up to a stage, or a shard of a stage.

use std::path::PathBuf;

use serde_json::json;
use speed_core::printable_path;
use speed_experiment::{Config, RunOptions, Shard, ShardReport, Sweep, run_shard, run_sweep_until, run_until};

use super::{Failure, print, print_json};
use crate::options::RunOptions as RunArguments;
use crate::progress::Reporter;

pub(super) fn of_run(
    options: &RunArguments,
    stage: &str,
    config: &Config,
    settings: &RunOptions,
    reporter: &Reporter,
) -> Result<(), Failure> {
    if let Some(share) = &options.shard {
        let shard = Shard::parse(stage, share)?;
        let report = run_shard(&[config], None, settings, &shard, reporter.progress())?;
        return shard_done(options, &report, reporter);
    }
    let folder = run_until(config, settings, stage, reporter.progress())?;
    stage_done(options, stage, &folder, reporter)
}

pub(super) fn of_sweep(
    options: &RunArguments,
    stage: &str,
    sweep: &Sweep,
    settings: &RunOptions,
    reporter: &Reporter,
) -> Result<(), Failure> {
    if let Some(share) = &options.shard {
        let shard = Shard::parse(stage, share)?;
        let configs: Vec<&Config> = sweep.settings.iter().map(|setting| &setting.config).collect();
        let report = run_shard(&configs, Some(sweep), settings, &shard, reporter.progress())?;
        return shard_done(options, &report, reporter);
    }
    let folder = run_sweep_until(sweep, settings, stage, reporter.progress())?;
    stage_done(options, stage, &folder, reporter)
}

fn stage_done(options: &RunArguments, stage: &str, folder: &PathBuf, reporter: &Reporter) -> Result<(), Failure> {
    reporter.finished(folder);
    if options.json {
        return print_json(&json!({ "stage": stage, "folder": folder }));
    }
    print(&format!("done up to stage {stage}: {}\n", printable_path(folder)))
}

fn shard_done(options: &RunArguments, report: &ShardReport, reporter: &Reporter) -> Result<(), Failure> {
    reporter.finished(&report.folder);
    if options.json {
        return print_json(report);
    }
    let ShardReport { folder, shard, units, done_here } = report;
    print(&format!("{shard}: {units} units done, {done_here} of them here: {}\n", printable_path(folder)))
}
