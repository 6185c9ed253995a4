//! `speed verify`: cards of runs, and every changed field.

use std::fs;
use std::path::Path;

use image::{GrayImage, Luma};
use serde_json::{Value, json};
use speed_core::Digest;

use crate::cli::common::{TINY, Workplace, contains, read_json};
use crate::cli::predict::text;
use crate::cli::roles::{Parties, labels};

/// Writes a card that was changed on purpose, with a correct checksum and without its Markdown form.
pub(crate) fn forge(path: &Path, change: impl FnOnce(&mut Value)) {
    let mut card = read_json(path);
    card.as_object_mut().expect("an object").remove("sha256");
    change(&mut card);
    card["sha256"] = json!(Digest::of(card.to_string().as_bytes()).to_hex());
    fs::write(path, format!("{card:#}\n")).expect("a card");
    let _ = fs::remove_file(path.with_extension("md"));
}

/// Checks that no change on purpose, with a new checksum, is accepted.
fn refuse_forgeries(place: &Workplace, card: &Path, original: &str) {
    for (place_of, value, words) in [
        ("/publishable", json!(false), &["model-card.json", "publishable: expected true, found false"][..]),
        (
            "/privacy/data_independent/epsilon",
            json!(0.1),
            &["model-card.json", "privacy.data_independent.epsilon: expected"],
        ),
        ("/simulation", json!(true), &["model-card.json", "simulation: expected false, found true"]),
        ("/models/0/sha256", json!("00"), &["model-card.json", "models.0.sha256"]),
        ("/source/run/run", json!("0123456789ab"), &["model-card.json", "source.run.run"]),
        ("/source/run/row", json!("no row"), &["expected a row called no row"]),
        ("/models/0/file", json!("../trusted/student-0.safetensors"), &["in the card's folder"]),
    ] {
        fs::write(card, original).expect("a card");
        forge(card, |card| *card.pointer_mut(place_of).expect(place_of) = value);
        place.fails(&format!("verify {}", text(card)), 3, words);
    }
    fs::write(card, original).expect("a card");
}

#[test]
fn the_card_of_a_run_is_verified_and_every_change_is_refused() {
    let place = Workplace::new(&TINY.replace("repeats = 2\n", "repeats = 1\n"));
    place.succeeds("run config.toml --set noise.source=operating-system");
    let run = place.run_folder("results", "tiny");
    let card = run.join("models/tau-0-8/model-card.json");
    let verify = format!("verify {}", text(&card));
    let found = place.json(&format!("{verify} --json"));
    let report = read_json(&run.join("tables/report.json"));
    let claim = &report["rows"][2]["data_independent"];
    assert_eq!((&found["epsilon"], &found["delta"]), (&claim["epsilon"], &claim["delta"]));
    assert_eq!((&found["source"], &found["publishable"]), (&json!("run"), &json!(true)));
    let told = place.succeeds(&verify);
    assert!(told.contains("computed again") && told.contains(claim["claim"].as_str().expect("a claim")), "{told}");

    // What people read is compared too.
    let original = fs::read_to_string(&card).expect("a card");
    let page = fs::read_to_string(card.with_extension("md")).expect("a card");
    fs::write(card.with_extension("md"), page.replace("epsilon", "no epsilon")).expect("a card");
    place.fails(&verify, 3, &["model-card.md", "it was changed"]);
    fs::remove_file(card.with_extension("md")).expect("a card");
    // A key that occurs twice, of which readers may see the first.
    fs::write(&card, original.replacen('{', "{\n  \"simulation\": true,", 1)).expect("a card");
    place.fails(&verify, 3, &["changed"]);
    // A change by mistake.
    fs::write(&card, original.replace("\"counted\": 5", "\"counted\": 6")).expect("a card");
    place.fails(&verify, 3, &["changed", "checksum"]);
    refuse_forgeries(&place, &card, &original);
    // A model of another row.
    let own = fs::read(card.with_file_name("student-0.safetensors")).expect("a model");
    fs::copy(run.join("models/trusted/student-0.safetensors"), card.with_file_name("student-0.safetensors"))
        .expect("a copy");
    place.fails(&verify, 3, &["student-0.safetensors", "another run, row, student or round"]);
    fs::write(card.with_file_name("student-0.safetensors"), own).expect("a model");
    forge(&card, |card| {
        let first = card["models"][0].clone();
        card["models"].as_array_mut().expect("models").push(first);
    });
    place.fails(&verify, 3, &["different names"]);
    fs::write(&card, &original).expect("a card");
    place.succeeds(&verify);
    // The command of the card works where the card lies.
    let here = place.command("verify model-card.json").current_dir(card.parent().expect("a folder")).output();
    assert!(here.expect("the binary starts").status.success());

    // The claim does not come from the report.
    let path = run.join("tables/report.json");
    let honest = fs::read_to_string(&path).expect("a report");
    let mut report: Value = serde_json::from_str(&honest).expect("JSON");
    report["rows"][2]["data_independent"]["epsilon"] = json!(0.01);
    fs::write(&path, report.to_string()).expect("a report");
    place.succeeds(&verify);
    // The config of the report is that of the run.
    report["config"]["noise"]["gamma"] = json!(0.5);
    fs::write(&path, report.to_string()).expect("a report");
    place.fails(&verify, 3, &["another run, row, student or round"]);
    fs::write(&path, honest).expect("a report");

    // Away from its run, the card needs the run.
    fs::create_dir(place.path("away")).expect("a folder");
    for name in ["model-card.json", "student-0.safetensors"] {
        fs::copy(card.with_file_name(name), place.path("away").join(name)).expect("a copy");
    }
    place.fails("verify away/model-card.json", 3, &["--run"]);
    place.succeeds(&format!("verify away/model-card.json --run {}", text(&run)));
    place.fails("verify away/model-card.json --round round.toml", 2, &["--run or nothing"]);
    place.fails("verify config.toml", 3, &["config.toml", "expected the card of a model"]);
    place.fails("verify missing.json", 3, &["missing.json"]);
}

#[test]
fn the_card_of_a_run_of_parties_has_both_claims() {
    let one_row = TINY.replace("repeats = 2\n", "repeats = 1\n");
    let place = Workplace::new(&one_row);
    place.succeeds("run config.toml --set ensemble.parties=2 --set noise.source=operating-system");
    let run = place.run_folder("results", "tiny");
    let card = run.join("models/tau-0-8/model-card.json");
    let verify = format!("verify {}", text(&card));
    let report = read_json(&run.join("tables/report.json"));
    let found = place.json(&format!("{verify} --json"));
    let expected = &report["rows"][2]["data_independent_party"]["epsilon"];
    assert_eq!(found["party"], json!({ "teachers": 3, "epsilon": expected }));
    let told = place.succeeds(&verify);
    let page = fs::read_to_string(card.with_extension("md")).expect("a card");
    for text in [&told, &page] {
        contains(text, &["if every party gave all records of a person to the same teacher", "one party's 3 teachers"]);
    }
    // The ledger of the run states the party too.
    let ledger = place.succeeds("ledger show results/tiny/ledger");
    assert!(ledger.contains("for all votes of the party of up to 3 teachers"), "{ledger}");
    // A missing claim, and a changed one.
    let original = fs::read_to_string(&card).expect("a card");
    type Change = fn(&mut Value);
    let changes: [(Change, &str); 2] = [
        (|card| drop(card["privacy"].as_object_mut().expect("noise").remove("party")), "privacy.party: expected {"),
        (|card| card["privacy"]["party"]["data_independent"]["epsilon"] = json!(0.1), "party.data_independent.epsilon"),
    ];
    for (change, words) in changes {
        forge(&card, change);
        place.fails(&verify, 3, &["model-card.json", words]);
        fs::write(&card, &original).expect("a card");
    }
    // The claim does not come from the report.
    let path = run.join("tables/report.json");
    let mut lie = report.clone();
    lie["rows"][2]["data_independent_party"] = Value::Null;
    fs::write(&path, lie.to_string()).expect("a report");
    place.succeeds(&verify);
}

#[test]
fn cards_of_simulations_and_of_rows_without_noise_say_so() {
    let place = Workplace::finished(&TINY.replace("repeats = 2\n", "repeats = 1\n"));
    let models = place.run_folder("results", "tiny").join("models");
    let verified = |row: &str| place.succeeds(&format!("verify {}", text(&models.join(row).join("model-card.json"))));
    assert!(verified("tau-0-8").starts_with("SIMULATION"));
    let none = verified("non-private");
    assert!(none.starts_with("SIMULATION") && none.contains("the labels have no noise"), "{none}");
    let card = fs::read_to_string(models.join("tau-0-8/model-card.md")).expect("a card");
    assert!(card.contains("SIMULATION") && card.contains("speed verify model-card.json"), "{card}");
}

/// Writes pictures to the student's directory `pool`.
pub(crate) fn draw_pool(parties: &Parties) {
    for image in 0..20_u8 {
        let picture = GrayImage::from_fn(16, 16, |x, y| Luma([(x * 3 + y * 5) as u8 + 7 * image]));
        picture.save(parties.path("student/pool", &format!("{image:02}.png"))).expect("a picture");
    }
}

#[test]
fn the_card_of_a_round_is_verified_from_its_public_files() {
    let (queries, teachers) = (4, 3);
    let parties = Parties::new();
    parties.agree(queries, teachers, "--mechanism binomial --coins 42 --min-teachers 2");
    // One teacher stays away.
    for teacher in 0..2 {
        parties.answer(teacher, &labels(teacher, queries));
    }
    parties.aggregate();
    parties.open();
    draw_pool(&parties);
    let train = "student train --pool pool --labels labels.csv --round round.toml --epochs 1 --seed 1";
    parties.succeeds("student", &format!("{train} --result result --out counted.safetensors"));
    parties.succeeds("student", &format!("{train} --out least.safetensors"));
    let card = |name: &str| read_json(&parties.path("student", &format!("{name}-card.json")));
    let counted = card("counted");
    assert_eq!(
        counted["participants"],
        json!({ "teachers": 3, "counted": 2, "names": ["hospital-0", "hospital-1", "hospital-2"] })
    );
    assert_eq!((&counted["simulation"], &counted["publishable"]), (&json!(true), &json!(false)));
    // Without the result, it is unknown whether the labels are those of the round.
    assert!(card("least")["publishable"].is_null());
    let page = parties.read("student", "least-card.md");
    assert!(page.contains("at least 2 of 3 teachers counted"), "{page}");
    assert!(counted["source"]["round"]["sum"].is_string());
    // The smallest number that the round accepts is the number that was counted, so the epsilons are equal.
    assert_eq!(counted["privacy"], card("least")["privacy"]);

    parties.fails("student", &format!("{train} --delta 0.5 --out large.safetensors"), 2, &[]);

    // A third party has the public files only.
    let public = "counted.safetensors counted-card.json least.safetensors least-card.json round.toml result";
    public.split(' ').for_each(|file| parties.send(("student", file), ("reader", file)));
    let both = "verify counted-card.json --round round.toml --result result";
    let told = parties.succeeds("reader", both);
    assert!(told.contains("computed again") && told.contains("Statements of the student"), "{told}");
    let found = parties.json("reader", &format!("{both} --json"));
    assert_eq!(found["epsilon"], counted["privacy"]["data_independent"]["epsilon"]);
    parties.succeeds("reader", "verify least-card.json --round round.toml");
    let fails = |line: &str, code, words| parties.fails("reader", line, code, &[words]);
    fails("verify counted-card.json", 2, "expected the round's file");
    fails("verify counted-card.json --round round.toml", 2, "expected the round's result");
    fails("verify least-card.json --round round.toml --result result", 2, "expected no result");
    let path = parties.path("reader", "counted-card.json");
    let original = fs::read_to_string(&path).expect("a card");
    for (place, value, words) in [
        ("/privacy/data_independent/epsilon", json!(0.5), "privacy.data_independent.epsilon"),
        ("/participants/counted", json!(3), "participants.counted: expected 2, found 3"),
        ("/source/round/sum", json!("00"), "source.round.sum"),
        ("/publishable", json!(true), "publishable: expected false, found true"),
    ] {
        forge(&path, |card| *card.pointer_mut(place).expect(place) = value);
        fails(both, 3, words);
        fs::write(&path, &original).expect("a card");
    }
    // A model that does not know the result.
    parties.send(("student", "least.safetensors"), ("reader", "counted.safetensors"));
    fails(both, 3, "models.0.sha256");
}
