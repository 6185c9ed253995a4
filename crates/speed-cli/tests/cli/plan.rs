//! `speed plan`, and the choice of queries and coins for `privacy.target`.

use std::fs;

use serde_json::Value;

use crate::cli::bad_input::npy;
use crate::cli::common::Workplace;
use crate::cli::roles::Parties;

const PLAN: [&str; 11] = [
    "plan",
    "--teachers",
    "250",
    "--agreement",
    "0.9",
    "--classes",
    "10",
    "--queries",
    "100",
    "--mechanism",
    "binomial",
];

/// A config without images, whose votes need no training.
const TARGET: &str = r#"
name = "target"
seed = 5

[data]
source = "none"
pool_images = 200

[ensemble]
teachers = 100

[votes]
source = "uniform"

[queries]
count = 150

[noise]
source = "simulation"

[privacy]
target = 3.0
agreement = 0.9

[table]
repeats = 0

[[row]]
name = "plain"
aggregation = "non-private"

[[row]]
name = "all"
aggregation = "trusted"

[[row]]
name = "most"
aggregation = "trusted"
honest_ratio = 0.7
"#;

fn json(place: &Workplace, arguments: &[&str]) -> Value {
    serde_json::from_str(&place.succeeds(&[arguments, &["--json"]].concat())).expect("JSON")
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("a number, not {value}"))
}

#[test]
fn a_plan_has_the_epsilon_of_an_account_and_the_sizes_of_a_round() {
    let place = Workplace::new("");
    let plan = json(&place, &[&PLAN[..], &["--coins", "4"]].concat());
    let account = [
        &["account", "--any-votes", "--mechanism", "binomial", "--coins", "4", "--teachers", "250"][..],
        &["--queries", "100", "--classes", "10", "--delta", "1e-5"],
    ];
    let account = json(&place, &account.concat());
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
    let text = place.succeeds(&[&PLAN[..], &["--coins", "4", "--without-times"]].concat());
    assert!(text.starts_with("forecast: ") && !text.contains("core-seconds") && text.contains("24488 bytes"), "{text}");
}

#[test]
fn a_plan_finds_the_noise_of_a_target() {
    let place = Workplace::new("");
    for (mechanism, ratio) in [("binomial", "1"), ("binomial", "0.7"), ("discrete-laplace", "1"), ("gaussian", "0.9")] {
        let arguments = ["--epsilon", "3", "--honest-ratio", ratio, "--mechanism", mechanism, "--without-times"];
        let plan = json(&place, &[&PLAN[..9], &arguments].concat());
        let epsilon = number(&plan["account"]["epsilon"]);
        assert!(epsilon <= 3.0 && epsilon > 2.8, "{mechanism}: {epsilon}");
        assert_eq!(plan["cost"].is_null(), mechanism == "gaussian", "{plan}");
        assert_eq!(plan["without_cost"].is_string(), mechanism == "gaussian", "{plan}");
        assert!(plan["cost"]["core_seconds"].is_null());
    }
}

#[test]
fn both_forms_of_a_pilot_give_the_same_forecast() {
    let place = Workplace::new("");
    // Ten teachers and three queries of three classes.
    npy(&place.path("histograms.npy"), "3, 3", &[7, 2, 1, 3, 4, 3, 0, 0, 10]);
    let labels: Vec<u8> = (0..10_u8)
        .flat_map(|teacher| {
            let label = |ends: [u8; 2]| ends.iter().filter(|end| teacher >= **end).count() as u8;
            [label([7, 9]), label([3, 7]), 2]
        })
        .collect();
    npy(&place.path("labels.npy"), "10, 3", &labels);
    let plan = |votes: &str, form: &str, teachers: &str| {
        let more = ["plan", "--votes", votes, "--form", form, "--classes", "3", "--teachers", teachers];
        json(&place, &[&more[..], &["--gamma", "0.5", "--without-times"]].concat())
    };
    let (histograms, labels) = (plan("histograms.npy", "histograms", "40"), plan("labels.npy", "labels", "40"));
    assert_eq!(histograms["forecasts"], labels["forecasts"]);
    assert_eq!(
        (&labels["queries"], &labels["classes"], &labels["votes_file"]["teachers"]),
        (&3.into(), &3.into(), &10.into())
    );
    assert_eq!((&labels["forecasts"][0]["votes"], &labels["agreement"]), (&"pilot".into(), &Value::Null));
    let share = |plan: &Value| number(&plan["forecasts"][0]["right_share"]);
    assert!(share(&plan("labels.npy", "labels", "10")) < share(&labels));
}

#[test]
fn a_plan_refuses_bad_values_by_name() {
    let place = Workplace::new("");
    let fails = |arguments: &[&str], words: &[&str]| place.fails(arguments, 2, words);
    let with = |more: &[&'static str]| [&PLAN[..], more, &["--without-times"]].concat();
    fails(&with(&[]), &["--coins", "binomial noise needs --coins or --sigma"]);
    fails(&with(&["--coins", "0"]), &["--coins"]);
    fails(&with(&["--coins", "1000000"]), &["--coins"]);
    fails(&with(&["--epsilon", "0"]), &["--epsilon", "greater than 0"]);
    fails(&with(&["--epsilon", "nan"]), &["--epsilon"]);
    let laplace = [&PLAN[..9], &["--epsilon", "1e-6", "--without-times"]].concat();
    fails(&laplace, &["--epsilon", "cannot be reached"]);
    fails(&with(&["--coins", "4", "--epsilon", "1"]), &["cannot be used with"]);
    fails(&with(&["--coins", "4", "--votes", "v.npy"]), &["cannot be used with"]);
    fails(&with(&["--coins", "4", "--honest-ratio", "0.001"]), &["--honest-ratio"]);
    let changed = |name: &str, value: &'static str| {
        let mut arguments = with(&["--coins", "4"]);
        let place = arguments.iter().position(|argument| *argument == name).expect("an option");
        arguments[place + 1] = value;
        arguments
    };
    fails(&changed("--agreement", "1.5"), &["--agreement", "above 0 and at most 1"]);
    fails(&changed("--agreement", "NaN"), &["--agreement"]);
    fails(&changed("--agreement", "0"), &["--agreement"]);
    fails(&changed("--classes", "1"), &["--classes", "expected 2 to 256"]);
    fails(&changed("--classes", "257"), &["--classes", "expected 2 to 256"]);
    fails(&changed("--queries", "0"), &["--queries"]);
    fails(&changed("--queries", "1000001"), &["--queries", "at most 1000000"]);
    fails(&changed("--teachers", "0"), &["--teachers"]);
    fails(&["plan", "--teachers", "250", "--queries", "9", "--classes", "3", "--gamma", "1"], &["--agreement"]);
    place.fails(&["plan", "--teachers", "250", "--votes", "none.npy", "--gamma", "1"], 3, &["none.npy"]);
    // More queries than a round allows are forecast, but have no cost.
    let plan = json(&place, &changed("--queries", "200000"));
    assert!(
        plan["cost"].is_null() && plan["without_cost"].as_str().is_some_and(|why| why.contains("queries")),
        "{plan}"
    );
}

#[test]
fn a_target_chooses_queries_and_coins_before_anything_is_read() {
    let place = Workplace::new(TARGET);
    let plan = json(&place, &["run", "config.toml", "--dry-run"]);
    let (queries, coins) = (&plan["config"]["queries"]["count"], &plan["config"]["noise"]["coins"]);
    assert!([10, 20, 50, 100].map(Value::from).contains(queries), "{plan}");
    assert!(coins.as_u64().is_some_and(|coins| coins > 0) && plan["config"]["noise"]["mechanism"] == "binomial");
    let epsilons: Vec<f64> =
        plan["rows"].as_array().expect("rows").iter().map(|row| number(&row["data_independent"])).collect();
    assert!(epsilons.len() == 2 && epsilons.iter().all(|epsilon| *epsilon <= 3.0), "{epsilons:?}");
    assert!(epsilons.iter().any(|epsilon| *epsilon > 2.8), "{epsilons:?}");
    let notes: Vec<&str> = plan["notes"].as_array().expect("notes").iter().filter_map(Value::as_str).collect();
    assert!(
        notes[0].starts_with("privacy.target = 3,") && notes[0].contains(&format!("{queries} queries")),
        "{notes:?}"
    );
    assert!(notes[1].starts_with("forecast: "), "{notes:?}");

    // The run states the choice, and its own config gives the same run.
    let output = place.speed(&["run", "config.toml", "--json"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && said.contains("privacy.target = 3,") && said.contains("forecast: "), "{said}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    for row in report["rows"].as_array().expect("rows").iter().skip(1) {
        assert!(number(&row["data_independent"]["epsilon"]) <= 3.0 && row["queries"] == *queries, "{row}");
    }
    let folder = place.run_folder("results", "target");
    let resolved = folder.join("config.toml");
    let again = json(&place, &["run", resolved.to_str().expect("text"), "--dry-run"]);
    assert_eq!((&again["config"], &again["rows"][0]["done"]), (&plan["config"], &true.into()));
    assert!(folder.ends_with(report["run"].as_str().expect("an id")));

    // The choice does not depend on the seed, and so not on the votes; a smaller largest number is respected.
    let other = json(&place, &["run", "config.toml", "--dry-run", "--set", "seed=6"]);
    assert_eq!((&other["config"]["queries"]["count"], &other["config"]["noise"]["coins"]), (queries, coins));
    let fewer = json(&place, &["run", "config.toml", "--dry-run", "--set", "queries.count=19"]);
    assert_eq!(fewer["config"]["queries"]["count"], 10);
}

#[test]
fn a_target_refuses_keys_that_contradict_it() {
    let place = Workplace::new(TARGET);
    let refused = |changes: &[&str], words: &[&str]| {
        let changes: Vec<&str> = changes.iter().flat_map(|change| ["--set", change]).collect();
        place.fails(&[&["run", "config.toml", "--dry-run"][..], &changes].concat(), 2, words);
    };
    refused(&["privacy.agreement=0"], &["privacy.agreement", "missing"]);
    refused(&["privacy.agreement=1.1"], &["privacy.agreement", "above 0 and at most 1"]);
    refused(&["privacy.target=-1"], &["privacy.target", "at least 0"]);
    refused(&["privacy.target=inf"], &["privacy.target", "at least 0"]);
    refused(&["queries.count=9"], &["queries.count", "at least one for each class"]);
    refused(&["noise.coins=4"], &["noise.coins", "leave it out"]);
    refused(&["noise.sigma=4.0"], &["noise.sigma", "leave it out"]);
    refused(&["noise.threshold=4"], &["noise.threshold", "leave one of them out"]);
    refused(&["noise.mechanism=skellam"], &["noise.mechanism", "expected binomial"]);
    refused(&["row.2.coins=4"], &["row.2.coins", "leave it out"]);
    refused(&["row.1.gamma=0.1"], &["row.1.gamma", "leave it out"]);
    refused(&["privacy.classes=7"], &["privacy.classes", "found 7, expected 10"]);
    refused(&["privacy.chosen=true", "noise.coins=1"], &["privacy.chosen", "more than privacy.target"]);
    refused(&["privacy.target=0", "privacy.classes=7"], &["privacy.classes", "only with privacy.target"]);

    // Votes in a file: the number of classes must be given, and is compared with the file.
    let votes: Vec<u8> = (0..200).flat_map(|_| [60, 30, 10]).collect();
    npy(&place.path("votes.npy"), "200, 3", &votes);
    let of_file = ["votes.source=file", "votes.file=votes.npy"];
    refused(&of_file, &["privacy.classes", "does not determine"]);
    refused(&[&of_file[..], &["privacy.classes=4"]].concat(), &["privacy.classes", "assumed 4, but there are 3"]);
    let text = fs::read_to_string(place.path("config.toml")).expect("a config");
    let text = text.replace("source = \"uniform\"", "source = \"file\"\nfile = \"votes.npy\"");
    fs::write(place.path("config.toml"), text.replace("agreement = 0.9", "agreement = 0.9\nclasses = 3")).expect("it");
    let plan = json(&place, &["run", "config.toml", "--dry-run"]);
    assert!([3, 6, 15, 30, 60, 150].map(Value::from).contains(&plan["config"]["queries"]["count"]), "{plan}");
}

#[test]
fn a_dry_run_forecasts_labels_if_an_agreement_is_known() {
    let place = Workplace::new(TARGET);
    let set = |agreement: &str| {
        let agreement = format!("privacy.agreement={agreement}");
        place.succeeds(&["run", "config.toml", "--dry-run", "--set", "privacy.target=0", "--set", &agreement])
    };
    assert!(set("0.8").lines().any(|line| line.starts_with("# forecast: ") && line.contains("of 150")));
    assert!(!set("0").contains("forecast"));
}

#[test]
fn the_file_of_a_round_is_written_with_the_forecast_of_its_plan() {
    let parties = Parties::new();
    parties.introduce(3);
    parties.keygen("student", "", "--simulation 5");
    let line = "student round --accept-wrong-labels --public-key public.key --name test --queries 20 --classes 4 --roster roster.toml --proofs off \
                --simulation --coins 40";
    let round: Value =
        serde_json::from_str(&parties.succeeds("student", &format!("{line} --out a.toml --agreement 0.9 --json")))
            .expect("JSON");
    let place = Workplace::new("");
    let line_of_plan =
        "plan --teachers 3 --agreement 0.9 --classes 4 --queries 20 --mechanism binomial --coins 40 --without-times";
    let plan = json(&place, &line_of_plan.split(' ').collect::<Vec<_>>());
    for (index, case) in ["even", "one_rival"].into_iter().enumerate() {
        for field in ["right_share", "low", "high", "all_right"] {
            assert_eq!(round["forecast"][case][field], plan["forecasts"][index][field], "{case} {field}");
        }
    }
    let other = line.replace("--name test", "--name other");
    let text = parties.succeeds("student", &format!("{other} --out b.toml --reuse-keys"));
    assert_eq!(text.matches("forecast").count(), 1, "only that of a unanimous vote: {text}");
}
