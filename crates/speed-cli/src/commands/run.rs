//! `speed run`

use std::num::NonZeroUsize;
use std::time::Duration;

use speed_accountant::{round_up, without_protection};
use speed_core::printable_path;
use speed_experiment::{
    Config, Cost, ExperimentError, Plan, PlannedStage, PlannedTraining, RunOptions, Source, StageCost, Sweep,
    check_run_id, has_begun, plan, run as run_experiment, run_folder,
};

use super::runs::report_text;
use super::{Failure, part, price, print, print_json, sweep};
use crate::options::RunOptions as RunArguments;
use crate::progress::Reporter;

pub(super) fn run(options: &RunArguments) -> Result<(), Failure> {
    let reporter = Reporter::new(options.log_format, options.quiet);
    let done = run_told(options, &reporter);
    if let Err(failure) = &done
        && let Some(message) = failure.message()
        && reporter.failed(failure.exit_code(), &message)
    {
        return Err(Failure::Told(failure.exit_code()));
    }
    done
}

fn run_told(options: &RunArguments, reporter: &Reporter) -> Result<(), Failure> {
    let source = Source::read(&options.experiment.config)?.with_overrides(&options.experiment.overrides)?;
    let all = || std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let threads = options.threads.and_then(|threads| NonZeroUsize::new(threads.into())).unwrap_or_else(all);
    let settings = RunOptions {
        results: options.experiment.results.clone(),
        datasets: options.experiment.datasets.clone(),
        threads,
        force: options.force.clone(),
        limit: price::limit(options.limit)?,
        mix_machines: options.mix_machines,
        latency_wait: Duration::from_secs(options.latency_wait.into()),
    };
    if let Some(swept) = Sweep::load(&source)? {
        sweep::check_id(options, &swept)?;
        return match (options.dry_run, &options.stage) {
            (true, _) => sweep::dry_run(&swept, &settings, options.json),
            (false, Some(stage)) => part::of_sweep(options, stage, &swept, &settings, reporter),
            (false, None) => sweep::run(&swept, &settings, options.json, reporter),
        };
    }
    let config = Config::load(&source)?;
    if let Some(id) = &options.run {
        check_run_id(id, &config, &options.experiment.results)?;
    }
    if let Some(stage) = &options.stage {
        return part::of_run(options, stage, &config, &settings, reporter);
    }
    if options.dry_run {
        let plan = plan(&config, &settings)?;
        return if options.json { print_json(&plan) } else { print(&plan_text(&plan)) };
    }
    let report = run_experiment(&config, &settings, reporter.progress()).inspect_err(|error| {
        if matches!(error, ExperimentError::Io { .. }) && has_begun(&config, &options.experiment.results) {
            reporter.progress().note("finished work is kept; the same command goes on from it");
        }
    })?;
    let folder = run_folder(&report, &options.experiment.results);
    reporter.finished(&folder);
    if options.json { print_json(&report) } else { print(&report_text(&report, &folder, options.legend)) }
}

fn plan_text(plan: &Plan) -> String {
    let mut text = format!("{}\n# folder: {}\n# stages:\n", plan.config.to_toml(), printable_path(&plan.folder));
    for PlannedStage { name, done } in &plan.stages {
        text.push_str(&format!("#   {name}: {}\n", if *done { "done" } else { "to do" }));
    }
    if let Some(missing) = &plan.missing {
        text.push_str(&format!("# MISSING, and the run would stop there: {missing}\n"));
    }
    for note in &plan.notes {
        text.push_str(&format!("# {note}\n"));
    }
    if !plan.rows.is_empty() {
        text.push_str("# epsilon whatever the votes are, before any is cast:\n");
    }
    for row in &plan.rows {
        let epsilon = match (row.data_independent, &row.without_value) {
            (Some(epsilon), _) => format!("{:.2}", round_up(epsilon, 2)),
            (None, why) => format!("none ({})", why.as_deref().unwrap_or("not known")),
        };
        let done = if row.done { ", done" } else { "" };
        text.push_str(&format!("#   {} ({} queries{done}): {epsilon}\n", row.name, row.queries));
    }
    let largest = plan.rows.iter().filter_map(|row| row.data_independent).max_by(f64::total_cmp);
    text.extend(largest.and_then(without_protection).map(|words| format!("# {words}\n")));
    for PlannedTraining { method, epochs, steps_an_epoch } in &plan.students {
        text.push_str(&format!("# students by {method}: {epochs} epochs of {steps_an_epoch} steps\n"));
    }
    text.push_str(&price_text(plan));
    if let Some(cost) = &plan.cost {
        text.push_str(&cost_text(cost));
    }
    text
}

/// Returns a run's time and memory as text.
pub(super) fn cost_text(cost: &Cost) -> String {
    let Cost { stages, memory_bytes } = cost;
    let all: f64 = stages.iter().filter_map(|stage| stage.core_seconds).sum();
    let mut text = format!(
        "# all stages here, by a few steps just measured (within a factor of two): {}; about {:.1} GB of memory\n",
        duration(all),
        memory_bytes / 1e9
    );
    for StageCost { kind, core_seconds, .. } in stages {
        let seconds = core_seconds.map_or_else(|| "not known: too large to be tried in a moment".to_owned(), duration);
        text.push_str(&format!("#   {kind}: {seconds}\n"));
    }
    text
}

fn price_text(plan: &Plan) -> String {
    let Some(needed) = plan.budget_needed else {
        return "# a simulation: nothing is charged, and nothing is private\n".to_owned();
    };
    let of = match plan.config.privacy.budget {
        Some(budget) => format!("privacy.budget = {budget}"),
        None => "no privacy.budget is set".to_owned(),
    };
    // A finished run charges nothing.
    let samplers = match plan.samplers_included {
        Some(false) if needed > 0.0 => "; of exact noise: delta does not include the samplers",
        _ => "",
    };
    let mut text = format!(
        "# the ledger's epsilon after it, at most, at delta {:e}: {:.2} ({of}{samplers})\n",
        plan.budget_delta,
        round_up(needed, 2)
    );
    if let Some(refused) = &plan.refused {
        text.push_str(&format!("# REFUSED, with a row of it: {refused}\n"));
    }
    if let Some(questioned) = &plan.questioned {
        text.push_str(&format!("# REFUSED for its price: {questioned}\n"));
    }
    text
}

/// Formats processor time, in the unit that suits it.
fn duration(seconds: f64) -> String {
    match seconds {
        ..100.0 => format!("{seconds:.0} core-seconds"),
        ..6e3 => format!("{:.0} core-minutes", seconds / 60.0),
        _ => format!("{:.0} core-hours", seconds / 3600.0),
    }
}
