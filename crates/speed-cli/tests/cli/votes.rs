//! Files of votes from different programs, in a given form or in the only possible form.

use std::fs;

use serde_json::Value;

use crate::cli::bad_input::npy;
use crate::cli::common::{Workplace, check_failure};
use crate::cli::roles::{ANSWER, Parties};

const NOISE: &str = "--gamma 0.4 --delta 1e-5";

/// The votes of ten teachers that agree on sixty queries of ten classes.
fn unanimous() -> Vec<u8> {
    (0..60).map(|query| (query * 7 % 10) as u8).collect()
}

/// A directory with these votes as labels and as histograms.
fn place() -> Workplace {
    let place = Workplace::new("");
    npy(&place.path("labels.npy"), "10, 60", &unanimous().repeat(10));
    let histograms: Vec<u8> =
        unanimous().iter().flat_map(|&label| (0..10).map(move |class| if class == label { 10 } else { 0 })).collect();
    npy(&place.path("histograms.npy"), "60, 10", &histograms);
    place
}

fn account(place: &Workplace, votes: &str, more: &str) -> Value {
    let base = format!("account --json --votes {votes}");
    place.json(&format!("{base} {NOISE} {more}"))
}

fn csv(rows: &[u8], columns: usize, separator: &str, end: &str) -> String {
    let line = |row: &[u8]| row.iter().map(u8::to_string).collect::<Vec<_>>().join(separator) + end;
    rows.chunks(columns).map(line).collect()
}

#[test]
fn a_file_that_may_be_labels_or_histograms_is_refused_by_every_command() {
    let place = place();
    let readings = ["--form", "as labels: 10 teachers, 60 queries", "as histograms: 10 queries, 60 classes"];
    let refused = |arguments: &str| place.fails(&format!("{arguments} --votes labels.npy"), 2, &readings);
    refused(&format!("account {NOISE}"));
    refused("figure gamma");
    refused("calibrate --epsilon 5 --delta 1e-5");
    refused("audit --gamma 1 --query 3");
    // Histograms with a missing vote in one row are not read as labels.
    npy(&place.path("lost.npy"), "3, 3", &[2, 1, 0, 0, 3, 0, 1, 1, 0]);
    place.fails(&format!("account --votes lost.npy {NOISE}"), 2, &["--form"]);
    place.fails(
        &format!("account --votes lost.npy --form histograms {NOISE}"),
        3,
        &["row 2 sums to 2, expected the number of teachers, 3 on row 0", "if some votes are empty, give --teachers N"],
    );
    place.fails(
        "plan --teachers 3 --votes lost.npy --form histograms --gamma 1",
        3,
        &["row 2 sums to 2", "if some votes are empty, give labels (teachers x queries)"],
    );
    for (bytes, words) in
        [(&b"P\0K\0"[..], ["UTF-16", "UTF-8"]), (&b"PK\x03\x04rubbish"[..], ["ZIP archive", "numpy.save"])]
    {
        place.write("votes.csv", bytes);
        place.fails(&format!("account --votes votes.csv {NOISE}"), 3, &words);
    }
    // Labels do not reveal classes without a vote.
    let labels = format!("account --votes labels.npy --form labels {NOISE}");
    place.fails(&labels, 2, &["--classes", "labels do not show classes without a vote"]);
    place.fails(&format!("{labels} --classes 9"), 3, &["votes for class 9 on query 7, expected 0 to 8"]);
    place.fails(&format!("{labels} --classes 10 --teachers 11"), 3, &["10 teachers as labels, expected 11"]);
}

#[test]
fn labels_and_histograms_of_the_same_votes_cost_the_same() {
    let place = place();
    let truth = account(&place, "histograms.npy", "--form histograms");
    let epsilon = truth["epsilon"].as_f64().expect("a number");
    assert!((epsilon - 7.24).abs() < 0.02 && truth["queries"] == 60, "{truth}");
    let read = serde_json::json!({ "form": "labels", "teachers": 10, "queries": 60, "classes": 10, "selected": 60 });
    place.write("labels.csv", csv(&unanimous().repeat(10), 60, ",", "\n"));
    for more in ["--classes 10", "--classes 10 --teachers 10", "--form labels --classes 10"] {
        for votes in ["labels.npy", "labels.csv"] {
            let found = account(&place, votes, more);
            assert_eq!((&found["epsilon"], &found["votes_file"]), (&truth["epsilon"], &read), "{votes} {more:?}");
        }
    }
    // The number of classes may exceed the highest label.
    assert_ne!(account(&place, "labels.npy", "--classes 12")["epsilon"], truth["epsilon"]);
    // The number of teachers also leaves only one possible form.
    npy(&place.path("three.npy"), "4, 3", &[2, 1, 0, 0, 3, 0, 1, 1, 1, 3, 0, 0]);
    assert_eq!(account(&place, "three.npy", "--teachers 3")["votes_file"]["form"], "histograms");

    let text = place.succeeds(&format!("account --votes labels.npy --classes 10 {NOISE}"));
    assert!(text.ends_with("Votes read: 10 teachers, 60 queries, 10 classes (labels).\n"), "{text}");
    // Sums do not show a teacher whose votes are all empty.
    let histograms = format!("account --votes histograms.npy --form histograms {NOISE}");
    let only = "10 classes (histograms).\nThe number of teachers is the sum of every row; the result holds only if no vote is empty.\n";
    let text = place.succeeds(&histograms);
    assert!(text.ends_with(only), "{text}");
    assert!(place.succeeds(&format!("{histograms} --teachers 10")).ends_with("(histograms).\n"));
    let with_an_absent_teacher = account(&place, "histograms.npy", "--form histograms --teachers 11");
    assert!(with_an_absent_teacher["epsilon"].as_f64().expect("a number") >= epsilon);
    place.write("index.csv", "\u{feff}query\r\n0\r\n59\r\n");
    for (votes, form) in [("labels.npy", "labels"), ("histograms.npy", "histograms")] {
        let of = |more: &str| account(&place, votes, &format!("--form {form} --classes 10 {more}"));
        let some = of("--queries index.csv");
        assert_eq!((&some["queries"], &some["votes_file"]["selected"]), (&2.into(), &2.into()));
        assert_eq!(of("--rows 3..7")["queries"], 4);
    }
    let calibrated = "calibrate --epsilon 5 --delta 1e-5 --json";
    let of = |more: &str| -> Value { place.json(&format!("{calibrated} {more}")) };
    let (by_file, by_number) = (of("--votes labels.npy --form labels"), of("--queries 60 --teachers 10"));
    assert_eq!((&by_file["scale"], &by_file["queries"]), (&by_number["scale"], &60.into()));
    // A ledger's search takes its numbers from the command line alone, so a file is refused and not ignored.
    for of_a_ledger in ["--budget", "--ledger ledger"] {
        let file = format!("calibrate --epsilon 5 --delta 1e-5 {of_a_ledger} --votes labels.npy --form labels");
        place.fails(&file, 2, &["--votes"]);
    }
    let audit = "audit --gamma 1 --runs 1000 --votes labels.csv --classes 10 --json";
    let audited = place.json(&format!("{audit} --query 7"));
    assert_eq!((&audited["votes"][0], &audited["votes_file"]["selected"]), (&10.into(), &1.into()));
    place.fails(&format!("{audit} --query 60"), 2, &["--query", "0 to 59"]);
    place.succeeds("figure tau --votes labels.csv --classes 10");
}

/// A run without images on votes from a file, with real noise.
const RUN: &str = r#"
name = "votes"
data = { source = "none", pool_images = 3 }
ensemble = { teachers = 3 }
votes = { source = "file", file = "votes.npy" }
queries = { count = 2 }
noise = { source = "simulation" }
table = { repeats = 0 }
row = [
    { name = "Trusted", aggregation = "trusted" },
]
"#;

#[test]
fn a_run_asks_for_the_form_and_the_classes_that_it_cannot_know() {
    let place = Workplace::new(RUN);
    fn run(more: &str) -> String {
        format!("run config.toml {more}")
    }
    npy(&place.path("votes.npy"), "3, 3", &[1; 9]);
    place.fails(
        &run(""),
        2,
        &["`votes.form`", "as labels: 3 teachers, 3 queries", "as histograms: 3 queries, 3 classes"],
    );
    place.fails(&run("--dry-run"), 2, &["`votes.form`"]);
    place.fails(&run("--set votes.form=labels"), 2, &["`votes.classes`"]);
    place.fails(&run("--set votes.form=label"), 2, &["`votes.form`", "expected labels or histograms"]);
    place.fails(&run("--set votes.classes=1"), 2, &["`votes.classes`", "2 to 256"]);
    let said = |more: &str| {
        let output = place.speed(&run(more));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let labels = said("--set votes.form=labels --set votes.classes=10");
    assert!(labels.contains("votes.npy: 3 teachers, 3 queries, 10 classes (labels)"), "{labels}");
    // Three of ten columns cannot be three classes.
    assert!(said("--set votes.classes=10").contains("10 classes (labels)"));
    let histograms = said("--set votes.form=histograms");
    assert!(histograms.contains("votes.npy: 3 teachers, 3 queries, 3 classes (histograms)"), "{histograms}");
    // Histograms with a missing vote are not read as labels.
    npy(&place.path("votes.npy"), "3, 3", &[1, 1, 0, 1, 1, 1, 1, 1, 1]);
    place.fails(&run("--set name=lost"), 2, &["`votes.form`"]);
}

/// A round of three queries with two teachers; the student's list names the queries.
fn round(list: &str, queries: usize) -> Parties {
    let parties = Parties::new();
    parties.write("student", "queries.csv", list);
    parties.agree(queries, 2, "--gamma 1 --query-list queries.csv");
    parties.send(("student", "queries.csv"), ("teacher 0", "queries.csv"));
    parties
}

#[test]
fn a_teachers_votes_may_name_the_queries_in_any_order() {
    let parties = round("\u{feff}name\r\n\"b, left.png\"\r\n17\r\na.png\r\n", 3);
    let votes = |text: &[u8]| parties.write("teacher 0", "votes.csv", text);
    let answer = format!("{ANSWER} --simulation 8 --out message --new-registry --registry ");
    let message = |text: &str, registry: &str| {
        votes(text.as_bytes());
        parties
            .succeeds("teacher 0", &format!("{answer}{registry} --ledger {registry}.ledger --query-list queries.csv"));
        let message = parties.bytes("teacher 0", "message");
        fs::remove_file(parties.path("teacher 0", "message")).expect("a message");
        message
    };
    // Noise and encryption are seeded: the same labels give the same message.
    let truth = message("3\n0\n2\n", "r0");
    let named = "\u{feff}\"name\";\"label\"\r\n17;0\r\na.png;2\r\n\"b, left.png\";3\r\n\r\n";
    assert_eq!(message(named, "r1"), truth);
    assert_ne!(message("3\n0\n1\n", "r2"), truth);

    let refused = |text: &[u8], more: &str, words: &[&str]| {
        votes(text);
        let output = parties.command("teacher 0", &format!("{answer}bad{more}")).output().expect("the binary starts");
        check_failure(&output, 3, words);
    };
    let list = " --query-list queries.csv";
    refused(b"a.png,2\n17,0\nc.png,1\n", list, &["line 3", "c.png", "not a query"]);
    refused(b"a.png,2\n17,0\n\"b, left.png\",1\n", "", &["line 1", "a.png", "names need --query-list"]);
    // Another list is refused, and so is the same list in another program's format.
    parties.write("teacher 0", "queries.csv", "name\nb\n17\na.png\n");
    refused(b"3\n0\n2\n", list, &["queries.csv", "SHA-256"]);
}

#[test]
fn a_byte_order_mark_before_a_text_is_ignored() {
    let marked = |path: &std::path::Path| {
        let text = fs::read_to_string(path).expect("a file").replace('\n', "\r\n");
        fs::write(path, format!("\u{feff}{text}")).expect("a file");
    };
    let parties = round("a\nb\nc\n", 3);
    // Cards saved by Notepad and joined by `cat`.
    let card = |party: &str| {
        let path = parties.path(party, "signing.toml");
        marked(&path);
        fs::read_to_string(path).expect("a card")
    };
    let roster: String = ["student", "server", "teacher 0", "teacher 1"].into_iter().map(card).collect();
    parties.write("student", "joined.toml", &roster);
    let line = "student round --accept-wrong-labels --public-key public.key --name joined --queries 3 --classes 4 --roster joined.toml --proofs off \
                --gamma 1 --simulation --reuse-keys --out joined-round.toml";
    parties.succeeds("student", line);
    // Cards joined by PowerShell, as UTF-16.
    parties.write("student", "joined.toml", roster.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>());
    let output =
        parties.command("student", &line.replace("joined-round", "other")).output().expect("the binary starts");
    check_failure(&output, 3, &["joined.toml", "UTF-16"]);
    marked(&parties.path("teacher 0", "round.toml"));
    marked(&parties.path("teacher 0", "signing.key"));
    parties.write("teacher 0", "votes.csv", "1\n2\n3\n");
    parties.succeeds("teacher 0", &format!("{ANSWER} --simulation 8 --out message"));

    let place = Workplace::new(RUN);
    npy(&place.path("votes.npy"), "3, 3", &[1; 9]);
    marked(&place.path("config.toml"));
    place.succeeds("run config.toml --set votes.form=histograms");
    place.fails("run config.toml --set votes.fire=x", 2, &["unknown key"]);
    place.succeeds("ledger create ledger --epsilon 7 --delta 1e-5");
    marked(&place.path("ledger"));
    place.succeeds("ledger check ledger");
    place.succeeds("ledger charge ledger --gamma 0.1 --queries 2");
    place.succeeds("ledger check ledger");
}

/// A run on votes of three teachers, who all leave query 2 empty.
const EMPTY_VOTES: &str = r#"
name = "empty"
data = { source = "none", pool_images = 4 }
ensemble = { teachers = 3 }
queries = { count = 4, selection = "first" }
votes = { source = "file", file = "votes.csv", classes = 3 }
noise = { gamma = 1.0, source = "simulation" }
table = { repeats = 0 }
row = [
    { name = "plain", aggregation = "non-private" },
    { name = "noisy", aggregation = "trusted" },
]
"#;

#[test]
fn a_run_counts_empty_votes_for_no_class() {
    let place = Workplace::new(EMPTY_VOTES);
    let run = "run config.toml --json";
    for (votes, words) in [
        ("NA,,-1,NA\n-1,-1,-1,-1\nNA,NA,NA,NA\n", "all votes are empty"),
        (
            "1,2,NA,0\n1,0,1,1\n,,,\n",
            "line 3: a line of empty cells only: write NA for an empty vote, or remove the line",
        ),
        ("1,2,NA,0\n1,-2,1,1\n0,0,0,1\n", "line 2, column 2: expected 0 or more, or -1 for an empty vote, found -2"),
        ("1,2,NA,0\n1,1,1,unsure\n0,0,0,1\n", "line 2, column 4: expected an integer, found \\\"unsure\\\""),
    ] {
        place.write("votes.csv", votes);
        place.fails(&run, 3, &["votes.csv", words]);
    }
    place.write("votes.csv", "1,2,,0\n1,,NA,0\n1,2,-1,2\n");
    let report = place.json(&run);
    assert_eq!(report["ensemble"]["empty_votes"], 4.0 / 12.0, "{}", report["ensemble"]);
    let run = place.run_folder("results", "empty");
    let asked = fs::read(run.join("tables/queries.json")).expect("queries");
    let asked: Value = serde_json::from_slice(&asked).expect("JSON");
    let expected = serde_json::json!([[0, 3, 0], [0, 0, 2], [0, 0, 0], [2, 0, 1]]);
    assert_eq!(asked["votes"], expected, "{asked}");
    // Without noise a query without votes has no label; with noise the noise decides.
    assert_eq!((&report["rows"][0]["answered"], &report["rows"][1]["answered"]), (&3.into(), &Value::Null), "{report}");
    assert_eq!(asked["rows"][0]["labels"], serde_json::json!([1, 2, null, 0]), "{asked}");
    assert!(asked["rows"][1]["labels"][2].is_u64(), "{asked}");
    // The saved votes are those of the file.
    let other = Workplace::new(EMPTY_VOTES);
    fs::copy(run.join("stages/votes/votes.npy"), other.path("votes.npy")).expect("votes");
    let again = other.json("run config.toml --set votes.file=votes.npy --json");
    assert_eq!(again["ensemble"], report["ensemble"]);
}

#[test]
fn a_plurality_of_empty_votes_is_no_label() {
    let place = Workplace::new("");
    place.write("list.csv", "name\na.png\nb.png\nc.png\n");
    place.write("north.csv", "name,label\nc.png,NA\na.png,up\nb.png,\n");
    place.write("east.csv", "label\nup\ndown\n-1\n");
    place.write("none.csv", "label\nNA\nNA\nNA\n");
    let count = "student plurality --query-list list.csv --classes down,up --json --out";
    let found = place.json(&format!("{count} no.csv --votes none.csv"));
    assert_eq!(found["unanswered"], 3, "{found}");
    let found = place.json(&format!("{count} labels.csv --votes north.csv east.csv"));
    for (key, value) in [("teachers", 2), ("queries", 3), ("unanimous", 1), ("unanswered", 1)] {
        assert_eq!(found[key], value, "{key}: {found}");
    }
    assert_eq!(found["labels"], serde_json::json!([1, 1]));
    let labels = place.read("labels.csv");
    assert_eq!(labels, "query,label\n0,up\n1,down\n2,\n");
}
