//! Rows with different circuits, on random votes, which need no data.

use std::fs;

use serde_json::json;

use crate::cli::common::{Workplace, contains, determined, has, read_json};

const UNIFORM: &str = r#"
name = "circuits"
seed = 3
data = { source = "none", pool_images = 50 }
ensemble = { teachers = 20 }
votes = { source = "uniform", classes = 4 }
queries = { count = 4 }
noise = { gamma = 1.0, source = "simulation" }
table = { repeats = 0 }
row = [
    { name = "Trusted", aggregation = "trusted" },
"#;

fn config(rows: &str) -> String {
    format!("{UNIFORM}{rows}]\n")
}

/// The circuits, and the same noise in clear text and on ciphertexts.
const ROWS: &str = r#"
    { name = "tournament", aggregation = "encrypted", queries = 4 },
    { name = "all pairs", aggregation = "encrypted", circuit = "all-pairs", queries = 1 },
    { name = "paper", aggregation = "encrypted", circuit = "paper", queries = 2 },
    { name = "skellam in clear", aggregation = "trusted", mechanism = "skellam", sigma = 1.5 },
    { name = "skellam", aggregation = "encrypted", queries = 3, mechanism = "skellam", sigma = 1.5 },
    { name = "binomial in clear", aggregation = "trusted", mechanism = "binomial", coins = 3 },
    { name = "binomial", aggregation = "encrypted", queries = 3, mechanism = "binomial", coins = 3 },
    { name = "confident coins in clear", aggregation = "trusted", mechanism = "binomial", sigma = 3.2, threshold = 6 },
    { name = "confident coins", aggregation = "encrypted", queries = 3, mechanism = "binomial", sigma = 3.2, threshold = 6 },
    { name = "central in clear", aggregation = "trusted", placement = "central" },
    { name = "central", aggregation = "encrypted", queries = 3, placement = "central" },
    { name = "central coins in clear", aggregation = "trusted", mechanism = "binomial", coins = 4, placement = "central", threshold = 8 },
    { name = "central coins", aggregation = "encrypted", queries = 3, mechanism = "binomial", coins = 4, placement = "central", threshold = 8 },
    { name = "confident in clear", aggregation = "trusted", threshold = 8 },
    { name = "confident", aggregation = "encrypted", queries = 3, threshold = 8 },
    { name = "silent", aggregation = "trusted", threshold = 25 },
"#;

#[test]
fn circuits_mechanisms_placements_and_thresholds_give_the_same_on_ciphertexts() {
    let place = Workplace::new(&config(ROWS).replace("count = 4", "count = 8"));
    let table = place.succeeds("run config.toml --results one");
    contains(&table, &["4/4", "1/1", "unresolved", "answered"]);
    let run = place.run_folder("one", "circuits");
    let labels =
        |row: &str| fs::read_to_string(run.join(format!("stages/aggregate-{row}/labels.csv"))).expect("labels");
    let without_label = |row: &str| labels(row).lines().filter(|line| line.ends_with(',')).count() as u64;
    for (row, queries) in [("tournament", 4), ("all-pairs", 1)] {
        assert!(labels("trusted").starts_with(&labels(row)) && labels(row).lines().count() == 1 + queries, "{row}");
    }
    for row in ["skellam", "binomial", "confident-coins", "central", "central-coins", "confident"] {
        let clear = labels(&format!("{row}-in-clear"));
        let encrypted = labels(row);
        assert!(encrypted.lines().count() == 4 && clear.starts_with(&encrypted), "{row}: {clear} {encrypted}");
        assert_ne!(clear, labels("trusted"), "{row}: other noise, other labels");
    }
    let report = read_json(&run.join("tables/table.json"));
    let row =
        |name: &str| report["rows"].as_array().expect("rows").iter().find(|row| row["name"] == name).expect("a row");
    for (name, queries) in [("Trusted", 8), ("tournament", 4), ("all pairs", 1)] {
        has(row(name), &json!({ "queries": queries, "unresolved": null }));
    }
    has(row("paper"), &json!({ "queries": 2, "unresolved": without_label("paper") }));
    assert!(row("paper")["agreement"].as_u64().is_some_and(|agreed| agreed + without_label("paper") <= 2));
    let unanswered = without_label("confident-in-clear");
    assert!((1..8).contains(&unanswered), "{}", labels("confident-in-clear"));
    has(row("confident in clear"), &json!({ "answered": 8 - unanswered }));
    has(row("silent"), &json!({ "answered": 0 }));
    assert_eq!(row("central").get("answered"), None);

    // A claim names the noise that it covers. Only the server knows noise that it adds.
    let claim = |name: &str, column: &str| row(name)[column]["claim"].as_str().unwrap_or_default().to_owned();
    assert!(claim("skellam", "data_dependent").contains("Skellam"), "{}", claim("skellam", "data_dependent"));
    assert!(claim("confident", "data_independent").contains("no answer"), "{}", claim("confident", "data_independent"));
    for central in [claim("central", "data_dependent"), claim("central coins", "data_independent")] {
        assert!(central.contains("trusted aggregator") || central.contains("central"), "{central}");
    }
    let answered = row("central coins in clear")["answered"].as_u64();
    assert!(answered.is_some_and(|answered| (1..8).contains(&answered)), "{answered:?}");
    assert!(row("skellam")["paper_formulas"].is_null() && row("confident")["paper_formulas"].is_null());
}

#[test]
fn real_noise_of_the_server_is_charged_with_its_threshold() {
    let central = "aggregation = \"trusted\", placement = \"central\", threshold = 5";
    let place = Workplace::finished(
        &config("").replace("\"simulation\"", "\"operating-system\"").replace("aggregation = \"trusted\"", central),
    );
    let ledger = place.read("results/circuits/ledger");
    assert!(ledger.contains("threshold"), "{ledger}");
    let first = determined(&place.run_folder("results", "circuits"));
    place.succeeds("run config.toml");
    assert_eq!(determined(&place.run_folder("results", "circuits")), first);
    assert_eq!(place.read("results/circuits/ledger"), ledger, "paid twice");
    // Noise without a pure epsilon is charged too.
    for (mechanism, width) in [("skellam", "sigma=8"), ("binomial", "coins=4")] {
        let noise = format!("--set noise.mechanism={mechanism} --set noise.{width}");
        place.succeeds(&format!("run config.toml --set name={mechanism} {noise}"));
        let ledger = place.read(&format!("results/{mechanism}/ledger"));
        assert!(ledger.contains(&format!("\"noise\":\"{mechanism}\"")), "{ledger}");
        assert!(ledger.contains("\"per_query_epsilon\":null"), "{ledger}");
    }
}

#[test]
fn votes_at_random_follow_the_seed_and_give_the_answers_of_the_same_votes_in_a_file() {
    let place = Workplace::new(&config(""));
    let table = place.succeeds("run config.toml --results one");
    assert!(table.contains("Trusted") && !table.contains("unresolved"), "{table}");
    place.succeeds("run config.toml --results two");
    place.succeeds("run config.toml --results three --set seed=4");
    let stages = |results: &str| place.run_folder(results, "circuits").join("stages");
    let votes = |results: &str| fs::read(stages(results).join("votes/votes.npy")).expect("votes");
    assert_eq!(votes("one"), votes("two"));
    assert_ne!(votes("one"), votes("three"));
    // 1000 votes, one byte each after the header: every class about 250 times, within six standard deviations.
    let labels = votes("one").split_off(votes("one").len() - 1000);
    for class in 0..4 {
        let count = labels.iter().filter(|label| **label == class).count();
        assert!((168..=332).contains(&count), "class {class}: {count} of 1000");
    }
    // Answers do not depend on where the votes come from.
    let drawn = stages("one");
    let file = format!("votes.file={}", drawn.join("votes/votes.npy").display());
    let from_file = format!("--set votes.source=file --set {file} --set votes.classes=4");
    place.succeeds(&format!("run config.toml --results read {from_file}"));
    let read = stages("read");
    for name in ["votes/votes.npy", "aggregate-trusted/labels.csv", "account-trusted/account.json"] {
        assert_eq!(fs::read(read.join(name)).expect(name), fs::read(drawn.join(name)).expect(name), "{name}");
    }
}
