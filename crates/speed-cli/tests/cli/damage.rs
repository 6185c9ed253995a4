//! Files of a finished run that are emptied, cut or removed: the work is repeated with the same bytes, or the error names
//! the file.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use speed_core::fixture::{copy_folder, exhaustive};

use crate::cli::budget::{self, RUN, charged};
use crate::cli::common::{Workplace, determined, encrypted, entries};

/// A tiny run with every kind of stage, one student of each method.
fn config() -> String {
    let fewer = encrypted().replace("repeats = 2", "repeats = 1").replace("count = 4", "count = 2");
    fewer
        .replace("teachers = 5", "teachers = 3")
        .replace("[[row]]\nname = \"Trusted\"\naggregation = \"trusted\"\n\n", "")
        .replace("honest_ratio = 0.8", "honest_ratio = 0.7")
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in entries(folder) {
        if entry.is_dir() { found.extend(files(&entry)) } else { found.push(entry) }
    }
    found.sort();
    found
}

const DAMAGES: [&str; 3] = ["emptied", "cut", "removed"];

/// Returns the damages to try: one file of each name, a number in it aside, in one way each. With SPEED_EXHAUSTIVE
/// (.ci/nightly) every file in every way.
fn damages(files: impl Iterator<Item = PathBuf>) -> Vec<(PathBuf, &'static str)> {
    let files: Vec<PathBuf> = files.collect();
    if exhaustive() {
        return files.iter().flat_map(|file| DAMAGES.map(|how| (file.clone(), how))).collect();
    }
    let role = |file: &PathBuf| {
        let name = file.file_name().expect("a name").to_string_lossy().into_owned();
        name.chars().filter(|c| !c.is_ascii_digit()).collect::<String>()
    };
    let mut roles = BTreeSet::new();
    let one_of_each = files.into_iter().filter(|file| roles.insert(role(file)));
    one_of_each.enumerate().map(|(place, file)| (file, DAMAGES[place % 3])).collect()
}

fn damage(file: &Path, how: &str) {
    match how {
        "emptied" => fs::write(file, "").expect("emptied"),
        "cut" => {
            let bytes = fs::read(file).expect("read");
            fs::write(file, &bytes[..bytes.len() / 2]).expect("cut");
        }
        _ => fs::remove_file(file).expect("removed"),
    }
}

/// Returns a run's output without times, paths and notes about repeated stages.
fn shown(text: &str) -> String {
    let no_time = |line: &&str| !line.starts_with("All columns");
    text.lines().filter(no_time).map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ") + "\n").collect()
}

/// Everything that config and seed determine, with the accuracies by epoch.
fn results(run: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut results = determined(run);
    results.insert("epochs".into(), fs::read(run.join("tables/epochs.csv")).expect("a table"));
    results
}

/// Checks a command on damaged files: its output is unchanged, or one line names the file without a parser's jargon, or the run without
/// its report counts as unfinished.
#[track_caller]
fn holds(place: &Workplace, arguments: &str, expected: &str, name: &str, what: &str) {
    let output = place.speed(arguments);
    let said = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert!(!said.contains("EOF") && !said.contains("panicked"), "{what}: {said}");
    if output.status.success() {
        let text = String::from_utf8_lossy(&output.stdout);
        let resumes = text.contains("\nstopped, ") && text.contains("`speed run` with the same config resumes it");
        let is_unfinished = what.ends_with("/report.json removed") && resumes;
        let is_fine = shown(&text) == expected || text.contains(name) || is_unfinished;
        assert!(is_fine, "{what}: {text}\nexpected:\n{expected}");
    } else {
        assert!(said.contains(name), "{what}: {name} is not named: {said}");
        assert!(matches!(output.status.code(), Some(4 | 5)), "{what}: {said}");
    }
}

/// Damages files of a finished run, one after another, and uses the run after each.
fn damaged(config: &str, is_of: impl Fn(&str) -> bool) {
    let place = Workplace::finished(config);
    fs::rename(place.path("results"), place.path("good")).expect("a rename");
    let good = place.run_folder("good", "tiny");
    let expected = results(&good);
    let id = good.file_name().expect("an id").to_str().expect("text").to_owned();
    let run = place.path("results/tiny").join(&id);
    let anew = || {
        let _ = fs::remove_dir_all(place.path("results"));
        copy_folder(&place.path("good"), &place.path("results"));
    };
    anew();
    let lines = [format!("show {id}"), format!("compare {id} --paper"), "list".to_owned()];
    let outputs = lines.each_ref().map(|line| shown(&place.succeeds(line)));
    let chosen = files(&good).into_iter().filter(|file| {
        let relative = file.strip_prefix(&good).expect("below").to_str().expect("text");
        is_of(relative) && fs::metadata(file).expect("a file").len() > 0
    });
    let mut tried = 0;
    for (file, how) in damages(chosen) {
        let relative = file.strip_prefix(&good).expect("below").to_str().expect("text");
        let name = file.file_name().expect("a name").to_str().expect("text");
        let what = format!("{relative} {how}");
        anew();
        damage(&run.join(relative), how);
        for (line, expected) in lines.iter().zip(&outputs) {
            holds(&place, line, expected, name, &format!("{line}, {what}"));
        }
        let output = place.speed("run config.toml");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!said.contains("EOF") && !said.contains("panicked"), "run, {what}: {said}");
        if output.status.success() {
            let found = results(&run);
            assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>(), "run, {what}");
            assert!(found == expected, "run, {what}: other bytes");
        } else {
            assert!(said.contains(name) && output.status.code() == Some(4), "run, {what}: {said}");
        }
        tried += 1;
    }
    assert!(tried > 2, "{tried}");
}

#[test]
fn files_of_the_tables_and_of_short_stages() {
    damaged(&config().replace("encrypted", "trusted"), |file| {
        !file.contains("/aggregate-tau") && !file.contains("/teachers/")
    });
}

#[test]
fn files_of_the_encrypted_labels() {
    damaged(&config(), |file| file.contains("/aggregate-tau"));
}

#[test]
fn files_of_the_teachers() {
    damaged(&config().replace("encrypted", "trusted"), |file| {
        file.contains("/teachers/") && !file.contains("teacher-0001") && !file.contains("teacher-0002")
    });
}

/// A damaged file beside answers with real noise does not repeat them: the error names the file, and nothing is charged.
#[test]
fn files_beside_charged_answers_are_named() {
    let place = Workplace::finished(&budget::encrypted());
    let run = place.run_folder("results", "real");
    let beside = files(&run).into_iter().filter(|file| file.ends_with("times.json") || file.ends_with("charged"));
    let mut tried = 0;
    for (file, how) in damages(beside) {
        let good = fs::read(&file).expect("a file");
        damage(&file, how);
        let name = file.file_name().and_then(|name| name.to_str()).expect("a name");
        let folder = file.parent().and_then(Path::file_name).and_then(|name| name.to_str()).expect("a stage");
        place.fails(&RUN, 4, &[folder, name]);
        fs::write(&file, &good).expect("put back");
        tried += 1;
    }
    place.succeeds(&RUN);
    assert_eq!((charged(&place), tried), (16, if exhaustive() { 18 } else { 2 }));
}

#[test]
fn a_page_names_a_damaged_file() {
    let place = Workplace::finished(&config());
    let run = place.run_folder("results", "tiny");
    let page = place.succeeds("show tiny --html");
    let read = ["queries.json", "queries.png", "metrics.csv", "digits.png"];
    let read = files(&run).into_iter().filter(|file| read.iter().any(|name| file.ends_with(name)));
    for (file, how) in damages(read.filter(|file| !file.to_string_lossy().contains("/teachers/"))) {
        let good = fs::read(&file).expect("a file");
        let name = file.file_name().and_then(|name| name.to_str()).expect("a name");
        damage(&file, how);
        let said = String::from_utf8(place.speed("show tiny --html").stderr).expect("text");
        assert!(said.contains(name), "{} {how}: {said}", file.display());
        fs::write(&file, good).expect("put back");
    }
    assert_eq!(place.succeeds("show tiny --html"), page);
}
