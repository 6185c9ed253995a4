//! Two rounds of questions: second questions where a row's first student and the labels of clusters disagree.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::cli::bad_input::npy;
use crate::cli::common::{Workplace, determined};

/// Three classes of noisy bars, nine clusters, and a small student. The noise is large enough for wrong labels.
const ROUNDS: &str = r#"
name = "rounds"
seed = 1
arithmetic = "portable"
[data]
source = "arrays"
folder = "arrays"
pool_images = 360
[ensemble]
teachers = 20
[votes]
source = "truth"
[queries]
count = 9
selection = "clusters"
groups = true
features = "pixels"
rounds = 2
again = 3
[noise]
mechanism = "skellam"
sigma = 8.0
source = "simulation"
[student]
method = "pseudo-labels"
[student.pseudo_labels]
epochs = 12
epoch_images = 640
warmup_epochs = 5
label_epochs = 10
convolutions = [4]
hidden = 16
[table]
repeats = 1
[[row]]
name = "clear text"
aggregation = "trusted"
[[row]]
name = "encrypted"
aggregation = "encrypted"
[[row]]
name = "same labels"
labels_of = "clear text"
"#;

/// The seed with which the noise gives one cluster a wrong label.
const WRONG: &str = "seed=2";

fn place(config: &str) -> Workplace {
    let place = Workplace::new(config);
    fs::create_dir_all(place.path("arrays")).expect("a folder");
    let mut state = 1_u64;
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u8::try_from(state >> 56).expect("a byte")
    };
    for (half, images) in [("train", 60), ("test", 480)] {
        let labels: Vec<u8> = (0..images).map(|image| image % 3).map(|label: u16| label as u8).collect();
        let pixels: Vec<u8> = labels
            .iter()
            .flat_map(|&label| (0..144).map(move |pixel| (pixel, label)))
            .map(|(pixel, label)| (random() / 3).saturating_add(150 * u8::from(pixel / 48 == label)))
            .collect();
        npy(&place.path(&format!("arrays/{half}_images.npy")), &format!("{images}, 12, 12"), &pixels);
        npy(&place.path(&format!("arrays/{half}_labels.npy")), &format!("{images},"), &labels);
    }
    place
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))).expect("json")
}

fn run<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    [&["run", "config.toml"], arguments].concat()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

/// The single directory of a stage of first or final students.
fn student(run: &Path, prefix: &str) -> PathBuf {
    let stages = fs::read_dir(run.join("stages")).expect("stages").map(|stage| stage.expect("an entry").path());
    let named = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix));
    let found: Vec<PathBuf> = stages.filter(named).collect();
    assert_eq!(found.len(), 1, "{found:?}");
    found[0].clone()
}

#[test]
fn a_second_question_corrects_a_wrong_label_and_every_figure_counts_it() {
    let place = place(ROUNDS);
    place.succeeds(&run(&["--results", "one", "--threads", "2", "--set", WRONG]));
    let folder = place.run_folder("one", "rounds");
    let asked = json(&folder.join("tables/queries.json"));
    let (truth, first) = (list(&asked["truth"]), list(&asked["rows"][0]["labels"]));
    let wrong: Vec<usize> = (0..9).filter(|&query| truth[query] != first[query]).collect();
    assert_eq!(wrong.len(), 1, "{asked}");
    let questions = list(&asked["again"][0]["questions"]);
    let corrected = |question: &&Value| question["query"] == wrong[0] && question["label"] == truth[wrong[0]];
    let question = questions.iter().find(corrected).unwrap_or_else(|| panic!("{asked}"));
    assert_eq!(question["first_label"], first[wrong[0]]);
    assert_eq!((&question["predicted"], &question["truth"]), (&question["label"], &question["label"]));

    // The final student learned other labels than the first one, whose name would otherwise have the same hash.
    let hash = |prefix: &str| student(&folder, prefix).to_string_lossy().rsplit('-').nth(1).map(str::to_owned);
    assert_ne!(hash("first-student-"), hash("student-"));

    // Trusted and encrypted labels are equal in both rounds; the noise of the second round is fresh.
    for kind in ["aggregate", "aggregate-again"] {
        let labels = |row: &str| json(&folder.join(format!("stages/{kind}-{row}/aggregate.json")))["labels"].clone();
        assert_eq!(labels("clear-text"), labels("encrypted"), "{kind}");
    }
    assert_eq!(list(&asked["again"]).len(), 2, "a row with the labels of another asks nothing: {asked}");

    // Queries, right labels and the claim count both rounds; the claim is that of the largest possible number.
    let table = json(&folder.join("tables/table.json"));
    let rows = list(&table["rows"]);
    for row in rows {
        assert_eq!((&row["queries"], &row["asked_again"]), (&(9 + questions.len()).into(), &questions.len().into()));
        let right = questions.iter().filter(|question| question["label"] == question["truth"]).count() + 8;
        assert_eq!(row["label_accuracy"].as_f64(), Some(right as f64 / (9 + questions.len()) as f64));
        assert!(row["data_dependent"].is_null() && row["data_dependent_collusion"].is_null());
        assert!(row["without_value"].to_string().contains("second questions depend on the answers"), "{row}");
        let epsilon = row["data_independent"]["epsilon"].as_f64().expect("an epsilon");
        let account = |queries: &str| {
            let noise =
                ["account", "--any-votes", "--mechanism", "skellam", "--sigma", "8", "--delta", "1e-5", "--json"];
            let account = place.succeeds(&[&noise[..], &["--classes", "3", "--queries", queries]].concat());
            serde_json::from_str::<Value>(&account).expect("json")["epsilon"].as_f64().expect("an epsilon")
        };
        assert!((epsilon - account("12")).abs() < 1e-6 && epsilon > account("11"), "{epsilon}");
    }
    assert_eq!(rows[0]["students"][0]["stage"], rows[2]["students"][0]["stage"]);

    let page = fs::read_to_string(folder.join("tables/report.html")).expect("a page");
    assert!(page.contains("clear text: second questions") && page.contains("first student <strong>"));
    let card = folder.join("models/clear-text/model-card.json");
    let verified = place.succeeds(&["verify", card.to_str().expect("text"), "--json"]);
    assert!(verified.contains("training.queries"), "{verified}");
}

#[test]
fn threads_and_kills_do_not_change_a_byte_of_two_rounds() {
    let place = place(ROUNDS);
    let started = Instant::now();
    place.succeeds(&run(&["--results", "one", "--threads", "1", "--set", WRONG]));
    let (duration, expected) = (started.elapsed(), determined(&place.run_folder("one", "rounds")));
    for k in 1..=6 {
        let arguments = run(&["--results", "killed", "--threads", "2", "--set", WRONG]);
        let mut child = place.command(&arguments).stderr(Stdio::null()).spawn().expect("the binary starts");
        std::thread::sleep(Duration::from_millis(30) + duration * k / 10);
        child.kill().expect("kill -9");
        child.wait().expect("ended");
    }
    place.succeeds(&run(&["--results", "killed", "--set", WRONG]));
    assert_eq!(determined(&place.run_folder("killed", "rounds")), expected);
    for stage in ["beliefs", "aggregate", "students"] {
        place.succeeds(&run(&[
            "--results",
            "steps",
            "--set",
            WRONG,
            "--stage",
            stage,
            "--set",
            "queries.beliefs=true",
        ]));
    }
    place.succeeds(&run(&["--results", "whole", "--set", WRONG, "--set", "queries.beliefs=true"]));
    place.succeeds(&run(&["--results", "steps", "--set", WRONG, "--set", "queries.beliefs=true"]));
    let [whole, steps] = ["whole", "steps"].map(|results| determined(&place.run_folder(results, "rounds")));
    assert_eq!(whole, steps);
    assert!(whole.keys().any(|file| file.starts_with("beliefs-again/")));
}

#[test]
fn agreement_asks_nothing_and_leaves_the_first_students() {
    // Little noise: every label is right, and the student agrees with all clusters.
    let place = place(ROUNDS);
    let set = ["--set", "noise.sigma=0.5", "--set", "student.pseudo_labels.epochs=30"];
    place.succeeds(&run(&[&["--results", "two"], &set[..]].concat()));
    let one = [&["--results", "one", "--set", "queries.rounds=1", "--set", "queries.again=0"], &set[..]].concat();
    place.succeeds(&run(&one));
    let [one, two] = ["one", "two"].map(|results| place.run_folder(results, "rounds"));
    let table = json(&two.join("tables/table.json"));
    assert_eq!(table["rows"][1]["asked_again"], 0, "{table}");
    assert_eq!(table["rows"][1]["queries"], 9);
    assert!(json(&one.join("tables/table.json"))["rows"][1].get("asked_again").is_none());
    let model = |run: &Path| fs::read(student(run, "student-").join("weights.safetensors")).expect("weights");
    assert!(model(&one) == model(&two), "the final student is the first one");
    let accuracy = |stage: PathBuf| json(&stage.join("student.json"))["accuracy"].clone();
    assert_eq!(accuracy(student(&two, "first-student-")), accuracy(student(&two, "student-")));
    // The claim still covers the questions that could have been asked.
    let epsilon = |run: &Path| json(&run.join("tables/table.json"))["rows"][0]["data_independent"]["epsilon"].as_f64();
    assert!(epsilon(&two) > epsilon(&one));
}

#[test]
fn second_questions_under_real_noise_are_charged_before_they_are_answered() {
    let real =
        [&ROUNDS[..ROUNDS.find("[[row]]").expect("rows")], "[[row]]\nname = \"real\"\naggregation = \"trusted\"\n"];
    let place = place(&real.concat().replace("source = \"simulation\"", "source = \"operating-system\""));
    let ledger = || {
        let shown = place.succeeds(&["ledger", "show", "results/rounds/ledger", "--json"]);
        serde_json::from_str::<Value>(&shown).expect("json")
    };
    let planned = place.succeeds(&run(&["--dry-run", "--json"]));
    let planned: Value = serde_json::from_str(&planned).expect("json");
    assert_eq!(planned["rows"][0]["queries"], 12);
    assert_eq!(list(&planned["rows"]).len(), 1);
    // Real noise: any number of second questions may follow.
    place.succeeds(&run(&["--stage", "queries-again"]));
    assert_eq!(ledger()["queries"], 9);
    let folder = place.run_folder("results", "rounds");
    let questions = list(&json(&folder.join("stages/queries-again-real/questions.json"))).len();
    let report: Value = serde_json::from_str(&place.succeeds(&run(&["--json"]))).expect("json");
    assert_eq!(ledger()["queries"], 9 + questions);
    assert_eq!(report["rows"][0]["data_independent"]["epsilon"], planned["rows"][0]["data_independent"]);
    let charges = ledger()["charges"].clone();
    assert_eq!(list(&charges).len(), 1 + usize::from(questions > 0));
    if questions > 0 {
        assert!(charges[1]["label"].as_str().expect("a label").ends_with(": real, second questions"), "{charges}");
    }
    // Resuming charges nothing. New first answers need new second ones, which are not paid for silently.
    place.succeeds(&run(&[]));
    assert_eq!(ledger()["queries"], 9 + questions);
    place.succeeds(&run(&["--force", "aggregate"]));
    assert!(ledger()["queries"].as_u64().expect("a number") >= 18 + questions as u64);
    let again: Value =
        serde_json::from_str(&place.succeeds(&run(&["--dry-run", "--json", "--force", "aggregate-real"])))
            .expect("json");
    assert_eq!(again["rows"][0]["done"], false);
    // A budget for the first questions only refuses the second ones, but not a budget for all.
    let needed = planned["budget_needed"].as_f64().expect("a budget");
    let limit = |epsilon: f64| format!("privacy.budget={epsilon}");
    let fresh =
        |name: &str, epsilon: f64| place.speed(&run(&["--set", &format!("name={name}"), "--set", &limit(epsilon)]));
    assert!(fresh("enough", needed).status.success());
    assert_eq!(fresh("short", needed / 20.0).status.code(), Some(6));
}

#[test]
fn contradictions_are_refused_by_name() {
    let place = place(ROUNDS);
    let fails = |set: &[&str], words: &[&str]| {
        let set: Vec<&str> = set.iter().flat_map(|key| ["--set", key]).collect();
        place.fails(&run(&set), 2, words);
    };
    fails(&["queries.rounds=3"], &["queries.rounds", "found 3", "1 or 2"]);
    fails(&["queries.again=0"], &["queries.again", "found 0", "1 to data.pool_images = 360"]);
    fails(&["queries.again=361"], &["queries.again", "found 361"]);
    fails(&["queries.rounds=1"], &["queries.again", "queries.rounds = 2"]);
    fails(&["queries.groups=false"], &["queries.rounds", "queries.groups = true"]);
    fails(&["queries.selection=random", "queries.groups=false"], &["queries.rounds", "clusters"]);
    fails(&["table.repeats=0"], &["table.repeats", "queries.rounds = 2"]);
    fails(&["row.0.queries=5"], &["row.0.queries", "queries.rounds = 2"]);
    fails(&["row.0.check_sigma=9"], &["row.0", "one round of questions"]);
    fails(&["row.1.name=Again_b"], &["row.1.name", "again"]);
    fails(
        &["privacy.target=1", "privacy.agreement=0.9", "noise.sigma=0", "noise.mechanism=binomial"],
        &["queries.rounds"],
    );
    for stage in ["aggregate", "student"] {
        place.fails(&run(&["--stage", stage, "--shard", "1/2"]), 2, &["--shard", stage, "queries.rounds = 2"]);
    }
}
