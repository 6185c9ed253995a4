//! The results of a sweep, and their format on disk.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use speed_accountant::round_up;
use speed_ledger::Statement;

use super::lines::{Spread, SweepLine};
use super::plots::Plot;
use super::sweep_id;
use crate::config::{MAX_SETTINGS, RawConfig, Setting, Sweep};
use crate::environment::Environment;
use crate::error::{ExperimentError, ResultsFault};
use crate::report::{
    DATA_INDEPENDENT, MAX_FOLDER, NONE, Report, ReportRow, check_count, check_names, check_rows, largest_epsilon,
    without_epsilon,
};
use crate::store::{SweepStore, read_report};
use crate::table::Table;

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
    /// The values of each key, as TOML; sweeps of earlier versions lack them.
    #[serde(default)]
    pub values: Vec<Vec<String>>,
    /// The config of the first setting; sweeps of earlier versions lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<RawConfig>,
    /// Every setting, with the results of its run.
    pub settings: Vec<SettingReport>,
    /// The total cost of all answers of the experiment; `None` for simulations.
    #[serde(default)]
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
    pub(super) fn new(setting: &Setting, report: Report) -> Self {
        Self {
            values: setting.values.clone(),
            run: report.run,
            simulation: report.simulation,
            rows: report.rows.iter().map(ReportRow::without_times).collect(),
            environment: Some(report.environment),
            ledger: report.ledger,
        }
    }
}

impl SweepReport {
    pub(super) fn new(sweep: &Sweep, settings: Vec<SettingReport>) -> Self {
        Self {
            experiment: sweep.settings.first().map_or_else(String::new, |setting| setting.config.name.clone()),
            sweep: sweep_id(sweep),
            simulation: settings.iter().any(|setting| setting.simulation),
            keys: sweep.keys.clone(),
            values: sweep.values.clone(),
            config: sweep.settings.first().map(|setting| setting.config.to_raw()),
            ledger: settings.iter().rev().find_map(|setting| setting.ledger.clone()),
            environment: settings.iter().find_map(|setting| setting.environment.clone()),
            settings,
        }
    }

    /// Returns the directory of the sweep's tables below a directory of results.
    #[must_use]
    pub fn folder(&self, results: &Path) -> PathBuf {
        SweepStore::folder_of(results, &self.experiment, &self.sweep)
    }

    /// Writes the tables, replacing those of an earlier completion of the same sweep.
    pub(super) fn publish(&self, results: &Path) -> Result<(), ExperimentError> {
        let store = SweepStore::create(self.folder(results))?;
        let table = self.table();
        store.write("sweep.csv", table.to_csv().as_bytes())?;
        let plots = self.plots();
        for plot in &plots {
            store.write(plot.name, plot.svg.as_bytes())?;
        }
        store.write("sweep.md", self.to_markdown(&plots).as_bytes())?;
        store.write("report.html", self.to_html().as_bytes())?;
        store.write_report(self)
    }

    /// Reads the report of the finished sweep in the directory `sweep`.
    ///
    /// # Errors
    /// If the report is missing or damaged.
    pub fn read(sweep: &Path) -> Result<Self, ExperimentError> {
        let path = SweepStore::report_of(sweep);
        let report: Self = read_report(&path)?;
        report.check().map_err(|fault| ExperimentError::Results { path, fault })?;
        Ok(report)
    }

    /// Checks the untrusted parts of the report: names, numbers, and lists of one length.
    fn check(&self) -> Result<(), ResultsFault> {
        check_names(MAX_FOLDER, [&self.experiment, &self.sweep].into_iter().chain(&self.keys))?;
        check_count("settings", self.settings.len(), MAX_SETTINGS)?;
        for setting in &self.settings {
            check_count("values of a setting", setting.values.len(), self.keys.len())?;
            if setting.values.len() < self.keys.len() {
                let found = format!("{} values of {} keys", setting.values.len(), self.keys.len());
                return Err(ResultsFault::Unlikely { expected: "a value of every key".to_owned(), found });
            }
            check_names(MAX_VALUE, setting.values.iter().chain([&setting.run]))?;
            check_rows(&setting.rows)?;
        }
        Ok(())
    }

    /// Returns the config that repeats the sweep, as TOML.
    pub(crate) fn config_to_repeat(&self) -> Option<String> {
        if self.values.len() != self.keys.len() {
            return None;
        }
        let mut text = format!("{}\n[sweep]\n", self.config.as_ref()?.to_toml());
        for (key, values) in self.keys.iter().zip(&self.values) {
            let key = if key.contains('.') { format!("{key:?}") } else { key.clone() };
            text.push_str(&format!("{key} = [{}]\n", values.join(", ")));
        }
        Some(text)
    }

    /// Returns the comparison; a row with noise but without a data-independent epsilon is marked.
    #[must_use]
    pub fn summary(&self) -> Table {
        let lines = self.lines();
        let noisy: Vec<&str> = self.rows().filter(|row| row.is_noisy()).map(|row| row.name.as_str()).collect();
        let without = |line: &SweepLine| line.data_independent.is_none() && noisy.contains(&line.row.as_str());
        let shown =
            |line: usize, head: &str| (head == DATA_INDEPENDENT && without(&lines[line])).then(|| NONE.to_owned());
        self.all_columns().replaced(shown).without_empty_columns()
    }

    /// Returns the reasons why rows with noise have no data-independent epsilon, each with the names of its rows.
    #[must_use]
    pub fn without_epsilon(&self) -> Vec<(String, Vec<String>)> {
        without_epsilon(self.rows())
    }

    /// Returns the largest data-independent epsilon of all settings, if any.
    #[must_use]
    pub fn largest_epsilon(&self) -> Option<f64> {
        largest_epsilon(self.rows())
    }

    fn rows(&self) -> impl Iterator<Item = &ReportRow> {
        self.settings.iter().flat_map(|setting| &setting.rows)
    }

    /// Returns the comparison: a line for each setting and row, without columns that have no values.
    #[must_use]
    pub fn table(&self) -> Table {
        self.all_columns().without_empty_columns()
    }

    fn all_columns(&self) -> Table {
        let columns = ["row", DATA_INDEPENDENT, "ε data-dependent", "labels %", "answered %", "student %", "students"];
        let mut table = Table::new(self.compared_keys().into_iter().chain(columns));
        for line in self.lines() {
            table.push(cells(&line));
        }
        table
    }

    /// Returns the comparison with its conditions as Markdown.
    fn to_markdown(&self, plots: &[Plot]) -> String {
        let plots: String = plots.iter().map(|plot| format!("\n![{}]({})\n", plot.title, plot.name)).collect();
        format!("# {}\n\n{}\n{}\n{NOTES}{plots}", self.experiment, self.conditions(), self.table().to_markdown())
    }

    /// Returns the conditions of the sweep; the mark of a simulation is first.
    #[must_use]
    pub fn conditions(&self) -> String {
        let simulation = "SIMULATION: noise and keys come from the seed. Reproducible, not private.\n\n";
        let machine = self.environment.as_ref().map_or_else(String::new, |machine| {
            format!("{}, {} processors; speed {}.\n", machine.processor, machine.processors, machine.speed)
        });
        format!(
            "{}Sweep {} of {}: {} runs.\n{machine}{}",
            if self.simulation { simulation } else { "" },
            self.sweep,
            self.keys.join(", "),
            self.settings.len(),
            self.ledger
                .as_ref()
                .map_or_else(String::new, |ledger| format!("Ledger of the experiment: {}\n", ledger.claim)),
        )
    }
}

fn cells(line: &SweepLine) -> Vec<String> {
    let epsilon =
        |epsilon: Option<f64>| epsilon.map_or_else(String::new, |epsilon| format!("{:.2}", round_up(epsilon, 2)));
    let students = if line.students.count == 0 { String::new() } else { line.students.count.to_string() };
    let figures = [
        line.row.clone(),
        epsilon(line.data_independent),
        epsilon(line.data_dependent),
        percent(&line.labels),
        percent(&line.answered),
        percent(&line.students),
        students,
    ];
    line.values.iter().cloned().chain(figures).collect()
}

fn percent(spread: &Spread) -> String {
    let percent = |share: f64| format!("{:.2}", 100.0 * share);
    match (spread.mean, spread.deviation) {
        (Some(mean), Some(deviation)) => format!("{} ± {}", percent(mean), percent(deviation)),
        (Some(mean), None) => percent(mean),
        (None, _) => String::new(),
    }
}

/// The meaning of the columns.
pub(crate) const NOTES: &str = "\
- **ε data-independent** holds for all votes and may be published; **ε data-dependent** is the tightest valid claim at these \
votes (dropout) and must not be published as it is. Both are rounded up; for several seeds, the largest is shown; a cell is empty without noise \
or a finite value.
- **labels %**: right labels among the answered queries. Spreads are sample standard deviations over seeds, and for students over seeds and \
repeats.
";
