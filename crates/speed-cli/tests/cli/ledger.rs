//! Ledgers by hand: fields of a charge, contents of a claim, and noise that a budget accepts.

use serde_json::Value;

use crate::cli::common::Workplace;

fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

fn create(place: &Workplace, name: &str, epsilon: &str, delta: &str) {
    place.succeeds(&format!("ledger create {name} --epsilon {epsilon} --delta {delta}"));
}

/// The epsilons are compared with enumerations in the oracle of the accountant.
#[test]
fn two_classes_and_a_threshold_cost_as_much_as_three_outcomes() {
    let place = Workplace::new("");
    let noise = "--gamma 0.1 --honest-ratio 0.3 --teachers 250 --queries 100";
    let two = format!("{noise} --classes 2");
    let silent = format!("{two} --threshold 200");
    // The least epsilon of these three answers is 36.977, and that of two classes below 22.
    for (name, noise, is_dear, words) in [
        ("silent", &silent[..], true, "between 2 classes with \"no answer\" where no noisy count reaches 200"),
        ("answered", &two[..], false, "between 2 classes without a threshold"),
        ("any", noise, true, "any number of classes"),
    ] {
        create(&place, name, "100", "1e-5");
        let charged = place.json(&format!("ledger charge {name} --json {noise}"));
        let epsilons = [&charged["spent_epsilon"], &charged["fixed_epsilon"]].map(number);
        let fits = |epsilon: f64| if is_dear { epsilon > 36.96 } else { epsilon < 22.0 };
        assert!(epsilons.into_iter().all(fits), "{charged}");
        assert!(charged["claim"].as_str().is_some_and(|claim| claim.contains(words)), "{charged}");
        if name != "any" {
            // An account applies the same rule.
            let account = "account --any-votes --delta 1e-5 --json";
            let account = place.json(&format!("{account} {noise}"));
            assert!(fits(number(&account["epsilon"])), "{account}");
            assert_eq!(account["classes"], charged["charges"][0]["classes"]);
            assert_eq!(account["threshold"], charged["charges"][0]["threshold"]);
        }
    }
    let shown = place.succeeds("ledger show silent");
    assert!(shown.contains("threshold") && shown.contains("200") && shown.contains("no answer"), "{shown}");
    for (flag, value) in [("--classes", "1"), ("--threshold", "0.5"), ("--threshold", "nan"), ("--threshold", "1e16")] {
        place.fails(&format!("ledger charge any {flag} {value} {noise}"), 2, &[flag]);
    }
}

/// A budget far above the cost of its charges counts them for more than they cost, and the output says so.
#[test]
fn a_budget_far_from_the_cost_of_its_charges_is_reported() {
    let place = Workplace::new("");
    for (name, epsilon, is_far) in [("wide", "1000", true), ("near", "3", false)] {
        create(&place, name, epsilon, "1e-5");
        place.succeeds(&format!("ledger charge {name} --queries 5 --gamma 0.05"));
        let noise = "--queries 2 --mechanism binomial --coins 34 --teachers 250";
        let shown = place.succeeds(&format!("ledger charge {name} {noise}"));
        assert_eq!(shown.contains("a smaller one counts them closer"), is_far, "{shown}");
    }
}

#[test]
fn a_claim_includes_samplers_only_if_delta_does() {
    let place = Workplace::new("");
    let charge =
        |name: &str, more: &str| place.json(&format!("ledger charge {name} --gamma 0.1 --queries 10 --json {more}"));
    let words = |statement: &Value| statement["claim"].as_str().expect("text").to_owned();
    create(&place, "tiny", "20", "1e-40");
    assert!(!place.succeeds("ledger show tiny").contains("Samplers are included"));
    let unnamed = charge("tiny", "");
    assert!(words(&unnamed).contains("delta includes no sampler's distance") && unnamed["samplers_included"] == false);
    // The sampler's distance exceeds this delta, so the charge assumes exact noise and states this.
    let known = "--teachers 250 --classes 10";
    let beyond = charge("tiny", known);
    assert!(words(&beyond).contains("delta includes no sampler's distance") && beyond["samplers_included"] == false);

    create(&place, "known", "20", "1e-5");
    let named = charge("known", known);
    let distance = number(&named["charges"][0]["sampling_distance"]);
    // 2500 draws a query, each within 2^-100.
    assert!(distance > 0.0 && distance <= 25_000.0 * 2f64.powi(-100) * 1.001, "{distance:e}");
    assert!(words(&named).contains("Samplers are included in delta.") && named["samplers_included"] == true, "{named}");
    // The same number as in a run with 250 teachers: 0.7 of 250 is 175.
    let fewer = charge("known", "--teachers 250 --classes 10 --honest-ratio 0.7");
    let ratio = number(&fewer["charges"][1]["sampling_distance"]) / distance;
    assert!((ratio - 0.7).abs() < 1e-9, "{ratio}");
    let mixed = charge("known", "--teachers 250");
    assert!(words(&mixed).contains("all 3 charges except number 3") && mixed["samplers_included"] == false, "{mixed}");

    let account = "account --any-votes --queries 10 --delta 1e-40";
    let laplace = place.succeeds(&format!("{account} --gamma 0.1"));
    assert!(laplace.contains("Exact noise is assumed: delta includes no sampler's distance"), "{laplace}");
    let skellam = place.succeeds(&format!("{account} --mechanism skellam --sigma 40"));
    assert!(
        skellam.contains("which this program samples exactly") && !skellam.contains("Exact noise is assumed"),
        "{skellam}"
    );
}

#[test]
fn a_dry_run_says_that_delta_does_not_include_the_samplers() {
    let place = Workplace::new(crate::cli::budget::REAL);
    let dry = |delta: &str| {
        let set = format!("privacy.delta={delta}");
        let text = place.succeeds(&format!("run config.toml --dry-run --set {set}"));
        text.lines().find(|line| line.contains("the ledger's epsilon after the run")).expect("a price").to_owned()
    };
    assert!(dry("1e-40").contains("delta does not include the samplers"), "{}", dry("1e-40"));
    assert!(!dry("1e-5").contains("samplers"), "{}", dry("1e-5"));
}

/// Splits the command at the end of a calibration's output, and inserts the name of its ledger.
fn command(text: &str, file: &str) -> String {
    let line = text.lines().last().expect("a line");
    line.strip_prefix("speed ").expect("a command").replace("FILE", file)
}

#[test]
fn noise_calibrated_for_a_budget_is_accepted() {
    let place = Workplace::new("");
    create(&place, "ledger", "5", "1e-5");
    let target = "calibrate --epsilon 5 --delta 1e-5 --queries 100";
    let plain = number(&place.json(&format!("{target} --json"))["scale"]).to_string();
    let charge = format!("ledger charge ledger --queries 100 --gamma {plain}");
    place.fails(&charge, 6, &["5.026", "nine tenths of delta", "`speed calibrate --ledger ledger --queries 100`"]);

    // For a new ledger and for this one, as text and as JSON, with the other fields of a charge.
    let more = [
        "--honest-ratio 0.7 --teachers 250 --classes 10",
        "--classes 2 --threshold 30 --honest-ratio 0.3 --mechanism laplace",
    ];
    for (number_of, more) in more.into_iter().enumerate() {
        let file = format!("new{number_of}");
        create(&place, &file, "5", "1e-5");
        let found = place.succeeds(&format!("{target} --budget {more}"));
        let of_file = format!("calibrate --ledger {file} --queries 100");
        let same = place.succeeds(&format!("{of_file} {more}"));
        assert_eq!(command(&found, &file), command(&same, &file));
        let command = command(&found, &file);
        place.succeeds(&command);
        let spent = number(&place.json(&format!("ledger show {file} --json"))["spent_epsilon"]);
        assert!(spent <= 5.0 && spent > 4.99, "{more:?}: {spent}");
    }
    // The remaining budget, after charges of the same kind and of another kind.
    create(&place, "used", "5", "1e-5");
    place.succeeds("ledger charge used --queries 40 --gamma 0.09");
    let found = place.succeeds("calibrate --ledger used --queries 5");
    let command = command(&found, "used");
    place.succeeds(&command);
    place.fails("calibrate --ledger used --queries 20", 2, &["--ledger", "no room", "the budget is 5"]);
    // The number of queries that is found is accepted, and one more is refused.
    let found = place.json("calibrate --ledger ledger --gamma 0.1 --json");
    let queries = found["queries"].as_u64().expect("a number");
    let many = |queries: u64| {
        let queries = queries.to_string();
        place.speed(&format!("ledger charge ledger --queries {queries} --gamma 0.1")).status.code()
    };
    assert_eq!((many(queries + 1), many(queries)), (Some(6), Some(0)), "{found}");
    place.fails("calibrate --ledger ledger --gamma 9", 2, &["--ledger", "no room", "the budget is 5"]);
}

#[test]
fn a_ledger_without_a_budget_is_calibrated_to_a_limit() {
    let place = Workplace::finished(crate::cli::budget::REAL);
    let file = "results/real/ledger";
    place.fails(&format!("calibrate --ledger {file} --queries 5"), 2, &["no budget of its own", "--epsilon"]);
    let found = place.json(&format!("calibrate --ledger {file} --queries 5 --epsilon 40 --json"));
    assert!(number(&found["scale"]) > 0.0 && number(&found["spent_epsilon"]) <= 40.0, "{found}");
    for more in ["--assume dropout", "--budget", "--bound tight"] {
        let base = format!("calibrate --ledger {file} --queries 5 --epsilon 40");
        place.fails(&format!("{base} {more}"), 2, &["cannot be used with"]);
    }
    place.fails("calibrate --queries 5", 2, &["--epsilon"]);
    place.fails(&format!("calibrate --ledger {file} --queries 5 --delta 1e-5"), 2, &["--epsilon"]);
    place.fails("calibrate --ledger nowhere --queries 5", 3, &["nowhere"]);
    let gaussian = format!("calibrate --ledger {file} --queries 5 --epsilon 40 --mechanism gaussian");
    place.fails(&gaussian, 2, &["--mechanism", "Laplace, Skellam and binomial"]);
}

#[test]
fn binomial_noise_is_calibrated_and_charged_beside_laplace_noise() {
    let place = Workplace::new("");
    create(&place, "ledger", "3", "1e-5");
    place.succeeds("ledger charge ledger --queries 20 --gamma 0.05");
    let noise = "--mechanism binomial --teachers 250 --classes 10 --queries 50";
    place.fails(&format!("ledger charge ledger --coins 1 {noise}"), 6, &["nothing was charged"]);
    let calibrate = format!("calibrate --ledger ledger {noise}");
    let found = place.json(&format!("{calibrate} --json"));
    let all = found["coins"].as_u64().expect("coins");
    assert!(all.is_multiple_of(250) && found["noise"] == "binomial" && found["per_query_epsilon"].is_null(), "{found}");
    let text = place.succeeds(&calibrate);
    let each = (all / 250).to_string();
    assert!(text.contains(&format!("coins {each} a teacher ({all} in all")), "{text}");
    let command = command(&text, "ledger");
    assert!(format!("{command} ").contains(&format!("--coins {each} ")), "{command:?}");
    let charged = place.json(&format!("{command} --json"));
    let charge = &charged["charges"][1];
    assert_eq!((&charge["coins"], &charge["per_query_epsilon"]), (&all.into(), &Value::Null));
    assert!(number(&charged["spent_epsilon"]) <= 3.0, "{charged}");
    // Delta needs no part for this sampler, which is exact.
    assert_eq!(charge["sampling_distance"], 0.0);
    let shown = place.succeeds("ledger show ledger");
    assert!(shown.contains(&format!("binomial noise of {all} coins")) && shown.contains("none"), "{shown}");
    place.fails("calibrate --ledger ledger --mechanism binomial --queries 5", 2, &["--teachers"]);
}
