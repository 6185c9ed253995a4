//! Comparisons of runs with each other and with the paper.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::cli::common::{Workplace, contains, entries, has, read_json};

/// True labels instead of votes, and two small students: a very short run.
pub(crate) const SMALL: &str = r#"
name = "small"
seed = 3
data = { train_images = 10, test_images = 150, pool_images = 100 }
ensemble = { teachers = 2 }
votes = { source = "truth" }
queries = { count = 20 }
student = { epochs = 2, epoch_images = 0 }
table = { repeats = 2 }
row = [
    { name = "Non-private", aggregation = "non-private", paper_accuracy = 96.22, paper_deviation = 2.27 },
]
"#;

#[test]
fn two_runs_and_the_paper() {
    let place = Workplace::finished(SMALL);
    let first = place.run_folder("results", "small");
    assert_eq!(read_json(&first.join("stages/aggregate-non-private/aggregate.json"))["label_accuracy"], 1.0);
    let report = fs::read_to_string(first.join("tables/report.md")).expect("a report");
    assert!(report.contains("True labels of") && !report.contains("teachers ("), "{report}");
    place.succeeds("run config.toml --set seed=4 --set student.epochs=3");
    let first = first.to_str().expect("a path");
    let runs = entries(&place.path("results/small")).into_iter();
    let second = runs.filter(|run| run.is_dir()).find(|run| run != Path::new(first)).expect("a second run");
    let second = second.file_name().expect("a name").to_str().expect("an id");

    let json = place.json(&["compare", first, &second[..8], "--paper", "--json"]);
    let settings = json!([{ "key": "seed" }, { "key": "student.epochs" }]);
    has(&json, &json!({ "schema": 1, "runs": [{}, {}, { "label": "paper" }], "settings": settings }));
    let text = place.succeeds(&format!("compare {first} {second} --paper"));
    contains(&text, &["student.epochs", "Row Non-private", "B - A", "paper - A", "96.22 ± 2.27", "private"]);
    assert!(place.succeeds(&format!("compare {first} {second} --markdown")).contains("## Row Non-private"));

    place.fails(&format!("compare {first}"), 2, &["--paper"]);
    place.fails("compare small", 4, &["small", "2 runs of this name", second]);
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
