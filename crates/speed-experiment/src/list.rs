//! The runs below a directory of results.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

use crate::config::{Config, RowConfig};
use crate::error::ExperimentError;
use crate::report::{Report, ReportRow, RunNoise, check_rows};
use crate::results;
use crate::store::{
    PUBLISHED, RunStore, StageRecord, config_path, folders_in, is_current, is_id, is_in_use, read_table_alone,
    report_path, stages, table_path,
};

/// The table of a run that was published without a report, in the run's directory or among its tables.
const TABLES: [&str; 2] = ["table.json", "tables/table.json"];

const TABLE: &str = "table.json";

/// A run in the output of `speed list`.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct RunSummary {
    /// Experiment name.
    pub experiment: String,
    /// Run id.
    pub run: String,
    /// The run's directory.
    pub folder: PathBuf,
    /// Its state.
    pub state: ListedState,
    /// True if its table exists.
    pub finished: bool,
    /// True if noise and keys came from a seed; unknown if neither its config nor its report can be read.
    pub simulation: Option<bool>,
    /// The noise of its answers; unknown if neither its config nor its report can be read.
    pub noise: Option<RunNoise>,
    /// Stages that are done.
    pub stages_done: usize,
    /// The end of its last finished stage or, before one is finished, the start of the run, in seconds since 1970.
    /// Unknown for published runs without stages.
    pub ended_at: Option<u64>,
    /// The largest data-independent epsilon of its rows, if it is finished; `None` if a row with noise lacks one.
    pub epsilon: Option<f64>,
    /// The rows with noise but without a data-independent epsilon.
    pub without_epsilon: Vec<String>,
    /// Mean accuracy of the students of its best row, 0 to 1.
    pub student_accuracy: Option<f64>,
    /// Share of right labels of its best row, 0 to 1.
    pub label_accuracy: Option<f64>,
    /// The damage of its files, if a file cannot be read.
    pub damage: Option<String>,
}

/// The state of a listed run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ListedState {
    /// A process works on it.
    Running,
    /// Its tables exist.
    Finished,
    /// It stopped before its tables were written.
    Unfinished,
    /// A file that determines its state cannot be read.
    Damaged,
}

/// Lists the runs below a directory of results, by experiment and id, followed by the published runs.
pub fn list_runs(results: &Path) -> Vec<RunSummary> {
    let published = runs_below(&results.join(PUBLISHED), true);
    runs_below(results, false).into_iter().chain(published).collect()
}

fn runs_below(results: &Path, is_published: bool) -> Vec<RunSummary> {
    let experiments = folders_in(results).into_iter();
    let runs = experiments.flat_map(|experiment| {
        let runs = folders_in(&results.join(&experiment)).into_iter();
        let runs = runs.filter(|run| is_run(&results.join(&experiment).join(run), run));
        runs.map(|run| summary(results, &experiment, run, is_published)).collect::<Vec<_>>()
    });
    runs.collect()
}

/// Returns whether a directory is a run's: it has a config, or the name and the parts of a run whose config was lost.
fn is_run(folder: &Path, name: &str) -> bool {
    config_path(folder).exists() || (is_id(name) && (stages(folder).is_dir() || report_path(folder).exists()))
}

/// The figures of a finished run: the part of its report that is also in the table of a published run.
#[derive(Deserialize)]
struct Figures {
    simulation: bool,
    rows: Vec<ReportRow>,
}

fn summary(results: &Path, experiment: &str, run: String, is_published: bool) -> RunSummary {
    let folder = results.join(experiment).join(&run);
    let mut damage = None;
    let config = note(&mut damage, RunStore::config_in(&folder));
    let figures = note(&mut damage, figures(&folder, is_published)).flatten();
    let names: Vec<String> = folders_in(&stages(&folder)).into_iter().filter(|name| is_current(name)).collect();
    let records: Vec<(&String, Option<StageRecord>)> =
        names.iter().map(|name| (name, StageRecord::read(&stages(&folder).join(name)))).collect();
    // All stages of a finished run have ended.
    let lost = records.iter().find(|(_, record)| record.is_none()).filter(|_| figures.is_some() && !is_published);
    if let Some((name, _)) = lost {
        damage.get_or_insert_with(|| {
            format!(
                "stages/{name}/stage.json is missing or damaged: `speed run` with the same config repeats the stage"
            )
        });
    }
    if figures.is_none() && !is_published && table_path(&folder, TABLE).exists() {
        damage.get_or_insert_with(|| {
            "tables/report.json is missing: `speed run` with the same config writes it".to_owned()
        });
    }
    let done = records.iter().filter_map(|(_, record)| record.as_ref());
    let ended_at = done.clone().map(|record| record.finished_at).max();
    let began_at = || fs::metadata(config_path(&folder)).ok()?.modified().ok()?.duration_since(UNIX_EPOCH).ok();
    let is_finished = figures.is_some() || report_path(&folder).exists();
    let state = match (is_in_use(&folder), &damage, is_finished) {
        (true, ..) => ListedState::Running,
        (_, Some(_), _) => ListedState::Damaged,
        (_, _, true) => ListedState::Finished,
        _ => ListedState::Unfinished,
    };
    let rows = figures.as_ref().map_or(&[][..], |figures| &figures.rows);
    let noise_of_rows =
        |figures: &Figures| RunNoise::new(figures.rows.iter().any(ReportRow::is_noisy), figures.simulation);
    let noise_of_config =
        |config: &Config| RunNoise::new(config.rows.iter().any(RowConfig::is_noisy), config.is_simulation());
    // With real noise, only rows with an epsilon: the figures of the others are secret.
    let is_real = figures.as_ref().map(noise_of_rows) == Some(RunNoise::Real);
    let is_public = |row: &&ReportRow| !is_real || row.data_independent.is_some();
    let best =
        |figure: fn(&ReportRow) -> Option<f64>| rows.iter().filter(is_public).filter_map(figure).max_by(f64::total_cmp);
    let (epsilon, without_epsilon) = epsilon(rows);
    RunSummary {
        experiment: experiment.to_owned(),
        run,
        state,
        finished: is_finished,
        simulation: config.as_ref().map(Config::is_simulation).or(figures.as_ref().map(|figures| figures.simulation)),
        noise: config.as_ref().map(noise_of_config).or(figures.as_ref().map(noise_of_rows)),
        stages_done: done.count(),
        ended_at: ended_at.or_else(|| if is_published { None } else { began_at().map(|since| since.as_secs()) }),
        epsilon,
        without_epsilon,
        student_accuracy: best(|row| row.student_mean),
        label_accuracy: best(|row| row.label_accuracy),
        damage,
        folder,
    }
}

fn note<T>(damage: &mut Option<String>, read: Result<T, ExperimentError>) -> Option<T> {
    read.map_err(|error| damage.get_or_insert_with(|| error.to_string()).clone()).ok()
}

/// Reads the figures of a finished run; those of a published run without a report come from its table.
fn figures(folder: &Path, is_published: bool) -> Result<Option<Figures>, ExperimentError> {
    if report_path(folder).exists() {
        let Report { simulation, rows, .. } = results::read_report(folder)?;
        return Ok(Some(Figures { simulation, rows }));
    }
    let table = TABLES.map(|name| folder.join(name)).into_iter().find(|path| is_published && path.exists());
    let Some(path) = table else { return Ok(None) };
    let figures: Figures = read_table_alone(&path)?;
    check_rows(&figures.rows).map_err(|error| error.at(path))?;
    Ok(Some(figures))
}

/// Returns the largest data-independent epsilon of the rows, and the names of the rows with noise but without one.
fn epsilon(rows: &[ReportRow]) -> (Option<f64>, Vec<String>) {
    let noisy = || rows.iter().filter(|row| row.is_noisy());
    let without: Vec<String> =
        noisy().filter(|row| row.data_independent.is_none()).map(|row| row.name.clone()).collect();
    let epsilons = noisy().filter_map(|row| row.data_independent.as_ref()).map(|account| account.epsilon);
    (if without.is_empty() { epsilons.max_by(f64::total_cmp) } else { None }, without)
}
