//! Sweeps: many settings, one table.

use std::fs;
use std::path::PathBuf;

use serde_json::json;

use crate::cli::common::{TINY, Workplace, contains, entries, has, sweep_folder, swept};

#[test]
fn a_sweep_shares_what_does_not_change_and_ends_in_one_table() {
    let place = Workplace::new(&swept("gamma = [0.5, 1.0]\nseed = [3, 4]"));
    contains(&place.succeeds("run config.toml --dry-run"), &["4 runs", "gamma = 0.5, seed = 4"]);
    let text = place.succeeds("run config.toml --results one --threads 2");
    let folder = sweep_folder(&place.path("one/tiny"));
    let runs: Vec<PathBuf> = entries(&place.path("one/tiny")).into_iter().filter(|path| *path != folder).collect();
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
    let values = [["0.5", "3"], ["0.5", "4"], ["1.0", "3"], ["1.0", "4"]].map(|values| json!({ "values": values }));
    has(&serde_json::from_str(&report_text).expect("json"), &json!({ "settings": values }));

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
