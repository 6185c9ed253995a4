//! Comparisons of runs with each other and with the paper.

use std::fs;
use std::path::Path;

use crate::cli::common::{Workplace, contains, entries};

/// True labels instead of votes, and two small students: a very short run.
const SMALL: &str = r#"
name = "small"
seed = 3
data = { train_images = 10, test_images = 150, pool_images = 100 }
ensemble = { teachers = 2 }
votes = { source = "truth" }
queries = { count = 20 }
student = { epochs = 2, batch = 20 }
table = { repeats = 2 }
row = [
    { name = "Non-private", aggregation = "non-private", paper_accuracy = 96.22, paper_deviation = 2.27 },
]
"#;

/// The directory of published results, whose runs are found by their ids anywhere in it.
const PUBLISHED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../results");

#[test]
fn two_runs_and_the_paper() {
    let place = Workplace::finished(SMALL);
    let first = place.run_folder("results", "small");
    place.succeeds("run config.toml --set seed=4 --set student.epochs=3");
    let first = first.to_str().expect("a path");
    let second = {
        let runs = entries(&place.path("results/small")).into_iter();
        runs.filter(|run| run.is_dir()).find(|run| run != Path::new(first)).expect("a second run")
    };
    let second = second.file_name().expect("a name").to_str().expect("an id");

    let json = place.json(&["compare", first, &second[..8], "--paper", "--json"]);
    assert_eq!((&json["schema"], &json["runs"][2]["label"]), (&1.into(), &"paper".into()));
    let keys: Vec<&str> =
        json["settings"].as_array().expect("settings").iter().filter_map(|s| s["key"].as_str()).collect();
    assert_eq!(keys, ["seed", "student.epochs"]);
    let figures = json["rows"][0]["figures"].as_array().expect("figures");
    let students = figures.iter().find(|line| line["figure"] == "student_percent").expect("students");
    let [a, b] = [0, 1].map(|run| students["values"][run]["value"].as_f64().expect("a mean"));
    let welch = &students["differences"][1];
    assert!((welch["difference"].as_f64().expect("a difference") - (b - a)).abs() < 1e-9, "{students}");
    assert!(welch["interval"][0].as_f64() <= welch["interval"][1].as_f64(), "{students}");
    assert_eq!(students["values"][2]["value"], 96.22);

    let text = place.succeeds(&format!("compare {first} {second} --paper"));
    contains(&text, &["student.epochs", "Row Non-private", "B - A", "paper - A", "96.22 ± 2.27", "private"]);
    assert!(place.succeeds(&format!("compare {first} {second} --markdown")).contains("## Row Non-private"));

    place.fails(&format!("compare {first}"), 2, &["--paper"]);
    place.fails("compare small", 4, &["small", "2 runs of this name", second]);
    place.fails("compare small --paper", 4, &["small", "2 runs of this name", second]);
    place.fails(&format!("compare {first} nothing"), 4, &["nothing", "no finished run", "results", "speed list"]);
}

#[test]
fn published_runs_and_the_paper() {
    let place = Workplace::new("");
    let text = place.succeeds(&["compare", "7464472b0140", "f109de3cbcaf", "--results", PUBLISHED, "--paper"]);
    contains(
        &text,
        &[
            "student.epochs",
            "Row tau = 0.7",
            "96.90 ± 1.15 (3)",
            "97.43 ± 0.93 (3)",
            "96.06 ± 2.61",
            "other claim",
            "SIMULATION",
        ],
    );
}

#[test]
fn hostile_reports_are_refused_with_one_message() {
    let place = Workplace::new("");
    let tables = place.path("bad/tables");
    fs::create_dir_all(&tables).expect("a folder");
    let report = tables.join("report.json");
    let refused = |words: &[&str]| place.fails("compare bad --paper", 4, words);
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let big = "{\"schema\": 1, \"experiment\": \"x\", \"run\": \"y\", \"simulation\": true, \"config\": 1e999}";
    for text in ["", "null", deep.as_str(), big] {
        fs::write(&report, text).expect("a report");
        refused(&["bad/tables/report.json", "not a report that this version wrote"]);
    }
    fs::File::create(&report).and_then(|file| file.set_len(65 << 20)).expect("a sparse file");
    refused(&["at most 67108864 bytes", "found 68157440"]);
    fs::remove_file(&report).expect("removed");
    fs::create_dir(&report).expect("a folder");
    refused(&["report.json", "it is not a regular file"]);
}
