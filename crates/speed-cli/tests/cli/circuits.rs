//! Rows with different circuits, on random votes, which need no data.

use std::fs;

use crate::cli::common::{Workplace, contains, determined, read_json};

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

/// A config with more rows.
fn config(rows: &str) -> String {
    format!("{UNIFORM}{rows}]\n")
}

const CIRCUITS: &str = r#"
    { name = "tournament", aggregation = "encrypted" },
    { name = "all pairs", aggregation = "encrypted", circuit = "all-pairs", queries = 1 },
    { name = "paper", aggregation = "encrypted", circuit = "paper", queries = 2 },
"#;

#[test]
fn exact_circuits_agree_and_the_papers_reports_unresolved_queries() {
    let place = Workplace::new(&config(CIRCUITS));
    let table = place.succeeds("run config.toml --results one");
    contains(&table, &["4/4", "1/1", "unresolved"]);
    let run = place.run_folder("one", "circuits");
    let labels = |row: &str| -> Vec<String> {
        let text = fs::read_to_string(run.join(format!("stages/aggregate-{row}/labels.csv"))).expect("labels");
        text.lines().skip(1).map(str::to_owned).collect()
    };
    assert_eq!(labels("tournament"), labels("trusted"));
    assert_eq!(labels("all-pairs"), labels("trusted")[..1]);

    let table = read_json(&run.join("tables/table.json"));
    let rows = table["rows"].as_array().expect("rows");
    let counts: Vec<_> = rows.iter().map(|row| (row["queries"].as_u64(), row["unresolved"].as_u64())).collect();
    assert_eq!(counts[..3], [(Some(4), None), (Some(4), None), (Some(1), None)]);
    let without_label = labels("paper").iter().filter(|line| line.ends_with(',')).count() as u64;
    assert_eq!(counts[3], (Some(2), Some(without_label)));
    assert!(rows[3]["agreement"].as_u64().is_some_and(|agreement| agreement + without_label <= 2));
}

/// The same noise in clear text and on ciphertexts.
const NOISES: &str = r#"
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
fn mechanisms_placements_and_thresholds_are_the_same_on_ciphertexts() {
    let place = Workplace::new(&config(NOISES).replace("count = 4", "count = 8"));
    let table = place.succeeds("run config.toml --results one");
    let run = place.run_folder("one", "circuits");
    let labels =
        |row: &str| fs::read_to_string(run.join(format!("stages/aggregate-{row}/labels.csv"))).expect("labels");
    for row in ["skellam", "binomial", "confident-coins", "central", "central-coins", "confident"] {
        let clear = labels(&format!("{row}-in-clear"));
        let encrypted = labels(row);
        assert!(encrypted.lines().count() == 4 && clear.starts_with(&encrypted), "{row}: {clear} {encrypted}");
        assert_ne!(clear, labels("trusted"), "{row}: other noise, other labels");
    }
    let report = read_json(&run.join("tables/table.json"));
    let row =
        |name: &str| report["rows"].as_array().expect("rows").iter().find(|row| row["name"] == name).expect("a row");
    let without_label = labels("confident-in-clear").lines().filter(|line| line.ends_with(',')).count() as u64;
    assert!((1..8).contains(&without_label), "{}", labels("confident-in-clear"));
    assert_eq!(row("confident in clear")["answered"].as_u64(), Some(8 - without_label));
    assert_eq!(row("silent")["answered"].as_u64(), Some(0));
    assert_eq!(row("central").get("answered"), None);
    assert!(table.contains("answered"), "{table}");

    // A claim names the noise that it covers. Only the server knows noise that it adds.
    let claim = |name: &str, column: &str| row(name)[column]["claim"].as_str().unwrap_or_default().to_owned();
    assert!(claim("skellam", "data_dependent").contains("Skellam"), "{}", claim("skellam", "data_dependent"));
    assert!(claim("confident", "data_independent").contains("no answer"), "{}", claim("confident", "data_independent"));
    let central = claim("central", "data_dependent");
    assert!(central.contains("trusted aggregator") || central.contains("central"), "{central}");
    let central = claim("central coins", "data_independent");
    assert!(central.contains("trusted aggregator") || central.contains("central"), "{central}");
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
