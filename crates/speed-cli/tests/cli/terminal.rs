//! Terminal output: tables that fit, progress, and references to the files with the rest.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::cli::common::{TINY, Workplace, contains, encrypted};

/// Runs the binary as in a terminal with this number of columns.
fn in_columns(place: &Workplace, columns: &str, arguments: &str) -> String {
    let output = place.command(arguments).env("COLUMNS", columns).output().expect("the binary starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn tables_fit_the_terminal_and_files_do_not_depend_on_it() {
    let place = Workplace::finished(&encrypted());
    let run = place.run_folder("results", "tiny");
    for columns in [40_usize, 80, 100] {
        let shown = in_columns(&place, &columns.to_string(), "show tiny");
        let fits = |line: &str| line.chars().count() <= columns || !line.trim().contains(' ');
        assert!(shown.lines().all(fits), "{columns}: {shown}");
        contains(&shown, &["data-independent", "labels", "4/4", "tables/table.md", "tables/report.md", "students.svg"]);
        // Values that must not be published are only in the files, and the legend is shown on request.
        assert!(!shown.contains("data-dependent") && !shown.contains("Algorithm 1"), "{shown}");
    }
    let legend = in_columns(&place, "80", "show tiny --legend");
    assert!(legend.contains("Algorithm 1") && legend.contains("ε data-dependent"), "{legend}");

    let table = fs::read_to_string(run.join("tables/table.md")).expect("a table");
    let head = table.lines().next().expect("a head");
    let (before, after) = head.split_once("ε data-independent").expect("a column");
    assert!(!before.contains("ε data-dependent") && after.contains("ε data-dependent"), "{head}");
    assert!(!head.contains("paper %") && !head.contains("ε paper |"), "columns without a value: {head}");
}

#[test]
fn help_fits_eighty_columns() {
    let place = Workplace::new(TINY);
    for arguments in ["--help", "-h", "--version", "run -h", "show --help"] {
        let help = in_columns(&place, "80", arguments);
        assert!(help.lines().all(|line| line.chars().count() <= 80), "{help}");
    }
    let help = in_columns(&place, "80", "--help");
    assert!(help.contains("  speed list                            all runs\n"), "{help}");
}

#[test]
fn a_run_is_watched_by_another_process_until_it_ends() {
    let place = Workplace::finished(TINY);
    fs::rename(place.path("results"), place.path("other")).expect("a rename");
    let endless = "run config.toml --set student.epochs=1000000";
    let mut command = place.command(endless);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the binary starts");
    let now = || {
        let shown: Value = serde_json::from_slice(&place.speed("show tiny --json").stdout).unwrap_or_default();
        shown["runs"][0].clone()
    };
    let started = Instant::now();
    let mut status = now();
    while status["work"]["unit"] != "epochs" || status["work"]["done"] == 0 {
        assert!(started.elapsed() < Duration::from_secs(300), "{status}");
        std::thread::sleep(Duration::from_millis(100));
        status = now();
    }
    assert_eq!(status["state"], "running");
    place.fails(endless, 4, &["another `speed` works in this folder"]);
    let stages = status["stages"].as_array().expect("stages");
    let state = |name: &str| stages.iter().find(|stage| stage["name"] == name).map(|stage| stage["state"].clone());
    assert_eq!([state("teachers"), state("student")], [Some("done".into()), Some("running".into())]);
    let part = &status["work"]["parts"][0];
    assert!(part["name"] == "student" && part["unit"] == "epoch" && part["done"].as_u64() > Some(0), "{status}");
    let shown = place.succeeds("show tiny");
    // Students train concurrently, so any of them may finish an epoch first.
    assert!(shown.contains(" of 6, epoch ") && shown.contains("stages done: "), "{shown}");

    let watching = place.command("show tiny --follow").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut watching = watching.expect("the binary starts");
    let mut said = BufReader::new(watching.stderr.take().expect("a pipe")).lines().map_while(Result::ok);
    assert!(said.any(|line| line.contains(" of 6, epoch ")));
    child.kill().expect("kill -9");
    child.wait().expect("ended");
    let watched = watching.wait_with_output().expect("ended");
    let end = String::from_utf8_lossy(&watched.stdout);
    assert!(watched.status.success(), "{:?}", said.collect::<Vec<_>>());
    assert!(end.contains("\nstopped, ") && end.contains("no process works on"), "{end}");

    let other = place.run_folder("other", "tiny");
    assert!(!other.join("progress.json").exists());
    let table = place.succeeds("show tiny --results other");
    assert_eq!(place.succeeds("show tiny --follow --results other"), table);
    place.fails("show tiny --html", 4, &["the run is not finished"]);
    place.fails("show nothing --follow", 4, &["no run of this name"]);
}
