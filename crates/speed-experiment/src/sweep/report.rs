//! The results of a sweep, and their form on the disk.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use speed_accountant::round_up;

use super::lines::{Spread, SweepLine};
use super::plots::Plot;
use super::sweep_id;
use crate::config::{RawConfig, Setting, Sweep};
use crate::environment::Environment;
use crate::error::ExperimentError;
use crate::report::{Report, ReportRow};
use crate::store::{SweepStore, read_report};
use crate::table::Table;

/// A finished sweep.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SweepReport {
    /// Experiment name.
    pub experiment: String,
    /// The sweep's id: the beginning of the fingerprint of all its configs.
    pub sweep: String,
    /// True where noise and keys of a run came from a seed: reproducible, not private.
    pub simulation: bool,
    /// The swept keys.
    pub keys: Vec<String>,
    /// The config of the first setting; sweeps of earlier versions lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<RawConfig>,
    /// Every setting, with what its run found.
    pub settings: Vec<SettingReport>,
    /// Machine and versions.
    pub environment: Option<Environment>,
}

/// One setting of a sweep, with what its run found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SettingReport {
    /// The value of each swept key.
    pub values: Vec<String>,
    /// The id of its run.
    pub run: String,
    /// True where noise and keys came from the seed.
    pub simulation: bool,
    /// The rows of its table, without times.
    pub rows: Vec<ReportRow>,
    /// The machine of its run.
    #[serde(skip)]
    environment: Option<Environment>,
}

impl SettingReport {
    pub(super) fn new(setting: &Setting, report: Report) -> Self {
        Self {
            values: setting.values.clone(),
            run: report.run,
            simulation: report.simulation,
            rows: report.rows.iter().map(ReportRow::without_times).collect(),
            environment: Some(report.environment),
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
            config: sweep.settings.first().map(|setting| setting.config.to_raw()),
            environment: settings.iter().find_map(|setting| setting.environment.clone()),
            settings,
        }
    }

    /// Returns the folder of the sweep's tables below a results folder.
    #[must_use]
    pub fn folder(&self, results: &Path) -> PathBuf {
        SweepStore::folder_of(results, &self.experiment, &self.sweep)
    }

    /// Writes the tables, replacing those of an earlier end of the same sweep.
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

    /// Reads the report of the finished sweep in the folder `sweep`.
    ///
    /// # Errors
    /// If there is none, or it is damaged.
    pub fn read(sweep: &Path) -> Result<Self, ExperimentError> {
        read_report(&SweepStore::report_of(sweep))
    }

    /// Returns the config that makes the sweep again, as TOML.
    pub(crate) fn config_to_repeat(&self) -> Option<String> {
        let mut text = format!("{}\n[sweep]\n", self.config.as_ref()?.to_toml());
        for (place, key) in self.keys.iter().enumerate() {
            let mut values: Vec<String> = Vec::new();
            for setting in &self.settings {
                let value = toml_value(setting.values.get(place)?);
                if !values.contains(&value) {
                    values.push(value);
                }
            }
            let key = if key.contains('.') { format!("{key:?}") } else { key.clone() };
            text.push_str(&format!("{key} = [{}]\n", values.join(", ")));
        }
        Some(text)
    }

    /// Returns the comparison: a line for each setting and row, without columns that no line has a value for.
    #[must_use]
    pub fn table(&self) -> Table {
        let columns =
            ["row", "ε data-independent", "ε data-dependent", "labels %", "answered %", "student %", "students"];
        let mut table = Table::new(self.compared_keys().into_iter().chain(columns));
        for line in self.lines() {
            table.push(cells(&line));
        }
        table.without_empty_columns()
    }

    /// Returns the comparison with its conditions as Markdown.
    fn to_markdown(&self, plots: &[Plot]) -> String {
        let plots: String = plots.iter().map(|plot| format!("\n![{}]({})\n", plot.title, plot.name)).collect();
        format!("# {}\n\n{}\n{}\n{NOTES}{plots}", self.experiment, self.conditions(), self.table().to_markdown())
    }

    /// Returns the conditions of the sweep, the mark of a simulation first.
    #[must_use]
    pub fn conditions(&self) -> String {
        let simulation = "SIMULATION: noise and keys come from the seed. Reproducible, not private.\n\n";
        let machine = self.environment.as_ref().map_or_else(String::new, |machine| {
            format!("{}, {} processors; speed {}.\n", machine.processor, machine.processors, machine.speed)
        });
        format!(
            "{}Sweep {} of {}: {} runs.\n{machine}",
            if self.simulation { simulation } else { "" },
            self.sweep,
            self.keys.join(", "),
            self.settings.len()
        )
    }
}

/// Returns a swept value as TOML: numbers and flags as they are, words in quotes.
fn toml_value(shown: &str) -> String {
    let is_bare = shown.parse::<f64>().is_ok() || shown.parse::<bool>().is_ok();
    if is_bare { shown.to_owned() } else { toml::Value::from(shown).to_string() }
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
- **ε data-independent** holds whatever the votes are and may be published; **ε data-dependent** is the tightest valid claim at these \
votes (dropout) and may not be published as it is. Both rounded up; over several seeds the largest; a cell is empty where there is no noise, \
or no finite value.
- **labels %**: right labels among the answered queries. Spreads are sample standard deviations over seeds, and of students over seeds and \
repeats.
";
