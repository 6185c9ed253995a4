//! Names of the files and folders of a run: `RESULTS/EXPERIMENT/RUN-ID/{config.toml, env.json, stages/, tables/, run.lock}`.

use std::path::{Path, PathBuf};

use crate::error::{ExperimentError, ResultsFault};

/// The folder of published runs below a folder of results: no run writes there, or takes anything from it.
pub(crate) const PUBLISHED: &str = "published";

/// The resolved config.
pub(super) const CONFIG: &str = "config.toml";
/// The machine and the versions.
pub(super) const ENVIRONMENT: &str = "env.json";
/// The lock of the process that works in the run's folder.
pub(super) const LOCK: &str = "run.lock";
/// What the process that works in the run's folder is doing.
const PROGRESS: &str = "progress.json";
/// The folder of what a cluster is given to do.
const SLURM: &str = "slurm";
/// The folder of what shards say.
const SHARDS: &str = "shards";
/// The fingerprint of the stage that is worked on, or was, in its folder.
pub(super) const FINGERPRINT: &str = "fingerprint";
/// The hashes of the parts of a stage's identity, in its folder, by which a refusal names what differs.
pub(super) const PARTS: &str = "inputs.json";
/// The kind of machine that began a stage, in its folder; also the key among its inputs.
pub(crate) const ARITHMETIC: &str = "arithmetic";
/// The digest of the noise that a stage's answers were charged with, in its folder.
pub(super) const CHARGED: &str = "charged";
/// The folder of tables and plots.
const TABLES: &str = "tables";
/// The report of a finished sweep, in its folder.
pub(super) const SWEEP_REPORT: &str = "sweep.json";
/// The report of a finished run, in the folder of tables.
const REPORT: &str = "report.json";
/// Tables, plots and pages for people, in the same folder.
const PAGES: [&str; 5] = ["report.html", "table.md", "report.md", "students.svg", "epochs.svg"];
/// The queries with their answers, in the same folder.
pub(crate) const ASKED_QUERIES: &str = "queries.json";
/// Their pictures, ten in a row.
pub(crate) const ASKED_PICTURES: &str = "queries.png";
/// The folder of the stages.
const STAGES: &str = "stages";

/// Refuses a file in the place of a folder of results.
///
/// # Errors
/// If it is one.
pub(crate) fn expect_folder(results: &Path) -> Result<(), ExperimentError> {
    if results.exists() && !results.is_dir() {
        return Err(ExperimentError::Results { path: results.to_path_buf(), fault: ResultsFault::NotFolder });
    }
    Ok(())
}

/// Returns the folder of a run's stages.
pub(crate) fn stages(run: &Path) -> PathBuf {
    run.join(STAGES)
}

/// Returns the path of the file that says what a run is doing.
pub(crate) fn progress_path(run: &Path) -> PathBuf {
    run.join(PROGRESS)
}

/// Returns the path of the file that says that a shard, by its name, has nothing to do in a run or sweep.
pub(crate) fn shard_path(run: &Path, shard: &str) -> PathBuf {
    run.join(SHARDS).join(format!("{shard}.json"))
}

/// Returns the path of the file that says what a shard is doing.
pub(crate) fn shard_progress_path(run: &Path, shard: &str) -> PathBuf {
    run.join(SHARDS).join(format!("{shard}.progress.json"))
}

/// Returns the path of a run's resolved config.
#[must_use]
pub fn config_path(run: &Path) -> PathBuf {
    run.join(CONFIG)
}

/// Returns the folder of the scripts, jobs and logs of a run or sweep on a cluster.
#[must_use]
pub fn slurm_folder(run: &Path) -> PathBuf {
    run.join(SLURM)
}

/// Makes the folder of both.
pub(super) fn make_shards_folder(run: &Path) -> Result<(), ExperimentError> {
    let folder = run.join(SHARDS);
    std::fs::create_dir_all(&folder).map_err(ExperimentError::io("create", folder))
}

/// Returns the path of one of a run's tables or plots.
pub(crate) fn table_path(run: &Path, name: &str) -> PathBuf {
    run.join(TABLES).join(name)
}

/// Returns the path of a run's report, which is there once the run is finished.
pub(crate) fn report_path(run: &Path) -> PathBuf {
    table_path(run, REPORT)
}

/// Returns those of a run's tables, plots and pages that are for people, as far as they are there.
#[must_use]
pub fn pages(run: &Path) -> Vec<PathBuf> {
    let paths = PAGES.iter().map(|name| table_path(run, name));
    paths.filter(|path| path.exists()).collect()
}

/// Returns whether a stage folder holds a stage of today, not one that was set aside.
pub(crate) fn is_current(stage: &str) -> bool {
    !stage.contains('.')
}

/// Returns whether `name` means `stage`: its whole name, or its kind, the part before the first `-`, as in `student` for every
/// student. `aggregate-a` does not mean `aggregate-a-b`.
pub(crate) fn is_called(stage: &str, name: &str) -> bool {
    stage == name || !name.contains('-') && stage.strip_prefix(name).is_some_and(|rest| rest.starts_with('-'))
}

/// Returns the names of the folders in `folder`, sorted; none if it cannot be read.
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

/// Returns whether a name has the form of a run's id.
pub(crate) fn is_id(name: &str) -> bool {
    name.len() == 12 && name.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

/// Returns the last part of a path as text.
pub(super) fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
