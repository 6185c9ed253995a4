//! `speed run --stage`: a run up to a stage, or a shard of a stage.

use serde_json::json;
use speed_core::printable_path;
use speed_experiment::{RunOptions, Shard, ShardReport, Sweep, run_shard, run_until};

use super::{Failure, print_report};
use crate::progress::Reporter;

/// Does the part of a run, or of the runs of a sweep: up to a stage, or a share of the stage.
pub(super) fn run(
    (stage, share): (&str, Option<&str>),
    sweep: &Sweep,
    settings: &RunOptions,
    json: bool,
    reporter: &Reporter,
) -> Result<(), Failure> {
    if let Some(share) = share {
        let shard = Shard::parse(stage, share)?;
        let report = run_shard(sweep, settings, &shard, reporter.progress())?;
        return shard_done(json, &report, reporter);
    }
    let folder = run_until(sweep, settings, stage, reporter.progress())?;
    reporter.finished(&folder);
    print_report(json, &json!({ "stage": stage, "folder": folder }), || {
        format!("done up to stage {stage}: {}\n", printable_path(&folder))
    })
}

fn shard_done(json: bool, report: &ShardReport, reporter: &Reporter) -> Result<(), Failure> {
    reporter.finished(&report.folder);
    let ShardReport { folder, shard, units, done_here } = report;
    print_report(json, report, || {
        format!("{shard}: {units} units done, {done_here} of them here: {}\n", printable_path(folder))
    })
}
