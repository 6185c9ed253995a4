//! `--dry-run` predicts the work of a run.

use serde_json::Value;

use crate::cli::budget::{REAL, ROWS, RUN, charged, encrypted, ledger};
use crate::cli::common::Workplace;

fn needed(plan: &Value) -> f64 {
    plan["budget_needed"].as_f64().expect("a price")
}

#[test]
fn a_dry_run_names_the_price_and_spends_nothing() {
    let place = Workplace::new(REAL);
    let plan = || place.json("run config.toml --dry-run --json");
    let before = plan();
    assert!(!place.path("results").exists(), "a dry run wrote something");
    let rows = before["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), ROWS);
    for row in rows {
        let epsilon = row["data_independent"].as_f64().expect("an epsilon");
        assert!(epsilon > 1.0 && epsilon < needed(&before) && row["done"] == false && row["queries"] == 4, "{row}");
    }
    place.succeeds(&RUN);
    let spent = ledger(&place)["spent_epsilon"].as_f64().expect("a number");
    assert!((spent / needed(&before) - 1.0).abs() < 1e-12, "{spent}");
    let after = plan();
    assert!((needed(&after) / spent - 1.0).abs() < 1e-12 && after["rows"][2]["done"] == true);
    assert!(place.succeeds("run config.toml --dry-run").contains("# the ledger's epsilon after the run"));
    let simulated = place.succeeds("run config.toml --dry-run --set noise.source=simulation");
    assert!(simulated.contains("# a simulation: nothing is charged"));
}

/// A budget equal to the price of the dry run is enough; a slightly smaller one is not.
#[test]
fn a_dry_run_knows_whether_the_budget_allows_all_rows() {
    let place = Workplace::new(REAL);
    let plan = |budget: f64| place.json(&format!("{RUN} --dry-run --json --set privacy.budget={budget}"));
    let needed = needed(&plan(1.0));
    assert!(plan(1.0)["refused"].is_string() && plan(needed)["refused"].is_null());
    let too_little = 0.9 * needed;
    assert!(plan(too_little)["refused"].as_str().is_some_and(|why| why.contains("the budget is")));
    place.fails(&format!("{RUN} --set privacy.budget={too_little}"), 6, &["the budget is"]);
    place.succeeds(&format!("{RUN} --set privacy.budget={needed}"));
    assert_eq!(charged(&place), 16);
}

#[test]
fn a_dry_run_counts_forced_stages_and_prints_the_total_cost() {
    let place = Workplace::finished(&encrypted());
    let plan = |more: &str| place.json(&format!("{RUN} --dry-run --json {more}"));
    let (usual, forced) = (plan(""), plan("--force aggregate"));
    assert!(needed(&forced) > 1.3 * needed(&usual), "{} {}", needed(&forced), needed(&usual));
    assert_eq!(forced["rows"][0]["done"], false);
    let first = &usual["cost"]["stages"][0];
    let (what, seconds) = (&first["kind"], first["core_seconds"].as_f64());
    assert!(what == "encrypted argmax" && seconds.is_some_and(|seconds| seconds > 1.0), "{usual}");
    assert!(usual["cost"]["memory_bytes"].as_f64().is_some_and(|bytes| bytes > 1e8));
}
