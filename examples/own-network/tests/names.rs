//! Configs train the custom networks by their names, through the command line.

use std::process::{Command, Output};

fn speed(arguments: &[&str], folder: &std::path::Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_own-network"));
    command.args(arguments).current_dir(folder).output().expect("the program starts")
}

#[test]
fn a_config_trains_both_by_their_names() {
    let (folder, config) =
        (tempfile::tempdir().expect("a folder"), concat!(env!("CARGO_MANIFEST_DIR"), "/config.toml"));
    let output = speed(&["run", config], folder.path());
    let (table, log) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{log}");
    assert!(table.contains("labels only") && table.contains("ours"), "{table}");

    // The teachers have learned: chance would be a tenth of the labels.
    let labels = folder.path().join("results/own-network");
    let run = std::fs::read_dir(labels).expect("results").map(|entry| entry.expect("an entry").path());
    let run = run.filter(|path| path.is_dir()).next().expect("a run");
    let report = std::fs::read_to_string(run.join("tables/report.json")).expect("a report");
    let report: serde_json::Value = serde_json::from_str(&report).expect("json");
    assert_eq!([&report["rows"][0]["method"], &report["rows"][1]["method"]], ["labels-only", "pseudo-labels"]);
    for row in 0..2 {
        let row = &report["rows"][row];
        assert!(row["label_accuracy"].as_f64().is_some_and(|accuracy| accuracy > 0.7), "{row}");
        assert!(row["student_mean"].as_f64().is_some_and(|accuracy| accuracy > 0.4), "{row}");
    }

    // A finished run is not repeated, also with custom names.
    let again = speed(&["run", config], folder.path());
    assert!(String::from_utf8_lossy(&again.stderr).contains("teachers: done already"));
    assert_eq!(again.stdout, output.stdout);
}

#[test]
fn an_unknown_name_is_refused_with_the_known_ones() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = concat!(env!("CARGO_MANIFEST_DIR"), "/config.toml");
    let output = speed(&["run", config, "--set", "teacher.architecture=large"], folder.path());
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(["`small`", "`reference`", "`deeper`", "`strided`"].iter().all(|name| message.contains(name)), "{message}");
}
