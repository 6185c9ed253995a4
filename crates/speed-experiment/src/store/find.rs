//! Search for runs by directory, id or name.

use std::path::{Path, PathBuf};

use speed_core::{nearest, printable, printable_path};

use super::layout::{
    CONFIG, PUBLISHED, SLURM, expect_folder, folders_in, name_of, paths_in, report_path, sweep_report_path,
};
use super::shard::is_in_use;
use crate::error::ExperimentError;

/// Finds the finished run that `run` names. `run` is the directory of a run, the directory of an experiment with one
/// finished run, or a name below `results`, or else below `results/published`: an experiment, a run's id or its prefix,
/// or `EXPERIMENT/RUN` with an id or its prefix.
///
/// # Errors
/// If no run matches, or several do.
pub fn find_run(results: &Path, run: &Path) -> Result<PathBuf, ExperimentError> {
    one_of(named(results, run, has_report)?, results, run, true)
}

/// The directory of a run or sweep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FoundResults {
    /// The directory of a finished run.
    Run(PathBuf),
    /// The directory of a finished sweep.
    Sweep(PathBuf),
    /// The directory of a run that is not finished.
    Unfinished(PathBuf),
}

/// Finds the finished run or sweep that `name` names, like [`find_run`], and otherwise the unfinished run. If an
/// experiment has several runs and one sweep, this is the sweep.
///
/// # Errors
/// If no run matches, or several do.
pub fn find_results(results: &Path, name: &Path) -> Result<FoundResults, ExperimentError> {
    let found = named(results, name, is_finished)?;
    let sweeps: Vec<&PathBuf> = found.iter().filter(|folder| is_sweep(folder)).collect();
    match (found.len() - sweeps.len(), sweeps.as_slice()) {
        (0, []) => find_any_run(results, name).map(FoundResults::Unfinished),
        (runs, [sweep]) if runs != 1 => Ok(FoundResults::Sweep((*sweep).clone())),
        _ => one_of(found, results, name, true).map(FoundResults::Run),
    }
}

/// Returns whether a directory is that of a finished run or sweep.
pub fn is_finished(folder: &Path) -> bool {
    has_report(folder) || is_sweep(folder)
}

/// Finds the run that `run` names, finished or not, like [`find_run`]. Among several runs it is the one in which a
/// process works.
///
/// # Errors
/// If no run matches, or several do.
pub fn find_any_run(results: &Path, run: &Path) -> Result<PathBuf, ExperimentError> {
    let mut found = named(results, run, is_begun)?;
    if found.len() > 1 && found.iter().any(|run| is_in_use(run)) {
        found.retain(|run| is_in_use(run));
    }
    one_of(found, results, run, false)
}

fn one_of(found: Vec<PathBuf>, results: &Path, run: &Path, finished: bool) -> Result<PathBuf, ExperimentError> {
    if let (true, [], [begun]) = (finished, found.as_slice(), named(results, run, is_begun)?.as_slice()) {
        return Err(ExperimentError::not_finished(report_path(begun)));
    }
    match found.as_slice() {
        [one] => Ok(one.clone()),
        [] => {
            let kind = if finished { "finished " } else { "" };
            let meant =
                instead(results, run).map_or_else(String::new, |name| format!("did you mean {}? ", printable(&name)));
            let fault = format_args!(
                "no {kind}run of this name: expected the folder of a run or of an experiment with one run, or, below {}, the name of an \
                 experiment or the beginning of a run's id; {meant}`speed list` shows them",
                printable_path(results)
            );
            Err(ExperimentError::results(run, fault))
        }
        several => {
            let folders = several.iter().map(|folder| printable_path(folder)).collect::<Vec<_>>().join(", ");
            let fault = format_args!("{} runs of this name, expected one: {folders}", several.len());
            Err(ExperimentError::results(run, fault))
        }
    }
}

/// Returns the name of an existing experiment that the user probably meant.
fn instead(results: &Path, run: &Path) -> Option<String> {
    let experiments =
        [results.to_path_buf(), results.join(PUBLISHED)].into_iter().flat_map(|folder| folders_in(&folder));
    let experiments: Vec<String> = experiments.filter(|name| name != PUBLISHED).collect();
    nearest(&run.to_string_lossy(), experiments.iter().map(String::as_str)).map(str::to_owned)
}

/// A predicate on directories: whether the directory is a result of the sought kind.
type IsRun = fn(&Path) -> bool;

fn named(results: &Path, run: &Path, is_run: IsRun) -> Result<Vec<PathBuf>, ExperimentError> {
    let found = runs_in(run, is_run);
    if !found.is_empty() {
        return Ok(found);
    }
    expect_folder(results)?;
    // A published run keeps its name only until it is repeated.
    let places = [results.to_path_buf(), results.join(PUBLISHED)];
    let mut found = places.iter().map(|place| called(place, &run.to_string_lossy(), is_run));
    Ok(found.find(|runs| !runs.is_empty()).unwrap_or_default())
}

/// Returns the directory itself if it matches, and otherwise the matching directories in it.
fn runs_in(folder: &Path, is_run: IsRun) -> Vec<PathBuf> {
    if is_run(folder) {
        return vec![folder.to_path_buf()];
    }
    paths_in(folder).into_iter().filter(|run| is_run(run)).collect()
}

/// Returns whether a directory is that of a run, and not that of a sweep's jobs, which has the sweep's config.
fn is_begun(run: &Path) -> bool {
    !run.ends_with(SLURM) && run.join(CONFIG).exists()
}

/// Returns a run of the same experiment in which a process works, because a sweep works on one run after another.
pub fn run_in_use(run: &Path) -> Option<PathBuf> {
    paths_in(run.parent()?).into_iter().find(|other| is_in_use(other))
}

fn is_sweep(folder: &Path) -> bool {
    sweep_report_path(folder).exists()
}

fn has_report(run: &Path) -> bool {
    report_path(run).exists()
}

/// Returns the runs that a name denotes: all runs of an experiment, or the runs whose ids begin with the name.
fn called(results: &Path, name: &str, is_run: IsRun) -> Vec<PathBuf> {
    let experiments = paths_in(results);
    let all = experiments.iter().filter(|folder| name_of(folder) == name);
    let all: Vec<PathBuf> = all.flat_map(|folder| runs_in(folder, is_run)).collect();
    if !all.is_empty() {
        return all;
    }
    let (of, id) = name.split_once('/').map_or((None, name), |(experiment, id)| (Some(experiment), id));
    let runs = experiments.iter().filter(|folder| of.is_none_or(|of| of == name_of(folder)));
    let runs = runs.flat_map(|folder| paths_in(folder));
    runs.filter(|run| !id.is_empty() && name_of(run).starts_with(id) && is_run(run)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes empty files, for a search that only looks at names.
    fn write(results: &Path, files: impl IntoIterator<Item: AsRef<Path>>) {
        for file in files.into_iter().map(|file| results.join(file)) {
            std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
            std::fs::write(file, "").expect("a file");
        }
    }

    #[test]
    fn a_sweep_answers_for_the_runs_of_its_experiment() {
        let results = tempfile::tempdir().expect("a folder");
        let sweep = results.path().join("a/sweep-89ab");
        write(results.path(), ["a/sweep-89ab/sweep.json"]);
        let find = |name: &str| find_results(results.path(), Path::new(name));
        assert_eq!(find("a").expect("a"), FoundResults::Sweep(sweep.clone()));
        write(results.path(), ["a/0123/tables/report.json", "a/4567/tables/report.json", "b/89ab/config.toml"]);
        for name in ["a", "sweep-8", "a/sweep-89ab", &sweep.to_string_lossy()] {
            assert_eq!(find(name).expect(name), FoundResults::Sweep(sweep.clone()));
        }
        assert_eq!(find("012").expect("a run"), FoundResults::Run(results.path().join("a/0123")));
        assert_eq!(find("b").expect("a run"), FoundResults::Unfinished(results.path().join("b/89ab")));
        // A published sweep has the name only until the user has a run of it.
        write(results.path(), ["published/c/sweep-0f/sweep.json", "published/d/sweep-0e/sweep.json"]);
        write(results.path(), ["d/1111/tables/report.json"]);
        assert_eq!(find("c").expect("a sweep"), FoundResults::Sweep(results.path().join("published/c/sweep-0f")));
        assert_eq!(find("d").expect("a run"), FoundResults::Run(results.path().join("d/1111")));
        write(results.path(), ["a/sweep-cdef/sweep.json"]);
        let error = find("a").expect_err("two sweeps").to_string();
        assert!(error.contains("sweep-89ab") && error.contains("sweep-cdef"), "{error}");
    }

    #[test]
    fn runs_have_several_names() {
        let results = tempfile::tempdir().expect("a folder");
        let runs = ["a/0123", "a/0199", "b/4567", "published/a/89ab", "published/b/89ef", "published/c/cdef"];
        write(results.path(), runs.map(|run| format!("{run}/tables/report.json")));
        std::fs::create_dir_all(results.path().join("b/unfinished")).expect("a run");
        let find = |name: &str| find_run(results.path(), Path::new(name));
        for (name, run) in [
            ("b", "b/4567"),
            ("012", "a/0123"),
            ("a/0199", "a/0199"),
            ("89a", "published/a/89ab"),
            ("a/8", "published/a/89ab"),
            ("c", "published/c/cdef"),
        ] {
            assert_eq!(find(name).expect(name), results.path().join(run));
        }
        assert_eq!(find_run(Path::new("none"), &results.path().join("b")).expect("b"), results.path().join("b/4567"));
        for (name, word) in [
            ("a", "0123"),
            ("0", "0199"),
            ("", "no finished run"),
            ("unfinished", "no finished run"),
            ("b/0", "no finished run"),
            ("../a", "no finished run"),
        ] {
            let error = find(name).expect_err(name).to_string();
            assert!(error.contains(word), "{error}");
        }
    }
}
