//! Output for programs: every output with `--json`, errors, and progress.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::cli::bad_input::npy;
use crate::cli::budget::REAL;
use crate::cli::common::{TINY, Workplace, encrypted, entries};

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
    let json = |arguments: &str| documented(&place.succeeds(&format!("{arguments} --json")));
    let plan = json("run config.toml --dry-run");
    assert_eq!(plan["stages"][0], serde_json::json!({ "name": "data", "done": true }));
    assert_eq!((&plan["students"][1]["method"], &plan["students"][1]["epochs"]), (&"pseudo-labels".into(), &4.into()));
    let report = json("run config.toml");
    // No figure of the paper was given, so the fields are null; 0.0 would be a figure.
    for figure in ["epsilon", "accuracy", "deviation", "minutes"] {
        assert!(report["rows"][0]["paper"][figure].is_null(), "{}", report["rows"][0]["paper"]);
    }
    let list = json("list");
    assert_eq!((&list["runs"][0]["finished"], &list["runs"][0]["noise"]), (&true.into(), &"simulation".into()));
    assert_eq!(json("show tiny"), report);
    place.succeeds("run config.toml --results begun --stage data");
    let begun = json("show tiny --results begun");
    assert_eq!(
        (&begun["runs"][0]["state"], &begun["runs"][0]["stages"][0]["state"]),
        (&"stopped".into(), &"done".into())
    );
    npy(&place.path("image.npy"), "1, 28, 28", &[0; 784]);
    let id = report["run"].as_str().expect("an id");
    let model = format!("results/tiny/{id}/models/non-private/student-0.safetensors");
    documented(&place.succeeds(&format!("predict --model {model} image.npy --format json")));
    json(&format!("export --model {model} --out model.onnx"));
    json(&format!("compare {id} {id}"));
    let swept = REAL.replace("operating-system", "simulation");
    place.write("swept.toml", format!("{swept}\n[sweep]\nseed = [3, 4]\n"));
    json("run swept.toml --dry-run");
    json("run swept.toml");

    // Reports of other versions are refused by name.
    let mut runs = entries(&place.path("results/real")).into_iter();
    let sweep = runs.find(|path| path.join("sweep.json").exists()).expect("a sweep");
    for (folder, name) in [(place.path("results/tiny").join(id), "tables/report.json"), (sweep, "sweep.json")] {
        let path = folder.join(name);
        let mut other: Value = serde_json::from_slice(&fs::read(&path).expect("a report")).expect("JSON");
        assert_eq!(other["schema"], 1);
        for (schema, found) in [(serde_json::json!(2), "found format 2"), (Value::Null, "a file without a format")] {
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
fn errors_are_objects_with_the_option_json() {
    let place = Workplace::new(TINY);
    for (arguments, code, kind) in [
        ("show nothing", 4, "results"),
        ("show", 2, "config"),
        ("run config.toml --set noise.gamma=-1", 2, "config"),
        ("ledger show nothing", 3, "input"),
    ] {
        let output = place.speed(&format!("{arguments} --json"));
        assert_eq!(output.status.code(), Some(code));
        assert!(output.stdout.is_empty());
        let said = String::from_utf8(output.stderr).expect("text");
        let error = documented(said.lines().last().expect("a line"));
        assert_eq!((error["error"]["code"].as_i64(), error["error"]["kind"].as_str()), (Some(code.into()), Some(kind)));
        assert!(error["error"]["message"].as_str().is_some_and(|message| message.len() > 10), "{error}");
    }
    // `--json` after `--` is not an option.
    let output = place.speed("show -- --json");
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("error: "));
}

#[test]
fn progress_in_json_is_one_object_per_line() {
    let place = Workplace::new(TINY);
    let output = place.speed("run config.toml --log-format json --set table.repeats=0");
    assert!(output.status.success());
    let said = String::from_utf8(output.stderr).expect("text");
    let events: Vec<Value> = said.lines().map(documented).collect();
    let of = |event: &str| events.iter().filter(|object| object["event"] == event).collect::<Vec<_>>();
    let times: Vec<f64> = events.iter().map(|object| object["seconds"].as_f64().expect("a time")).collect();
    assert!(times.is_sorted(), "{times:?}");
    assert_eq!(events.last().map(|object| &object["event"]), Some(&"finished".into()));
    assert!(of("stage-started").iter().any(|object| object["stage"] == "teachers"));
    assert!(of("stage-done").iter().any(|object| object["stage"] == "teachers" && object["done_already"] == false));
    let progress = of("progress");
    let teachers = progress.iter().find(|object| object["unit"] == "teachers").expect("teachers");
    assert_eq!((&teachers["stage"], &teachers["total"]), (&"teachers".into(), &5.into()));

    let output = place.speed("run config.toml --log-format json --set noise.gamma=-1");
    let said = String::from_utf8(output.stderr).expect("text");
    let error = documented(said.trim());
    assert_eq!((output.status.code(), &error["event"], &error["code"]), (Some(2), &"error".into(), &2.into()));
}
