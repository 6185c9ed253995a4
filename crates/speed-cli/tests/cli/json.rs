//! Output for programs: every output with `--json`, errors, and progress.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};

use crate::cli::bad_input::npy;
use crate::cli::budget::REAL;
use crate::cli::common::{TINY, Workplace, encrypted, has, read_json, sweep_folder};

const DOCUMENTED: &str = include_str!("../../../../docs/json.md");

/// Adds the names of all fields of a value. Fields of a config are documented with the configs.
fn fields(value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                names.insert(name.clone());
                if name != "config" && name != "curves" {
                    fields(value, names);
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| fields(value, names)),
        _ => {}
    }
}

/// Checks that an output has its version first, and that every field of it is documented.
#[track_caller]
pub(crate) fn documented(text: &str) -> Value {
    assert!(text.trim_start_matches(['{', '\n', ' ']).starts_with("\"schema\":"), "{text}");
    let value: Value = serde_json::from_str(text).expect("JSON");
    assert_eq!(value["schema"], 1);
    let mut names = BTreeSet::new();
    fields(&value, &mut names);
    let missing: Vec<&String> = names.iter().filter(|name| !DOCUMENTED.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "not in docs/json.md: {missing:?}");
    value
}

#[test]
fn outputs_of_runs_have_a_version_and_are_documented() {
    let place = Workplace::finished(&encrypted());
    let json_of = |arguments: &str| documented(&place.succeeds(&format!("{arguments} --json")));
    let plan = json_of("run config.toml --dry-run");
    has(&plan["stages"][0], &json!({ "name": "data", "done": true }));
    has(&plan["students"][1], &json!({ "method": "pseudo-labels", "epochs": 4 }));
    let report = json_of("run config.toml");
    // No figure of the paper was given, so the fields are null; 0.0 would be a figure.
    let paper = json!({ "epsilon": null, "accuracy": null, "deviation": null, "minutes": null });
    has(&report["rows"][0], &json!({ "paper": paper }));
    has(&json_of("list"), &json!({ "runs": [{ "finished": true, "noise": "simulation" }] }));
    assert_eq!(json_of("show tiny"), report);
    place.succeeds("run config.toml --results begun --stage data");
    let begun = json_of("show tiny --results begun");
    has(&begun, &json!({ "runs": [{ "state": "stopped" }] }));
    has(&begun["runs"][0]["stages"][0], &json!({ "state": "done" }));
    npy(&place.path("image.npy"), "1, 28, 28", &[0; 784]);
    let id = report["run"].as_str().expect("an id");
    let model = format!("results/tiny/{id}/models/non-private/student-0.safetensors");
    documented(&place.succeeds(&format!("predict --model {model} image.npy --format json")));
    json_of(&format!("export --model {model} --out model.onnx"));
    json_of(&format!("compare {id} {id}"));
    let swept = REAL.replace("operating-system", "simulation");
    place.write("swept.toml", format!("{swept}\n[sweep]\nseed = [3, 4]\n"));
    assert_eq!(json_of("run swept.toml --dry-run")["settings"].as_array().map(Vec::len), Some(2));
    json_of("run swept.toml");

    // Reports of other versions are refused by name.
    let sweep = sweep_folder(&place.path("results/real"));
    for (folder, name) in [(place.path("results/tiny").join(id), "tables/report.json"), (sweep, "sweep.json")] {
        let path = folder.join(name);
        let mut other = read_json(&path);
        for (schema, found) in [(json!(2), "found format 2"), (Value::Null, "a file without a format")] {
            other["schema"] = schema;
            fs::write(&path, other.to_string()).expect("a report");
            place.fails(&format!("show {}", folder.display()), 4, &[name, found, "reads format 1"]);
        }
    }
}

#[test]
fn outputs_of_the_accountant_have_a_version_and_are_documented() {
    let place = Workplace::new(TINY);
    npy(&place.path("votes.npy"), "4, 3", &[200, 30, 20, 190, 40, 20, 10, 220, 20, 80, 90, 80]);
    for line in [
        "account --votes votes.npy",
        "account --any-votes --queries 4 --classes 3",
        "account --votes votes.npy --release --simulation 1",
        "calibrate --epsilon 5 --queries 10 --delta 1e-5",
        "calibrate --mechanism binomial --teachers 20 --epsilon 5 --queries 10 --delta 1e-5",
        "plan --teachers 20 --agreement 0.9 --classes 3 --queries 4 --mechanism binomial --coins 2",
        "plan --teachers 250 --votes votes.npy --mechanism gaussian --sigma 9",
        "audit --gamma 1 --runs 1000",
        "ledger create ledger --epsilon 7 --delta 1e-5",
        "ledger charge ledger --gamma 0.1 --queries 2",
        "ledger show ledger",
        "ledger check ledger",
        "figure gamma --votes votes.npy --delta 1e-5",
    ] {
        let noise = if line.starts_with("account") { "--gamma 0.1 --delta 1e-5" } else { "" };
        documented(&place.succeeds(&format!("{line} {noise} --json")));
    }
}

#[test]
fn progress_in_json_is_one_object_per_line() {
    let place = Workplace::new(TINY);
    let said = place.says("run config.toml --log-format json --set table.repeats=0");
    let events: Vec<Value> = said.lines().map(documented).collect();
    let of = |event: &str| events.iter().filter(|object| object["event"] == event).collect::<Vec<_>>();
    let times: Vec<f64> = events.iter().map(|object| object["seconds"].as_f64().expect("a time")).collect();
    assert!(times.is_sorted(), "{times:?}");
    assert_eq!(events.last().map(|object| &object["event"]), Some(&"finished".into()));
    assert!(of("stage-started").iter().any(|object| object["stage"] == "teachers"));
    assert!(of("stage-done").iter().any(|object| object["stage"] == "teachers" && object["done_already"] == false));
    let progress = of("progress");
    let teachers = progress.iter().find(|object| object["unit"] == "teachers").expect("teachers");
    has(teachers, &json!({ "stage": "teachers", "total": 5 }));

    let output = place.speed("run config.toml --log-format json --set noise.gamma=-1");
    let said = String::from_utf8(output.stderr).expect("text");
    let error = documented(said.trim());
    assert_eq!((output.status.code(), &error["event"], &error["code"]), (Some(2), &"error".into(), &2.into()));
}
