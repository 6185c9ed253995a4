//! `speed plan`: measured times, and the forecast in the file of a round (tests/snapshots/plan.trycmd has its texts).

use crate::cli::common::Workplace;
use crate::cli::roles::{Parties, ROUND};

#[test]
fn a_plan_measures_the_steps_of_a_round() {
    let round = "--teachers 250 --agreement 0.9 --classes 10 --queries 100 --mechanism binomial --coins 4";
    let plan = Workplace::new("").json(&format!("plan {round} --json"));
    let seconds = |step: &str| plan["cost"]["core_seconds"][step].as_f64().expect("a time");
    assert!(["keys", "encryption", "sum", "argmax"].iter().all(|step| seconds(step) > 0.0), "{plan}");
    // 100 queries take longer than keys, and one teacher's message takes a moment.
    assert!((seconds("keys")..10_000.0).contains(&seconds("argmax")) && seconds("encryption") < 1.0, "{plan}");
}

#[test]
fn the_file_of_a_round_is_written_with_the_forecast_of_its_plan() {
    let parties = Parties::new();
    parties.introduce(3);
    parties.keygen("student", "", "--simulation 5");
    let line = format!("{ROUND} --name test --queries 20 --classes 4 --proofs off --simulation --coins 40");
    let round = parties.json("student", &format!("{line} --out a.toml --agreement 0.9 --json"));
    let plan = "--teachers 3 --agreement 0.9 --classes 4 --queries 20 --mechanism binomial --coins 40 --without-times";
    let plan = parties.json("student", &format!("plan {plan} --json"));
    for (index, case) in ["even", "one_rival"].into_iter().enumerate() {
        for field in ["right_share", "low", "high", "all_right"] {
            assert_eq!(round["forecast"][case][field], plan["forecasts"][index][field], "{case} {field}");
        }
    }
    let other = line.replace("--name test", "--name other");
    let text = parties.succeeds("student", &format!("{other} --out b.toml --reuse-keys"));
    assert_eq!(text.matches("forecast").count(), 1, "only that of a unanimous vote: {text}");
}
