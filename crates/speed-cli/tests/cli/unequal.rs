//! Parties with unequal classes, whose teachers do not vote on images unlike their own.

use serde_json::Value;

use crate::cli::common::Workplace;

/// Forty teachers of ten parties with 50 built-in digits each on average.
const UNEQUAL: &str = r#"
name = "unequal"
seed = 3
data = { train_images = 2000, test_images = 500, pool_images = 400 }
ensemble = { teachers = 40, parties = 10, skew = 0.1 }
votes = { source = "neighbours" }
queries = { count = 100 }
noise = { source = "simulation" }
table = { repeats = 0 }
row = [
    { name = "clear", aggregation = "non-private" },
]
"#;

#[test]
fn teachers_of_unequal_parties_vote_better_if_they_may_abstain() {
    let place = Workplace::new(UNEQUAL);
    let ensemble =
        |set: &str| -> Value { place.json(&format!("run config.toml --json --set {set}"))["ensemble"].take() };
    let right = |ensemble: &Value| ensemble["plurality_accuracy"].as_f64().expect("an accuracy");
    let [vote, random, abstain] =
        ["vote", "random", "abstain"].map(|unknown| ensemble(&format!("teacher.unknown={unknown}")));
    assert!(right(&abstain) > right(&vote) + 0.03, "{abstain} {vote}");
    assert!(right(&random) > right(&vote), "{random} {vote}");
    assert!(abstain["empty_votes"].as_f64().expect("a share") > 0.2, "{abstain}");
    assert!(vote["empty_votes"].is_null() && random["empty_votes"].is_null(), "{vote} {random}");
    // Equal parties, whose teachers have all classes, or almost all.
    let equal = ensemble("ensemble.skew=1000");
    assert!(equal["empty_votes"].as_f64().is_none_or(|share| share < 0.05), "{equal}");
}
