//! `speed plan`.

use serde_json::Value;

use crate::cli::bad_input::npy;
use crate::cli::common::Workplace;
use crate::cli::roles::{Parties, ROUND};

const WITHOUT_NOISE: &str = "plan --teachers 250 --agreement 0.9 --classes 10 --queries 100";
const PLAN: &str = "plan --teachers 250 --agreement 0.9 --classes 10 --queries 100 --mechanism binomial";

fn json(place: &Workplace, arguments: &str) -> Value {
    place.json(&format!("{arguments} --json"))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("a number, not {value}"))
}

#[test]
fn a_plan_has_the_epsilon_of_an_account_and_the_sizes_of_a_round() {
    let place = Workplace::new("");
    let plan = json(&place, &format!("{PLAN} --coins 4"));
    let account =
        "account --any-votes --mechanism binomial --coins 4 --teachers 250 --queries 100 --classes 10 --delta 1e-5";
    let account = json(&place, account);
    assert_eq!((&plan["account"]["epsilon"], &plan["account"]["claim"]), (&account["epsilon"], &account["claim"]));
    // docs/protocol.md has these sizes.
    let cost = &plan["cost"];
    assert_eq!(
        (&cost["message_bytes"], &cost["public_key_bytes"], &cost["evaluation_key_bytes"]),
        (&24_488.into(), &16_448.into(), &102_539_392.into())
    );
    for step in ["keys", "encryption", "sum", "argmax"] {
        let seconds = number(&cost["core_seconds"][step]);
        assert!(seconds > 0.0 && seconds < 10_000.0, "{step}: {seconds}");
    }
    // 100 queries take longer than keys, and one teacher's message takes a moment.
    let seconds = |step: &str| number(&cost["core_seconds"][step]);
    assert!(seconds("argmax") > seconds("keys") && seconds("encryption") < 1.0, "{cost}");
    let [even, rival] = [0, 1].map(|index| &plan["forecasts"][index]);
    assert_eq!(
        (&even["votes"], &rival["votes"], &plan["coins_of_teacher"]),
        (&"even".into(), &"one-rival".into(), &4.into())
    );
    assert!(number(&even["right_share"]) >= number(&rival["right_share"]) - 1e-12, "{plan}");
    assert!(rival["least_teachers"].as_u64().is_some_and(|least| least > 20 && least < 250), "{plan}");
    let text = place.succeeds(&format!("{PLAN} --coins 4 --without-times"));
    assert!(text.starts_with("forecast: ") && !text.contains("core-seconds") && text.contains("24488 bytes"), "{text}");
}

#[test]
fn a_plan_finds_the_noise_of_a_target() {
    let place = Workplace::new("");
    for (mechanism, ratio) in [("binomial", "0.7"), ("gaussian", "0.9")] {
        let arguments = format!("--epsilon 3 --honest-ratio {ratio} --mechanism {mechanism} --without-times");
        let plan = json(&place, &format!("{WITHOUT_NOISE} {arguments}"));
        let epsilon = number(&plan["account"]["epsilon"]);
        assert!(epsilon <= 3.0 && epsilon > 2.8, "{mechanism}: {epsilon}");
        assert_eq!(plan["cost"].is_null(), mechanism == "gaussian", "{plan}");
        assert_eq!(plan["without_cost"].is_string(), mechanism == "gaussian", "{plan}");
        assert!(plan["cost"]["core_seconds"].is_null());
    }
}

#[test]
fn a_pilot_gives_the_votes() {
    let place = Workplace::new("");
    // Ten teachers and three queries of three classes.
    npy(&place.path("votes.npy"), "3, 3", &[7, 2, 1, 3, 4, 3, 0, 0, 10]);
    let plan = |teachers: &str| {
        let more = format!("plan --votes votes.npy --form histograms --classes 3 --teachers {teachers}");
        json(&place, &format!("{more} --gamma 0.5 --without-times"))
    };
    let (many, few) = (plan("40"), plan("10"));
    assert_eq!((&many["queries"], &many["votes_file"]["teachers"]), (&3.into(), &10.into()));
    assert_eq!((&many["forecasts"][0]["votes"], &many["agreement"]), (&"pilot".into(), &Value::Null));
    assert!(number(&few["forecasts"][0]["right_share"]) < number(&many["forecasts"][0]["right_share"]));
}

#[test]
fn a_plan_refuses_bad_values_by_name() {
    let place = Workplace::new("");
    let fails = |arguments: &str, words: &[&str]| place.fails(arguments, 2, words);
    let with = |more: &str| format!("{PLAN} {more} --without-times");
    fails(&with(""), &["--coins", "binomial noise needs --coins or --sigma"]);
    fails(&with("--coins 1000000"), &["--coins"]);
    fails(&with("--epsilon nan"), &["--epsilon"]);
    let laplace = format!("{WITHOUT_NOISE} --epsilon 1e-6 --without-times");
    fails(&laplace, &["--epsilon", "cannot be reached"]);
    fails(&with("--coins 4 --epsilon 1"), &["cannot be used with"]);
    fails(&with("--coins 4 --votes v.npy"), &["cannot be used with"]);
    fails(&with("--coins 4 --honest-ratio 0.001"), &["--honest-ratio"]);
    let changed = |from: &str, to: &str| with("--coins 4").replace(from, to);
    fails(&changed("--agreement 0.9", "--agreement 1.5"), &["--agreement", "above 0 and at most 1"]);
    fails(&changed("--classes 10", "--classes 257"), &["--classes", "expected 2 to 256"]);
    fails(&changed("--queries 100", "--queries 1000001"), &["--queries", "at most 1000000"]);
    fails("plan --teachers 250 --queries 9 --classes 3 --gamma 1", &["--agreement"]);
    place.fails("plan --teachers 250 --votes none.npy --gamma 1", 3, &["none.npy"]);
    // More queries than a round allows are forecast, but have no cost.
    let plan = json(&place, &changed("--queries 100", "--queries 200000"));
    assert!(
        plan["cost"].is_null() && plan["without_cost"].as_str().is_some_and(|why| why.contains("queries")),
        "{plan}"
    );
}

#[test]
fn the_file_of_a_round_is_written_with_the_forecast_of_its_plan() {
    let parties = Parties::new();
    parties.introduce(3);
    parties.keygen("student", "", "--simulation 5");
    let line = format!("{ROUND} --name test --queries 20 --classes 4 --proofs off --simulation --coins 40");
    let round = parties.json("student", &format!("{line} --out a.toml --agreement 0.9 --json"));
    let place = Workplace::new("");
    let line_of_plan =
        "plan --teachers 3 --agreement 0.9 --classes 4 --queries 20 --mechanism binomial --coins 40 --without-times";
    let plan = json(&place, line_of_plan);
    for (index, case) in ["even", "one_rival"].into_iter().enumerate() {
        for field in ["right_share", "low", "high", "all_right"] {
            assert_eq!(round["forecast"][case][field], plan["forecasts"][index][field], "{case} {field}");
        }
    }
    let other = line.replace("--name test", "--name other");
    let text = parties.succeeds("student", &format!("{other} --out b.toml --reuse-keys"));
    assert_eq!(text.matches("forecast").count(), 1, "only that of a unanimous vote: {text}");
}
