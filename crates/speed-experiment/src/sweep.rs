//! Sweeps: a run for every setting of `[sweep]`, and one table of all.
//!
//! The runs are those of single configs in every respect: stages that a setting does not change are found in another run of the
//! experiment, so teachers train once for a sweep over the noise, and a sweep that was killed goes on where it was.

mod lines;
mod plots;
mod progress;
mod report;

pub use lines::{Spread, SweepLine};
pub(crate) use report::NOTES;
pub use report::{SettingReport, SweepReport};

use crate::config::{ConfigError, Setting, Sweep};
use crate::error::ExperimentError;
use crate::options::RunOptions;
use crate::plan::{Plan, plan_with};
use crate::progress::Progress;
use crate::runner::run;
use crate::sweep::progress::SettingProgress;

/// Runs every setting of a sweep, and writes its tables beside the runs.
///
/// # Errors
/// See [`ExperimentError`]; the first setting that fails ends the sweep, and finished work stays.
pub fn run_sweep(sweep: &Sweep, options: &RunOptions, progress: &dyn Progress) -> Result<SweepReport, ExperimentError> {
    refuse_force(sweep, options)?;
    let all = sweep.settings.len();
    let mut reports = Vec::with_capacity(all);
    for (index, setting) in sweep.settings.iter().enumerate() {
        let place = format!("setting {} of {all}: {}", index + 1, shown(sweep, setting));
        progress.note(&place);
        let own = SettingProgress::new(progress, index + 1, all);
        let report =
            run(&setting.config, options, &own).inspect_err(|_| progress.note(&format!("stopped at {place}")))?;
        reports.push(SettingReport::new(setting, report));
    }
    let report = SweepReport::new(sweep, reports);
    report.publish(&options.results)?;
    Ok(report)
}

/// Tells the work and the price of every setting, and does nothing.
///
/// # Errors
/// Those of [`plan`](crate::plan()).
pub fn plan_sweep(sweep: &Sweep, options: &RunOptions) -> Result<Vec<Plan>, ExperimentError> {
    refuse_force(sweep, options)?;
    let settings = sweep.settings.iter().enumerate();
    settings.map(|(index, setting)| plan_with(&setting.config, options, index == 0)).collect()
}

fn refuse_force(sweep: &Sweep, options: &RunOptions) -> Result<(), ConfigError> {
    let Some(stage) = options.force.first() else { return Ok(()) };
    let message = format!(
        "a sweep has {} runs; force the stage in one of them: the same config without [sweep], and --set",
        sweep.settings.len()
    );
    Err(ConfigError::Key { place: "command line".into(), key: format!("--force {stage}"), message })
}

/// Returns a setting in one line.
fn shown(sweep: &Sweep, setting: &Setting) -> String {
    let values = sweep.keys.iter().zip(&setting.values).map(|(key, value)| format!("{key} = {value}"));
    values.collect::<Vec<_>>().join(", ")
}
