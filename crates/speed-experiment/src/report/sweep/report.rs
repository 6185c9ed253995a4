//! The results of a sweep.

use serde::{Deserialize, Serialize};
use speed_accountant::ledger::Statement;

use crate::config::{MAX_SETTINGS, RawConfig, Setting, Sweep};
use crate::error::ExperimentError;
use crate::report::plausible::{MAX_FOLDER, check_count, check_names, check_rows};
use crate::report::row::ReportRow;
use crate::report::run::{Environment, Report};
use crate::sweep::sweep_id;

/// Maximum length of a swept value, which is for example a path or a list of numbers, in bytes.
const MAX_VALUE: usize = 4096;

/// A finished sweep.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SweepReport {
    /// Experiment name.
    pub experiment: String,
    /// The sweep's id: the beginning of the fingerprint of all its configs.
    pub sweep: String,
    /// True if noise and keys of a run came from a seed: reproducible, not private.
    pub simulation: bool,
    /// The swept keys.
    pub keys: Vec<String>,
    /// The values of each key, as TOML.
    pub values: Vec<Vec<String>>,
    /// The config of the first setting.
    pub config: RawConfig,
    /// Every setting, with the results of its run.
    pub settings: Vec<SettingReport>,
    /// The total cost of all answers of the experiment; `None` for simulations.
    pub ledger: Option<Statement>,
    /// Machine and versions.
    pub environment: Option<Environment>,
}

/// One setting of a sweep, with the results of its run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SettingReport {
    /// The value of each swept key.
    pub values: Vec<String>,
    /// The id of its run.
    pub run: String,
    /// True if noise and keys came from the seed.
    pub simulation: bool,
    /// The rows of its table, without times.
    pub rows: Vec<ReportRow>,
}

impl SweepReport {
    /// Creates the report of a sweep from the report of each setting's run.
    pub(crate) fn new(sweep: &Sweep, runs: &[Report]) -> Self {
        let first = &sweep.settings[0].config;
        let setting = |(setting, run): (&Setting, &Report)| SettingReport {
            values: setting.values.clone(),
            run: run.run.clone(),
            simulation: run.simulation,
            rows: run.rows.iter().map(ReportRow::figures_only).collect(),
        };
        Self {
            experiment: first.name.clone(),
            sweep: sweep_id(sweep),
            simulation: runs.iter().any(|run| run.simulation),
            keys: sweep.keys.clone(),
            values: sweep.values.clone(),
            config: first.to_raw(),
            // The ledger of the experiment when its last run ended.
            ledger: runs.iter().rev().find_map(|run| run.ledger.clone()),
            environment: runs.first().map(|run| run.environment.clone()),
            settings: sweep.settings.iter().zip(runs).map(setting).collect(),
        }
    }

    /// Checks a report that was read from a file, which is untrusted input: names, numbers, and lists of one length.
    pub(crate) fn check(&self) -> Result<(), ExperimentError> {
        check_names(MAX_FOLDER, [&self.experiment, &self.sweep].into_iter().chain(&self.keys))?;
        check_count("settings", self.settings.len(), MAX_SETTINGS)?;
        if self.values.len() != self.keys.len() {
            let found = format!("those of {} keys of {}", self.values.len(), self.keys.len());
            return Err(ExperimentError::unlikely("the values of every key", found));
        }
        for setting in &self.settings {
            check_count("values of a setting", setting.values.len(), self.keys.len())?;
            if setting.values.len() < self.keys.len() {
                let found = format!("{} values of {} keys", setting.values.len(), self.keys.len());
                return Err(ExperimentError::unlikely("a value of every key", found));
            }
            check_names(MAX_VALUE, setting.values.iter().chain([&setting.run]))?;
            check_rows(&setting.rows)?;
        }
        Ok(())
    }

    pub(crate) fn config_to_repeat(&self) -> String {
        let mut text = format!("{}\n[sweep]\n", self.config.to_toml());
        for (key, values) in self.keys.iter().zip(&self.values) {
            let key = if key.contains('.') { format!("{key:?}") } else { key.clone() };
            text.push_str(&format!("{key} = [{}]\n", values.join(", ")));
        }
        text
    }

    /// Returns the rows of all settings.
    pub fn rows(&self) -> impl Iterator<Item = &ReportRow> + Clone {
        self.settings.iter().flat_map(|setting| &setting.rows)
    }
}
