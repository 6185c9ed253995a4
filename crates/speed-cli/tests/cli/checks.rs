//! Rows whose checks have noise of their own, on random votes, which need no data.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::cli::common::{Workplace, contains, determined, has, read_json};
use crate::cli::shards::{ended, start};

const HEAD: &str = r#"
name = "checks"
seed = 3
data = { source = "none", pool_images = 50 }
ensemble = { teachers = 20 }
votes = { source = "uniform", classes = 4 }
queries = { count = 8 }
noise = { mechanism = "skellam", sigma = 2.0, source = "SOURCE" }
table = { repeats = 0 }
row = [
    { name = "clear", aggregation = "trusted", threshold = 8, check_noise = 3.0 },
"#;

const ENCRYPTED: &str = r#"
    { name = "encrypted", aggregation = "encrypted", threshold = 8, check_noise = 3.0, queries = 4 },
    { name = "at most two", aggregation = "trusted", threshold = 8, check_noise = 3.0, answers = 2 },
    { name = "none passes", aggregation = "encrypted", mechanism = "binomial", coins = 1, threshold = 27, check_noise = 3.0, queries = 2 },
"#;

const ONE: &str = r#"
    { name = "encrypted", aggregation = "encrypted", threshold = 8, check_noise = 3.0, queries = 4 },
"#;

fn config(source: &str, rows: &str) -> String {
    format!("{}{rows}]\n", HEAD.replace("SOURCE", source))
}

/// Returns one column of a file of a stage, for each query.
fn column(run: &Path, stage: &str, file: &str) -> Vec<String> {
    let text = fs::read_to_string(run.join("stages").join(stage).join(file)).expect(file);
    text.lines().skip(1).map(|line| line.rsplit(',').next().expect("a column").to_owned()).collect()
}

#[test]
fn only_queries_that_pass_their_check_are_answered_and_ciphertexts_agree() {
    let place = Workplace::new(&config("simulation", ENCRYPTED));
    place.succeeds("run config.toml --results one");
    let run = place.run_folder("one", "checks");
    let (reached, labels) = (column(&run, "check-clear", "checks.csv"), column(&run, "aggregate-clear", "labels.csv"));
    assert_eq!((reached.len(), labels.len()), (8, 8));
    let passed = reached.iter().filter(|reached| *reached == "1").count();
    assert!((3..8).contains(&passed), "{reached:?}: the test needs both outcomes");
    for (reached, label) in reached.iter().zip(&labels) {
        assert_eq!(reached == "1", !label.is_empty(), "{reached} {label}");
    }
    for (stage, file) in [("check", "checks.csv"), ("aggregate", "labels.csv")] {
        let of = |row: &str| column(&run, &format!("{stage}-{row}"), file);
        assert_eq!(of("encrypted"), of("clear")[..4], "{stage}");
    }
    let few = column(&run, "aggregate-at-most-two", "labels.csv");
    assert_eq!(few.iter().filter(|label| !label.is_empty()).count(), 2);
    let first = reached.iter().position(|reached| reached == "1").expect("one passes");
    assert!(!few[first].is_empty(), "the first queries that pass are answered: {few:?} {reached:?}");
    assert!(column(&run, "aggregate-none-passes", "labels.csv").iter().all(String::is_empty));

    let table = read_json(&run.join("tables/table.json"));
    let rows = table["rows"].as_array().expect("rows");
    let row = |name: &str| rows.iter().find(|row| row["name"] == name).expect("a row");
    let (clear, few) = (row("clear"), row("at most two"));
    has(clear, &json!({ "answered": passed }));
    has(row("encrypted"), &json!({ "agreement": 4 }));
    let checks = json!({ "noise": "skellam", "sigma": 3.0, "threshold": 8.0, "queries": 8 });
    let account = json!({ "checks": checks, "queries": 2, "sigma": 2.0, "threshold": null });
    has(few, &json!({ "answered": 2, "data_independent": account }));
    let account = &few["data_independent"];
    assert!(account["claim"].as_str().is_some_and(|claim| claim.contains("8 checks and of at most 2 answers")));
    // Fewer answers cost less, and the votes cost no more than any votes.
    let epsilon = |row: &Value, claim: &str| row[claim]["epsilon"].as_f64().expect("an epsilon");
    assert!(epsilon(few, "data_independent") < epsilon(clear, "data_independent"));
    assert!(epsilon(clear, "data_dependent") <= epsilon(clear, "data_independent"));
}

#[test]
fn shards_share_checks_and_answers_and_give_the_bytes_of_one_process() {
    let place = Workplace::new(&config("simulation", ONE));
    place.succeeds("run config.toml --results one");
    let expected = determined(&place.run_folder("one", "checks"));
    for (before, stage) in [("queries", "check"), ("check", "aggregate")] {
        place.succeeds(&format!("run config.toml --results two --stage {before}"));
        let shards = ["2/2", "1/2"].map(|share| start(&place, "two", stage, share)).map(ended);
        let units: u64 = shards.iter().filter_map(|report| report["units"].as_u64()).sum();
        assert!(if stage == "check" { units == 4 } else { units <= 4 }, "{stage}: {units}");
    }
    place.succeeds("run config.toml --results two");
    assert_eq!(determined(&place.run_folder("two", "checks")), expected);
}

#[test]
fn real_checks_are_charged_before_the_answers_and_once() {
    let place = Workplace::new(&config("operating-system", ONE));
    let run = || place.succeeds("run config.toml --max-epsilon inf");
    run();
    let ledger = || -> Vec<Value> {
        place.json("ledger show results/checks/ledger --json")["charges"].as_array().expect("charges").clone()
    };
    let charges = ledger();
    let folder = place.run_folder("results", "checks");
    let passed =
        |row: &str| column(&folder, &format!("check-{row}"), "checks.csv").iter().filter(|c| *c == "1").count();
    // The checks of both rows, then the answers of each row, if any query passed.
    for (charge, queries) in charges.iter().zip([8, 4]) {
        has(charge, &json!({ "check": true, "queries": queries, "sigma": 3.0, "threshold": 8.0 }));
    }
    let answered: Vec<usize> = ["clear", "encrypted"].into_iter().map(passed).filter(|passed| *passed > 0).collect();
    let charged: Vec<usize> =
        charges[2..].iter().map(|charge| charge["queries"].as_u64().expect("a number") as usize).collect();
    assert_eq!(charged, answered);
    assert!(charges[2..].iter().all(|charge| charge["sigma"] == 2.0 && charge["threshold"].is_null()), "{charges:?}");
    // The same run again, and a smaller number of answers: the checks are not charged again.
    run();
    assert_eq!(ledger().len(), charges.len());
    place.succeeds("run config.toml --max-epsilon inf --set row.0.answers=1");
    let after = ledger();
    assert!(after[charges.len()..].iter().all(|charge| charge["check"].is_null()), "{after:?}");
}

#[test]
fn a_ledger_is_charged_for_checks() {
    let place = Workplace::new("");
    place.succeeds("ledger create l --epsilon 6 --delta 1e-5");
    let charge = "ledger charge l --queries 640 --mechanism skellam --sigma 150 --threshold 200 --check";
    contains(&place.succeeds(charge), &["200 (check)", "640 checks whether the largest noisy count reaches 200"]);
    assert_eq!(place.json("ledger show l --json")["charges"][0]["check"], true);
}
