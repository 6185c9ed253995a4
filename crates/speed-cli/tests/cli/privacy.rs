//! The privacy commands as a user or a program runs them.

use serde_json::Value;

use crate::cli::bad_input::npy;
use crate::cli::common::Workplace;

const NOISE: &str = "--gamma 0.1 --delta 1e-5";

/// A directory with four histograms of 250 teachers.
fn place() -> Workplace {
    let place = Workplace::new("");
    npy(&place.path("votes.npy"), "4, 3", &[240, 5, 5, 100, 90, 60, 0, 0, 250, 124, 125, 1]);
    place
}

fn account(place: &Workplace, more: &str) -> Value {
    let base = "account --votes votes.npy --json";
    place.json(&format!("{base} {NOISE} {more}"))
}

#[test]
fn an_account_names_its_claim() {
    let place = place();
    let tight = account(&place, "--honest-ratio 0.9");
    assert_eq!((&tight["noise"], &tight["gamma"]), (&"discrete_laplace".into(), &0.1.into()));
    for key in ["epsilon", "order", "per_query_epsilon", "bound", "assume", "publishable", "claim"] {
        assert!(!tight[key].is_null(), "{key}: {tight}");
    }
    let epsilon = |account: &Value| account["epsilon"].as_f64().expect("a number");
    assert_eq!(
        (&tight["bound"], &tight["assume"], &tight["directions"]),
        (&"tight".into(), &"dropout".into(), &"both".into())
    );
    assert_eq!(tight["queries"], 4);
    let words = tight["claim"].as_str().expect("text");
    assert!(words.contains("exactly 25 of 250 teachers") && words.contains("Not publishable"), "{words}");

    let up_to = account(&place, "--honest-ratio 0.9 --up-to");
    assert!(up_to["claim"].as_str().expect("text").contains("up to 25 of 250 teachers"), "{up_to}");
    assert!(epsilon(&up_to) >= epsilon(&tight));

    let collusion = account(&place, "--honest-ratio 0.9 --assume collusion");
    let paper = account(&place, "--honest-ratio 0.9 --bound paper --mechanism laplace");
    let both = account(&place, "--honest-ratio 0.9 --bound paper --mechanism laplace --both-directions");
    let any = account(&place, "--honest-ratio 0.9 --any-votes");
    assert!(
        epsilon(&tight) <= epsilon(&collusion)
            && epsilon(&collusion) <= epsilon(&any)
            && epsilon(&paper) <= epsilon(&both)
    );
    assert_eq!((&paper["directions"], &any["publishable"]), (&"one".into(), &true.into()));

    let rows = account(&place, "--rows 1..3");
    assert_eq!(rows["queries"], 2);
    npy(&place.path("index.npy"), "3,", &[0, 0, 2]);
    assert_eq!(account(&place, "--queries index.npy")["queries"], 3);
    assert!(epsilon(&account(&place, "--threshold 150")) > 0.0);
    let gaussian = place.json("account --votes votes.npy --json --mechanism gaussian --sigma 40 --delta 1e-5");
    assert_eq!((&gaussian["noise"], &gaussian["sigma"]), (&"gaussian".into(), &40.0.into()));
    let edge = place.succeeds(&format!("account --votes votes.npy --orders 2 --bound paper {NOISE}"));
    assert!(edge.contains("Warning: the best order is at the edge"), "{edge}");
}

#[test]
fn calibration_audit_and_ledger() {
    let place = place();
    let target = "calibrate --epsilon 5 --delta 1e-5 --json";
    let found = place.json(&format!("{target} --queries 100"));
    let gamma = found["scale"].as_f64().expect("a number");
    let text = gamma.to_string();
    let queries = place.json(&format!("{target} --gamma {text}"));
    assert_eq!(queries["queries"], 100);

    let exact = place.json("audit --gamma 1 --runs 3000 --json");
    assert_eq!(exact["refuted"], false);
    for kind in ["skellam", "gaussian"] {
        let audit = format!("audit --mechanism {kind} --sigma 2 --votes 6,4 --runs 3000 --json");
        let found = place.json(&audit);
        assert!(found["refuted"] == false && found["claim"].as_f64() > Some(0.5), "{found}");
    }
    let coins = "audit --mechanism binomial --coins 4 --votes 6,4 --runs 3000 --json";
    let coins = place.json(&coins);
    assert!(coins["refuted"] == false && coins["claim"].as_f64() > Some(0.1) && coins["coins"] == 4, "{coins}");
    place.fails("audit --mechanism laplace --gamma 1", 2, &["no exact sampler"]);
    place.fails("audit --mechanism skellam --sigma 2 --noise truncated", 2, &["discrete-laplace"]);
    place.fails("audit --gamma 1 --votes 125,125 --noise truncated --runs 20000", 6, &["the audit refutes the claim"]);

    place.succeeds("ledger create ledger --epsilon 7 --delta 1e-5");
    let charge = "ledger charge ledger --gamma 0.1 --queries 100";
    place.succeeds(&charge);
    place.fails(&charge, 6, &["the budget is 7", "nothing was charged"]);
    let shown = place.json("ledger show ledger --json");
    assert_eq!(shown["queries"], 100);
    assert_eq!(place.json("ledger check ledger --json")["good"], true);
    place.fails("ledger create ledger --epsilon 1 --delta 1e-5", 4, &["cannot create"]);
    let text = place.read("ledger").replace("\"queries\":100", "\"queries\":1");
    place.write("ledger", text);
    place.fails("ledger check ledger", 3, &["line 2", "checksum"]);
}

#[test]
fn binomial_noise_is_given_by_the_coins_of_a_teacher() {
    let place = place();
    let account = "account --delta 1e-5 --mechanism binomial --json";
    let any = format!("{account} --any-votes --queries 100");
    let of = |more: &str| place.json(&format!("{any} {more}"));
    let epsilon = |account: &Value| account["epsilon"].as_f64().expect("a number");
    // 250 teachers with 4 coins each have a deviation of sqrt(1000) / 2 = 15.81 votes.
    let four = of("--coins 4 --teachers 250");
    assert_eq!((&four["noise"], &four["coins"]), (&"binomial".into(), &1_000.into()));
    assert!(epsilon(&four) > 2.9 && epsilon(&four) < 3.68, "{four}");
    assert_eq!(of("--sigma 15.8 --teachers 250"), four);
    let three = of("--sigma 13 --teachers 250");
    assert!(three["coins"] == 750 && epsilon(&three) > epsilon(&four), "{three}");
    // The votes know the number of teachers.
    let votes = format!("{account} --votes votes.npy --coins 4");
    assert_eq!(place.json(&votes)["coins"], 1_000);
    place.fails(&format!("{votes} --form histograms --teachers 249"), 3, &["249"]);

    let refused = |more: &str, words: &[&str]| place.fails(&format!("{any} {more}"), 2, words);
    refused("--coins 4", &["--teachers", "number of teachers"]);
    refused("--teachers 250", &["--coins or --sigma"]);
    refused("--teachers 250 --coins 65537", &["--coins", "from 1 to 1048576"]);
    let gaussian = "account --any-votes --queries 1 --delta 1e-5 --mechanism gaussian";
    place.fails(&format!("{gaussian} --coins 4"), 2, &["--coins", "only binomial noise"]);
    place.fails("figure tau --votes votes.npy --mechanism binomial", 2, &["Laplace"]);

    // Two coins would cost more than the target, three cost less.
    let target = "calibrate --mechanism binomial --epsilon 4 --delta 1e-5";
    let teachers = "--teachers 250 --queries 100";
    let found = place.json(&format!("{target} {teachers} --json"));
    assert_eq!((&found["coins_of_teacher"], &found["scale"]), (&3.into(), &750.0.into()));
    assert!(found["deviation"].as_f64().is_some_and(|deviation| (deviation - 13.69).abs() < 0.01), "{found}");
    assert!(epsilon(&found["account"]) <= 4.0 && found["account"]["coins"] == 750, "{found}");
    let text = place.succeeds(&format!("{target} {teachers}"));
    assert!(text.contains("binomial noise of coins 3 a teacher (750 in all, deviation 13.7)"), "{text}");
}

#[test]
fn noise_that_is_calibrated_is_in_the_range_of_all_commands() {
    let place = place();
    let calibrate = "calibrate --delta 1e-5 --epsilon";
    let of = |more: &str| place.json(&format!("{calibrate} {more} --json"));
    // Noise that cannot be drawn is refused with the widest possible noise and the next step.
    let far = format!("{calibrate} 1 --queries 100000");
    place.fails(&far, 2, &["--epsilon", "gamma 0.001", "fewer queries or a larger epsilon"]);
    // Property tests of the accountant calibrate other targets. The audit refutes by chance in one run of 16 million.
    let scale = of("1 --queries 20000")["scale"].as_f64().expect("a number");
    let audit = format!("audit --gamma {scale} --runs 100 --votes 2,1 --confidence 0.9999");
    place.succeeds(&audit);
    let endless = "audit --gamma 0.1 --runs 1000000000000000";
    place.fails(&endless, 2, &["--runs", "takes days", "at most"]);
    for (command, more) in [
        ("account", "--any-votes --queries 5 --delta 1e-5"),
        ("calibrate", "--epsilon 100 --delta 1e-5"),
        ("audit", ""),
    ] {
        let gamma = format!("{command} --gamma 0.0001 {more}");
        place.fails(&gamma, 2, &["--gamma", "0.0001", "from 0.001 to 1000000"]);
        let sigma = format!("{command} --mechanism skellam --sigma 1000001 {more}");
        place.fails(&sigma, 2, &["--sigma", "from 0.01 to 1000000"]);
    }
}

#[test]
fn a_calibration_says_which_keys_a_round_needs() {
    let place = place();
    fn calibrate(epsilon: &str, more: &str) -> String {
        format!("calibrate --delta 1e-5 --queries 100 --epsilon {epsilon} {more}")
    }
    let keys = |epsilon: &str| place.json(&calibrate(epsilon, "--teachers 250 --json"))["round"].clone();
    assert_eq!(keys("5")["parameters"], "TOURNAMENT_128");
    assert_eq!(keys("1")["parameters"], "WIDE_128");
    let none = keys("0.05");
    assert!(none["parameters"].is_null() && none["difference"].as_u64() > Some(30_000), "{none}");
    assert!(place.json(&calibrate("5", "--json")).get("round").is_none());
    let text = |epsilon: &str| place.succeeds(&calibrate(epsilon, "--teachers 250"));
    assert!(!text("5").contains("round of 250 teachers"));
    assert!(text("1").contains("An encrypted round of 250 teachers needs WIDE_128 keys"));
    assert!(text("0.05").contains("No encrypted round of 250 teachers takes this noise"));
}

#[test]
fn a_released_value_may_be_published_unless_it_is_a_simulation() {
    let place = place();
    let rows: Vec<u8> = (0..60).flat_map(|_| [240, 5, 5]).collect();
    npy(&place.path("many.npy"), "60, 3", &rows);
    let release = "account --votes many.npy --form histograms --release";
    let of = |more: &str| place.json(&format!("{release} {NOISE} {more} --json"));
    let released = of("--assume collusion --honest-ratio 0.9");
    assert_eq!(released["publishable"], true);
    assert!(released["claim"].as_str().expect("text").contains("May be published, once"), "{released}");
    let seeded = of("--simulation 7");
    assert_eq!((&seeded["publishable"], &seeded["release"]["simulation"]), (&false.into(), &true.into()));
    assert_eq!(seeded, of("--simulation 7"));
    let text = place.succeeds(&format!("{release} {NOISE} --simulation 7"));
    assert!(text.starts_with("SIMULATION"), "{text}");
    place.fails("account --votes many.npy --gamma 1 --delta 1e-5 --simulation 7", 2, &["--release"]);
}

#[test]
fn figures_are_drawn_and_not_overwritten() {
    let place = place();
    for kind in ["gamma", "tau"] {
        let draw = format!("figure {kind} --votes votes.npy");
        place.succeeds(&draw);
        let read = |extension: &str| place.read(&format!("figure-{kind}.{extension}"));
        assert_eq!(read("csv").lines().count(), 61);
        assert!(read("csv").starts_with(&format!("{kind},paper,tight\n")));
        assert!(read("svg").starts_with("<svg") && read("svg").contains("epsilon of all queries"));
        place.fails(&draw, 4, &["already exists", "never overwritten"]);
        // `--out` may name either file.
        let named = place.json(&format!("{draw} --out {kind}.svg --json"));
        assert_eq!(named["csv"], format!("{kind}.csv"));
        assert!(place.path(&format!("{kind}.svg")).exists());
        let _ =
            std::fs::remove_file(place.path("again.svg")).and_then(|()| std::fs::remove_file(place.path("again.csv")));
        let drawn = place.json(&format!("{draw} --out again --json"));
        assert_eq!(drawn["curves"]["tight"].as_array().map(Vec::len), Some(60));
    }
}

#[test]
fn bad_flags_and_votes_are_refused() {
    let place = place();
    let base = "account --votes votes.npy";
    let refused = |more: &str, code: i32, words: &[&str]| place.fails(&format!("{base} {more}"), code, words);
    refused("--delta 1e-5", 2, &["--gamma"]);
    refused("--gamma 0 --delta 1e-5", 2, &["gamma is 0"]);
    refused("--gamma 0.1 --delta 2", 2, &["delta is 2"]);
    refused("--gamma 0.1 --delta 1e-5 --rows 3..9", 2, &["not within the file's 4 queries"]);
    refused("--gamma 0.1 --delta 1e-5 --assume central --honest-ratio 0.9", 2, &["must be 1"]);
    refused("--gamma 0.1 --delta 1e-5 --mechanism cauchy", 2, &["expected laplace"]);
    place.fails("account --votes none.npy --gamma 0.1 --delta 1e-5", 3, &["cannot read"]);
    let priced = "account --any-votes --gamma 0.1 --delta 1e-5 --honest-ratio 0.95";
    let without_votes = |more: &str| place.json(&format!("{priced} {more} --json"));
    let price = without_votes("--queries 100 --teachers 10");
    assert_eq!((&price["queries"], &price["tau"], &price["publishable"]), (&100.into(), &0.9.into(), &true.into()));
    assert!(price["epsilon"].as_f64().is_some_and(|epsilon| (epsilon - 6.08).abs() < 0.01), "{price}");
    place.fails(&priced, 2, &["--queries", "expected a number of queries"]);
    place.fails(&format!("{priced} --queries votes.npy"), 2, &["--queries", "votes.npy"]);
    place.fails("account --gamma 0.1 --delta 1e-5 --queries 9", 2, &["--votes"]);
    refused("--gamma 0.1 --delta 1e-5 --queries votes.npy", 3, &["one row of indices", "[4, "]);
    place.fails("list --results nowhere", 4, &["nowhere", "no such folder"]);
    place.fails("ledger show nothing", 3, &["cannot open"]);
    place.fails("figure tau --votes votes.npy --mechanism gaussian", 2, &["Laplace"]);
}
