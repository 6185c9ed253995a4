//! Sweeps: many settings, one table.

use std::fs;
use std::path::PathBuf;

use crate::cli::common::{TINY, Workplace, contains, swept};

/// Two gammas and two seeds.
fn sweep() -> String {
    swept("gamma = [0.5, 1.0]\nseed = [3, 4]")
}

/// Returns the directories of the runs, and the directory of the sweep's tables.
fn folders(place: &Workplace, results: &str) -> (Vec<PathBuf>, PathBuf) {
    let entries = fs::read_dir(place.path(results).join("tiny")).expect("results");
    let mut all: Vec<PathBuf> = entries.map(|entry| entry.expect("entry").path()).collect();
    all.sort();
    let (sweeps, runs): (Vec<PathBuf>, Vec<PathBuf>) = all
        .into_iter()
        .partition(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("sweep-")));
    assert_eq!(sweeps.len(), 1, "{sweeps:?}");
    (runs, sweeps[0].clone())
}

#[test]
fn a_sweep_shares_what_does_not_change_and_ends_in_one_table() {
    let place = Workplace::new(&sweep());
    let text = place.succeeds("run config.toml --results one --threads 2");
    let (runs, folder) = folders(&place, "one");
    assert_eq!(runs.len(), 4, "{runs:?}");
    contains(&text, &["SIMULATION", "4 runs", "gamma", "tau = 0.8, ours", "sweep-"]);

    // Two seeds give two ensembles. Each was trained once, and its record is in the two runs that use it.
    let records = runs.iter().map(|run| fs::read(run.join("stages/teachers/stage.json")).expect("a record"));
    let mut records: Vec<Vec<u8>> = records.collect();
    records.sort();
    records.dedup();
    assert_eq!(records.len(), 2, "teachers were trained more than once");

    // One line for each gamma and row, with the seeds combined.
    let read = |name: &str| fs::read_to_string(folder.join(name)).expect(name);
    let (csv, report_text, markdown) = (read("sweep.csv"), read("sweep.json"), read("sweep.md"));
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 1 + 2 * 4, "{csv}");
    assert!(lines[0].starts_with("gamma,row,ε data-independent"), "{csv}");
    assert!(lines[1].starts_with("0.5,Non-private,") && lines[5].starts_with("1.0,Non-private,"), "{csv}");
    let report: serde_json::Value = serde_json::from_str(&report_text).expect("json");
    let settings: Vec<String> =
        report["settings"].as_array().expect("settings").iter().map(|s| s["values"].to_string()).collect();
    assert_eq!(settings, ["[\"0.5\",\"3\"]", "[\"0.5\",\"4\"]", "[\"1.0\",\"3\"]", "[\"1.0\",\"4\"]"]);

    // A sweep that reuses results gives the same bytes, and a setting is the run of its own config.
    place.succeeds("run config.toml --results one");
    for (name, before) in [("sweep.csv", csv), ("sweep.json", report_text), ("sweep.md", markdown)] {
        assert_eq!(read(name), before, "{name}");
    }
    place.write("alone.toml", TINY.replace("repeats = 2", "repeats = 1"));
    let alone = "run alone.toml --results alone --set noise.gamma=0.5 --set seed=4";
    place.succeeds(&alone);
    let alone = place.run_folder("alone", "tiny");
    let swept = place.path("one/tiny").join(alone.file_name().expect("an id"));
    for name in ["table.md", "table.json"] {
        let [one, other] = [&swept, &alone].map(|run| fs::read(run.join("tables").join(name)).expect(name));
        assert_eq!(one, other, "{name}");
    }
}

#[test]
fn bad_sweeps_and_dry_runs() {
    let place = Workplace::new(&sweep());
    let plan = place.succeeds("run config.toml --dry-run");
    assert!(plan.contains("4 runs") && plan.contains("gamma = 0.5, seed = 4"), "{plan}");
    let plans = place.json("run config.toml --dry-run --json");
    let plans = plans.get("settings").unwrap_or(&plans);
    assert_eq!(plans.as_array().map(Vec::len), Some(4));
    assert!(!place.path("results").exists(), "a dry run wrote something");
    place.fails("run config.toml --force votes", 2, &["--force votes", "4 runs"]);

    let bad = |from: &str, to: &str, words: &[&str]| {
        place.write("bad.toml", sweep().replace(from, to));
        place.fails("run bad.toml", 2, words);
    };
    bad("gamma = [0.5, 1.0]", "gamma = 0.5", &["bad.toml:", "`sweep.gamma`", "a list of values"]);
    bad("gamma = [0.5, 1.0]", "gamma = [0.5, -1.0]", &["[sweep], gamma = -1.0", "`noise.gamma`"]);
    bad("gamma = [0.5, 1.0]", "teachers = [5, 100000]", &["[sweep], teachers = 100000"]);
}
