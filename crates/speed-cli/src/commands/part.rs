//! `speed run --stage`: a run up to a stage, or a shard of a stage.

use serde_json::json;
use speed_core::printable_path;
use speed_experiment::{RunOptions, Shard, ShardReport, Sweep, run_shard, run_until};

use super::run::RunArguments;
use super::{Failure, print_report};
use crate::progress::Reporter;

/// Does the part of a run, or of the runs of a sweep, that the options name.
pub(super) fn run(
    options: &RunArguments,
    stage: &str,
    sweep: &Sweep,
    settings: &RunOptions,
    reporter: &Reporter,
) -> Result<(), Failure> {
    if let Some(share) = &options.shard {
        let shard = Shard::parse(stage, share)?;
        let report = run_shard(sweep, settings, &shard, reporter.progress())?;
        return shard_done(options, &report, reporter);
    }
    let folder = run_until(sweep, settings, stage, reporter.progress())?;
    reporter.finished(&folder);
    print_report(options.json, &json!({ "stage": stage, "folder": folder }), || {
        format!("done up to stage {stage}: {}\n", printable_path(&folder))
    })
}

fn shard_done(options: &RunArguments, report: &ShardReport, reporter: &Reporter) -> Result<(), Failure> {
    reporter.finished(&report.folder);
    let ShardReport { folder, shard, units, done_here } = report;
    print_report(options.json, report, || {
        format!("{shard}: {units} units done, {done_here} of them here: {}\n", printable_path(folder))
    })
}
