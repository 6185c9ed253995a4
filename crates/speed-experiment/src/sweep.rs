//! Sweeps: a run for every setting of `[sweep]`, and one table of all runs.
//!
//! Each run is identical to a run of the setting's config alone. Stages that a setting does not change are taken from
//! another run of the experiment, so a sweep over the noise trains its teachers once, and an interrupted sweep resumes.

mod id;
mod progress;

use std::path::PathBuf;

use crate::report::{SettingReport, SweepReport};
pub use id::sweep_id;

use crate::config::{Setting, Sweep};
use crate::error::ExperimentError;
use crate::options::RunOptions;
use crate::plan::{Plan, check_setting_price, plan_with};
use crate::progress::Progress;
use crate::results::publish_sweep;
use crate::runner::{run, run_until};
use crate::store::SweepStore;
use crate::sweep::progress::SettingProgress;

/// Runs every setting of a sweep, and writes its tables beside the runs.
///
/// # Errors
/// See [`ExperimentError`]; the first failing setting stops the sweep, and finished work is kept.
pub fn run_sweep(sweep: &Sweep, options: &RunOptions, progress: &dyn Progress) -> Result<SweepReport, ExperimentError> {
    refuse_force(sweep, options)?;
    check_prices(sweep, options)?;
    let all = sweep.settings.len();
    let mut reports = Vec::with_capacity(all);
    for (index, setting) in sweep.settings.iter().enumerate() {
        let place = format!("setting {} of {all}: {}", index + 1, shown(sweep, setting));
        progress.note(&place);
        let own = SettingProgress::new(progress, index + 1, all);
        let report =
            run(&setting.config, options, &own).inspect_err(|_| progress.note(&format!("stopped at {place}")))?;
        reports.push(SettingReport::new(setting.values.clone(), report));
    }
    let report = SweepReport::new(sweep, reports);
    publish_sweep(&report, &options.results)?;
    Ok(report)
}

/// Completes the stages of every setting up to `stage`, which is a name or a kind, without writing tables. Returns the
/// directory of the sweep.
///
/// # Errors
/// The errors of [`run_sweep`], and an error if a setting has no such stage.
pub fn run_sweep_until(
    sweep: &Sweep,
    options: &RunOptions,
    stage: &str,
    progress: &dyn Progress,
) -> Result<PathBuf, ExperimentError> {
    refuse_force(sweep, options)?;
    check_prices(sweep, options)?;
    let (all, mut folder) = (sweep.settings.len(), options.results.clone());
    for (index, setting) in sweep.settings.iter().enumerate() {
        progress.note(&format!("setting {} of {all}: {}", index + 1, shown(sweep, setting)));
        let own = SettingProgress::new(progress, index + 1, all);
        run_until(&setting.config, options, stage, &own)?;
        folder = SweepStore::folder_of(&options.results, &setting.config.name, &sweep_id(sweep));
    }
    Ok(folder)
}

/// Returns the work and the price of every setting, without running anything.
///
/// # Errors
/// The errors of [`plan`](crate::plan()).
pub fn plan_sweep(sweep: &Sweep, options: &RunOptions) -> Result<Vec<Plan>, ExperimentError> {
    refuse_force(sweep, options)?;
    let settings = sweep.settings.iter().enumerate();
    settings.map(|(index, setting)| plan_with(&setting.config, options, index == 0)).collect()
}

/// Checks the price of every setting, before the first setting is answered.
fn check_prices(sweep: &Sweep, options: &RunOptions) -> Result<(), ExperimentError> {
    sweep.settings.iter().try_for_each(|setting| check_setting_price(&setting.config, options))
}

fn refuse_force(sweep: &Sweep, options: &RunOptions) -> Result<(), ExperimentError> {
    let Some(stage) = options.force.first() else { return Ok(()) };
    let message = format!(
        "a sweep has {} runs, and --force applies to one: use the same config without [sweep], with --set",
        sweep.settings.len()
    );
    Err(ExperimentError::option(format_args!("--force {stage}"), message))
}

/// Returns a one-line description of a setting.
fn shown(sweep: &Sweep, setting: &Setting) -> String {
    let values = sweep.keys.iter().zip(&setting.values).map(|(key, value)| format!("{key} = {value}"));
    values.collect::<Vec<_>>().join(", ")
}
