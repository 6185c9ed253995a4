//! The results of a sweep.

use serde::{Deserialize, Serialize};
use speed_accountant::ledger::Statement;

use crate::config::{MAX_SETTINGS, RawConfig, Sweep};
use crate::error::ExperimentError;
use crate::report::environment::Environment;
use crate::report::plausible::{MAX_FOLDER, check_count, check_names, check_rows};
use crate::report::row::ReportRow;
use crate::report::run::Report;
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
    /// The machine of its run.
    #[serde(skip)]
    environment: Option<Environment>,
    /// The ledger of the experiment when its run ended.
    #[serde(skip)]
    ledger: Option<Statement>,
}

impl SettingReport {
    /// Creates the result of the run with these values of the swept keys.
    pub(crate) fn new(values: Vec<String>, report: Report) -> Self {
        Self {
            values,
            run: report.run,
            simulation: report.simulation,
            rows: report.rows.iter().map(ReportRow::figures_only).collect(),
            environment: Some(report.environment),
            ledger: report.ledger,
        }
    }
}

impl SweepReport {
    /// Creates the report of a sweep from its finished settings.
    pub(crate) fn new(sweep: &Sweep, settings: Vec<SettingReport>) -> Self {
        let first = &sweep.settings[0].config;
        Self {
            experiment: first.name.clone(),
            sweep: sweep_id(sweep),
            simulation: settings.iter().any(|setting| setting.simulation),
            keys: sweep.keys.clone(),
            values: sweep.values.clone(),
            config: first.to_raw(),
            ledger: settings.iter().rev().find_map(|setting| setting.ledger.clone()),
            environment: settings.iter().find_map(|setting| setting.environment.clone()),
            settings,
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

    /// Returns the config that repeats the sweep, as TOML.
    pub(crate) fn config_to_repeat(&self) -> String {
        let mut text = format!("{}\n[sweep]\n", self.config.to_toml());
        for (key, values) in self.keys.iter().zip(&self.values) {
            let key = if key.contains('.') { format!("{key:?}") } else { key.clone() };
            text.push_str(&format!("{key} = [{}]\n", values.join(", ")));
        }
        text
    }

    /// Returns the rows of all settings.
    pub(super) fn rows(&self) -> impl Iterator<Item = &ReportRow> {
        self.settings.iter().flat_map(|setting| &setting.rows)
    }
}
