//! Inputs of tests that take long to make, such as keys and finished runs: made once for a build, and kept on disk for all
//! processes that run its tests. Not for programs.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// Returns the folder `name`, which `make` fills once for each build of `program`. It is read-only by agreement: a test that
/// changes files copies them first.
///
/// The folder is beside the program, in `fixtures`. Processes that need it at the same time wait for the one that makes it.
/// Folders of earlier builds of the program are removed.
pub fn fixture(program: &Path, name: &str, make: impl FnOnce(&Path)) -> PathBuf {
    let built = fs::metadata(program).expect("the program exists");
    let age = built.modified().expect("a time").duration_since(UNIX_EPOCH).expect("a time after 1970");
    let stem = program.file_stem().and_then(|stem| stem.to_str()).expect("a name");
    let all = program.parent().expect("a folder").join("fixtures").join(stem);
    fs::create_dir_all(&all).expect("a folder");
    let lock = File::create(all.join(format!("{name}.lock"))).expect("a lock");
    lock.lock().expect("a lock");

    let place = all.join(format!("{name}-{:x}-{:x}", age.as_nanos(), built.len()));
    if place.is_dir() {
        return place;
    }
    let of_name = |path: &PathBuf| path.is_dir() && file_name(path).rsplitn(3, '-').last() == Some(name);
    for earlier in fs::read_dir(&all).expect("a folder").map(|entry| entry.expect("an entry").path()).filter(of_name) {
        fs::remove_dir_all(earlier).expect("an earlier build's folder");
    }
    let unfinished = all.join(format!("{name}.making"));
    let _ = fs::remove_dir_all(&unfinished);
    fs::create_dir(&unfinished).expect("a folder");
    make(&unfinished);
    fs::rename(&unfinished, &place).expect("a finished folder");
    place
}

/// Returns [`fixture`] for the test that runs.
pub fn fixture_of_this_test(name: &str, make: impl FnOnce(&Path)) -> PathBuf {
    fixture(&std::env::current_exe().expect("a program"), name, make)
}

/// Returns whether tests try everything, as `.ci/nightly` asks for with the variable SPEED_EXHAUSTIVE, instead of an example
/// of each kind.
pub fn exhaustive() -> bool {
    std::env::var_os("SPEED_EXHAUSTIVE").is_some()
}

/// Returns a number of draws of a statistical test: four times as many if tests are exhaustive. The test states the rate of
/// false alarms, which must not depend on the number.
pub fn draws(few: usize) -> usize {
    if exhaustive() { 4 * few } else { few }
}

/// Copies a folder's files and folders into `to`, which may exist. An evaluation key, of 100 MB, is a link to the same file: a test that
/// changes it writes another file.
pub fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for path in fs::read_dir(from).expect("a folder").map(|entry| entry.expect("an entry").path()) {
        let there = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy_folder(&path, &there);
        } else if file_name(&path) != "evaluation.key" || fs::hard_link(&path, &there).is_err() {
            fs::copy(&path, &there).expect("a copy");
        }
    }
}

fn file_name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fixture_is_made_once_for_a_build() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let program = folder.path().join("program");
        fs::write(&program, "first").expect("a program");
        let make = |text: &str| {
            let place = fixture(&program, "text", |place| fs::write(place.join("text"), text).expect("a file"));
            fs::read_to_string(place.join("text")).expect("a file")
        };
        assert_eq!((make("one"), make("two")), ("one".into(), "one".into()));
        fs::write(&program, "another build").expect("a program");
        assert_eq!(make("three"), "three");
        let left = fs::read_dir(folder.path().join("fixtures/program")).expect("a folder").count();
        assert_eq!(left, 2, "the folder and its lock");
    }
}
