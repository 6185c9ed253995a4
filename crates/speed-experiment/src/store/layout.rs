//! Names of the files and directories of a run:
//! `RESULTS/EXPERIMENT/RUN-ID/{config.toml, env.json, stages/, tables/, run.lock}`.

use std::path::{Path, PathBuf};

use crate::error::ExperimentError;

/// The directory of published runs in a directory of results. A run neither writes to it nor reads from it.
pub(crate) const PUBLISHED: &str = "published";

pub(super) const CONFIG: &str = "config.toml";
pub(super) const ENVIRONMENT: &str = "env.json";
/// The lock file of the process that works in the run's directory.
pub(super) const LOCK: &str = "run.lock";
/// The progress of the process that works in the run's directory.
const PROGRESS: &str = "progress.json";
/// The directory of a cluster's scripts, jobs and logs.
pub(super) const SLURM: &str = "slurm";
const SHARDS: &str = "shards";
pub(super) const FINGERPRINT: &str = "fingerprint";
/// The file of the hashes of a stage's parts, in the stage's directory; an error names the parts that differ.
pub(super) const PARTS: &str = "inputs.json";
/// The file of the kind of machine that began a stage, in the stage's directory; also the key among the stage's inputs.
pub(crate) const ARITHMETIC: &str = "arithmetic";
/// The file of the digest of the noise that a stage's answers were charged with, in the stage's directory.
pub(super) const CHARGED: &str = "charged";
const TABLES: &str = "tables";
const SWEEP_REPORT: &str = "sweep.json";
/// The file of a finished run's report, in the directory of tables.
const REPORT: &str = "report.json";
/// Tables, plots and pages for readers, in the directory of tables.
const PAGES: [&str; 5] = ["report.html", "table.md", "report.md", "students.svg", "epochs.svg"];
/// The file of the queries with their answers, in the directory of tables.
pub(crate) const ASKED_QUERIES: &str = "queries.json";
/// The file of the queries' pictures, ten in a row, in the directory of tables.
pub(crate) const ASKED_PICTURES: &str = "queries.png";
const STAGES: &str = "stages";
const MODELS: &str = "models";

/// Fails if the path of a results directory is a file.
pub(crate) fn expect_folder(results: &Path) -> Result<(), ExperimentError> {
    if results.exists() && !results.is_dir() {
        return Err(ExperimentError::not_a_folder(results));
    }
    Ok(())
}

pub(crate) fn stages(run: &Path) -> PathBuf {
    run.join(STAGES)
}

pub(crate) fn progress_path(run: &Path) -> PathBuf {
    run.join(PROGRESS)
}

pub(super) fn shards(run: &Path) -> PathBuf {
    run.join(SHARDS)
}

/// Returns the path of a run's resolved config.
pub fn config_path(run: &Path) -> PathBuf {
    run.join(CONFIG)
}

/// Returns the directory of the scripts, jobs and logs of a run or sweep on a cluster.
pub fn slurm_folder(run: &Path) -> PathBuf {
    run.join(SLURM)
}

/// Returns the path of the model of a row's student, relative to the run's directory. `row` is the name of the row as a
/// directory.
pub(crate) fn model_name(row: &str, repeat: usize) -> String {
    format!("{MODELS}/{row}/student-{repeat}.safetensors")
}

/// Returns the directory of the run that a row's card belongs to, if the card is in the place of its run.
pub(crate) fn run_of_card(card: &Path) -> Option<PathBuf> {
    // A name alone is in the current directory.
    let card = std::path::absolute(card).ok()?;
    let models = card.parent()?.parent().filter(|models| models.file_name().is_some_and(|name| name == MODELS))?;
    let run = models.parent()?;
    config_path(run).is_file().then(|| run.to_path_buf())
}

/// Returns the path of an image that the models of a run can classify.
pub(crate) fn example_image(run: &Path) -> PathBuf {
    run.join(MODELS).join("example.png")
}

/// Returns the models of a run's students, by row and then by name.
pub(crate) fn models_in(run: &Path) -> Vec<PathBuf> {
    let files = paths_in(&run.join(MODELS)).into_iter().flat_map(|row| {
        let files = std::fs::read_dir(row).into_iter().flatten().flatten().map(|entry| entry.path());
        let mut files: Vec<PathBuf> =
            files.filter(|path| path.extension().is_some_and(|end| end == "safetensors")).collect();
        files.sort();
        files
    });
    files.collect()
}

pub(crate) fn table_path(run: &Path, name: &str) -> PathBuf {
    run.join(TABLES).join(name)
}

/// Returns the path of a run's report, which exists once the run is finished.
pub fn report_path(run: &Path) -> PathBuf {
    table_path(run, REPORT)
}

/// Returns the directory of a sweep's tables below `results`, beside the runs of its experiment.
pub(crate) fn sweep_folder(results: &Path, experiment: &str, sweep: &str) -> PathBuf {
    results.join(experiment).join(format!("sweep-{sweep}"))
}

/// Returns the path of a sweep's report, which exists once the sweep is finished.
pub(crate) fn sweep_report_path(sweep: &Path) -> PathBuf {
    sweep.join(SWEEP_REPORT)
}

/// Returns the existing tables, plots and pages of a run that are meant for readers.
pub fn pages(run: &Path) -> Vec<PathBuf> {
    let paths = PAGES.iter().map(|name| table_path(run, name));
    paths.filter(|path| path.exists()).collect()
}

/// Returns whether a stage directory is current, and was not set aside.
pub(crate) fn is_current(stage: &str) -> bool {
    !stage.contains('.')
}

/// Returns whether `name` denotes `stage`: as its full name, or as its kind, the part before the first `-`. So
/// `student` denotes every student, but `aggregate-a` does not denote `aggregate-a-b`.
pub(crate) fn is_called(stage: &str, name: &str) -> bool {
    let is_kind = !name.contains('-');
    stage == name || is_kind && stage.strip_prefix(name).is_some_and(|rest| rest.starts_with('-'))
}

/// Returns the sorted paths of the directories in `folder`; empty if it cannot be read.
pub(super) fn paths_in(folder: &Path) -> Vec<PathBuf> {
    folders_in(folder).into_iter().map(|name| folder.join(name)).collect()
}

/// Returns the sorted names of the directories in `folder`; empty if it cannot be read.
pub(crate) fn folders_in(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

pub(crate) fn is_id(name: &str) -> bool {
    name.len() == 12 && name.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

pub(super) fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
