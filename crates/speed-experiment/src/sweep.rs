//! Sweeps: a run for every setting of `[sweep]`, and one table of all runs.
//!
//! Each run is identical to a run of the setting's config alone. Stages that a setting does not change are taken from
//! another run of the experiment, so a sweep over the noise trains its teachers once, and an interrupted sweep resumes.

mod id;

use std::path::PathBuf;

use crate::report::SweepReport;
pub(crate) use id::folder_of;
pub use id::sweep_id;

use crate::config::{Setting, Sweep};
use crate::error::ExperimentError;
use crate::options::RunOptions;
use crate::plan::{Plan, check_setting_price, plan_with};
use crate::progress::{Event, Progress};
use crate::results::publish_sweep;
use crate::runner::{complete_until, run};

/// Runs every setting of a sweep, and writes its tables beside the runs.
///
/// # Errors
/// See [`ExperimentError`]; the first failing setting stops the sweep, and finished work is kept.
pub fn run_sweep(sweep: &Sweep, options: &RunOptions, progress: &dyn Progress) -> Result<SweepReport, ExperimentError> {
    let report = |setting: &Setting, progress: &dyn Progress| run(&setting.config, options, progress);
    let report = SweepReport::new(sweep, &each(sweep, options, progress, report)?);
    publish_sweep(&report, &options.results)?;
    Ok(report)
}

/// Completes the stages of a run, or of every setting of a sweep, up to `stage`, a name or a kind as in `--force`, without
/// tables. Returns the directory of the run or sweep.
///
/// # Errors
/// The errors of [`run`] and [`run_sweep`], and an error if there is no such stage.
pub fn run_until(
    sweep: &Sweep,
    options: &RunOptions,
    stage: &str,
    progress: &dyn Progress,
) -> Result<PathBuf, ExperimentError> {
    each(sweep, options, progress, |setting, progress| complete_until(&setting.config, options, stage, progress))?;
    Ok(folder_of(sweep, &options.results))
}

/// Does work for a plain run, or for every setting of a sweep after the price of every setting was checked.
fn each<T>(
    sweep: &Sweep,
    options: &RunOptions,
    progress: &dyn Progress,
    work: impl Fn(&Setting, &dyn Progress) -> Result<T, ExperimentError>,
) -> Result<Vec<T>, ExperimentError> {
    if sweep.is_plain() {
        return Ok(vec![work(&sweep.settings[0], progress)?]);
    }
    refuse_force(sweep, options)?;
    sweep.configs().try_for_each(|config| check_setting_price(config, options))?;
    let all = sweep.settings.len();
    let one = |(index, setting): (usize, &Setting)| {
        let place = format!("setting {} of {all}: {}", index + 1, shown(sweep, setting));
        progress.note(&place);
        let own = SettingProgress { all: progress, place: format!("{}/{all}", index + 1) };
        work(setting, &own).inspect_err(|_| progress.note(&format!("stopped at {place}")))
    };
    sweep.settings.iter().enumerate().map(one).collect()
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

fn refuse_force(sweep: &Sweep, options: &RunOptions) -> Result<(), ExperimentError> {
    let Some(stage) = options.force.first() else { return Ok(()) };
    let message = format!(
        "a sweep has {} runs, and --force applies to one: use the same config without [sweep], with --set",
        sweep.settings.len()
    );
    Err(ExperimentError::option(format_args!("--force {stage}"), message))
}

fn shown(sweep: &Sweep, setting: &Setting) -> String {
    let values = sweep.keys.iter().zip(&setting.values).map(|(key, value)| format!("{key} = {value}"));
    values.collect::<Vec<_>>().join(", ")
}

/// A receiver that forwards the progress of one run, with its number among all runs.
struct SettingProgress<'a> {
    all: &'a dyn Progress,
    place: String,
}

impl Progress for SettingProgress<'_> {
    fn on(&self, event: Event<'_>) {
        match event {
            // Most stages of most settings were already finished by the first setting, so reporting each of them would be
            // noise.
            Event::Finished(stage, _) => self.all.finished(stage, false),
            Event::Begin { work, unit, units, done } => {
                self.all.begin(&format!("{} {work}", self.place), unit, units, done);
            }
            Event::End(summary) => self.all.end(&format!("{} {summary}", self.place)),
            event => self.all.on(event),
        }
    }
}
