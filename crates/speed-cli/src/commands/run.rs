//! `speed run`

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use serde_json::json;
use speed_core::{ExitCode, printable_path};
use speed_experiment::{
    Progress as _, RunOptions, Shard, ShardReport, Source, Sweep, check_run_id, first_model, has_begun,
    plan as plan_run, plan_sweep, run as run_experiment, run_folder, run_shard, run_sweep, run_until, sweep_folder,
    sweep_id,
};

use super::runs::{report_text, sweep_text};
use super::{Failure, plan, print_report, threads, usage};
use crate::options::{ExperimentOptions, MaxEpsilon};
use crate::progress::{LogFormat, Reporter};
use crate::slurm::quoted;

#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    #[command(flatten)]
    experiment: ExperimentOptions,
    /// Number of threads; results do not depend on it [default: all processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    #[command(flatten)]
    limit: MaxEpsilon,
    /// Repeat a finished stage (teachers, votes, aggregate, student, ...); its old results are set aside
    #[arg(long, value_name = "STAGE")]
    force: Vec<String>,
    /// End after a stage (teachers, votes, aggregate, student, ...), without tables; earlier stages run first
    #[arg(long, value_name = "STAGE", conflicts_with = "dry_run")]
    stage: Option<String>,
    /// Process one share of the stage's units and nothing else, with --stage features, teachers, check, aggregate or student: 3/50 is the
    /// third of fifty processes that share a results folder (docs/experiments.md)
    #[arg(long, value_name = "I/N", requires = "stage", conflicts_with = "force")]
    shard: Option<String>,
    /// How long a shard waits for an unfinished earlier stage, in seconds, because file systems may show another
    /// machine's files late
    #[arg(long, value_name = "SECONDS", default_value_t = 0, hide_default_value = true, requires = "shard")]
    latency_wait: u32,
    /// Stop unless the config's run or sweep has this id; for scripts, because the config may have changed
    #[arg(long, value_name = "ID")]
    run: Option<String>,
    /// Resume trainings of another kind of machine and shards of another binary; no single machine can then reproduce the
    /// results, and the report states this
    #[arg(long)]
    mix_machines: bool,
    /// Print the resolved config and the stages without running them
    #[arg(long)]
    dry_run: bool,
    /// Print an explanation of the columns below the table
    #[arg(long)]
    legend: bool,
    /// Format of progress on standard error: text, or json for one object a line (docs/json.md)
    #[arg(long, value_name = "FORMAT", default_value = "text", hide_possible_values = true)]
    log_format: LogFormat,
    /// Print the report as JSON instead of the table
    #[arg(long)]
    json: bool,
}

pub(super) fn run(options: &RunArguments) -> Result<(), Failure> {
    let reporter = Reporter::new(options.log_format);
    let done = run_told(options, &reporter);
    if let Err(failure) = &done
        && let Some(message) = &failure.message
        && reporter.run_failed(failure.code, message)
    {
        return Err(Failure::reported(failure.code));
    }
    done
}

fn run_told(options: &RunArguments, reporter: &Reporter) -> Result<(), Failure> {
    let source = Source::read(&options.experiment.config)?.with_overrides(&options.experiment.overrides)?;
    let settings = RunOptions {
        results: options.experiment.results.clone(),
        datasets: options.experiment.datasets.clone(),
        threads: threads(options.threads),
        force: options.force.clone(),
        limit: options.limit.limit()?,
        mix_machines: options.mix_machines,
        latency_wait: Duration::from_secs(options.latency_wait.into()),
    };
    let swept = Sweep::load(&source)?;
    let config = swept.first();
    match &options.run {
        Some(id) if swept.is_plain() => check_run_id(id, config, &options.experiment.results)?,
        Some(id) => {
            let found = sweep_id(&swept);
            if found != *id {
                return Err(usage("run", format!("expected {id}, this config's sweep is {found}")));
            }
        }
        None => {}
    }
    if let Some(stage) = &options.stage {
        return run_part((stage, options.shard.as_deref()), &swept, &settings, options.json, reporter);
    }
    if !swept.is_plain() && options.dry_run {
        let plans = plan_sweep(&swept, &settings)?;
        return print_report(options.json, &json!({ "settings": plans }), || plan::sweep_text(&swept, &plans));
    }
    if !swept.is_plain() {
        let report = run_sweep(&swept, &settings, reporter)?;
        let folder = sweep_folder(&report, &settings.results);
        reporter.run_finished(&folder);
        return print_report(options.json, &report, || sweep_text(&report, &folder));
    }
    if options.dry_run {
        let plan = plan_run(config, &settings)?;
        return print_report(options.json, &plan, || plan::plan_text(&plan));
    }
    let report = run_experiment(config, &settings, reporter).inspect_err(|error| {
        if error.exit_code() == ExitCode::InputOutput && has_begun(config, &options.experiment.results) {
            reporter.note("finished work is kept; the same command goes on from it");
        }
    })?;
    let folder = run_folder(&report, &options.experiment.results);
    if let Some((model, image)) = first_model(&report, &folder) {
        reporter.note(&format!("classify an image: {}", predict_line(&model, &config.features.encoder, &image)));
    }
    reporter.run_finished(&folder);
    print_report(options.json, &report, || report_text(&report, &folder, options.legend))
}

/// Does the part of a run, or of the runs of a sweep: up to a stage, or a share of the stage.
fn run_part(
    (stage, share): (&str, Option<&str>),
    sweep: &Sweep,
    settings: &RunOptions,
    json: bool,
    reporter: &Reporter,
) -> Result<(), Failure> {
    if let Some(share) = share {
        let report = run_shard(sweep, settings, &Shard::parse(stage, share)?, reporter)?;
        reporter.run_finished(&report.folder);
        let ShardReport { folder, shard, units, done_here } = &report;
        return print_report(json, &report, || {
            format!("{shard}: {units} units done, {done_here} of them here: {}\n", printable_path(folder))
        });
    }
    let folder = run_until(sweep, settings, stage, reporter)?;
    reporter.run_finished(&folder);
    print_report(json, &json!({ "stage": stage, "folder": folder }), || {
        format!("done up to stage {stage}: {}\n", printable_path(&folder))
    })
}

/// Returns a command for the shell that started this program. `encoder` is empty without an encoder.
fn predict_line(model: &Path, encoder: &str, image: &Path) -> String {
    // A program that was started by a path may not be in the search path.
    let program = std::env::args_os().next().map(PathBuf::from).filter(|path| path.components().count() > 1);
    let program = program.unwrap_or_else(|| PathBuf::from("speed"));
    let mut words = vec![program.as_path(), Path::new("predict"), Path::new("--model"), model];
    if !encoder.is_empty() {
        words.extend(["--encoder", encoder].map(Path::new));
    }
    words.push(image);
    words.iter().map(|word| quoted(&word.to_string_lossy())).collect::<Vec<_>>().join(" ")
}
