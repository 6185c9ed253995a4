//! Files of votes from different programs, in a given form or in the only possible form.

use std::fs;

use serde_json::Value;

use crate::cli::bad_input::npy;
use crate::cli::common::{Workplace, check_failure};
use crate::cli::roles::{ANSWER, Parties};

const NOISE: [&str; 4] = ["--gamma", "0.4", "--delta", "1e-5"];

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

fn account(place: &Workplace, votes: &str, more: &[&str]) -> Value {
    let base = ["account", "--json", "--votes", votes];
    serde_json::from_str(&place.succeeds(&[&base[..], &NOISE[..], more].concat())).expect("JSON")
}

fn csv(rows: &[u8], columns: usize, separator: &str, end: &str) -> String {
    let line = |row: &[u8]| row.iter().map(u8::to_string).collect::<Vec<_>>().join(separator) + end;
    rows.chunks(columns).map(line).collect()
}

#[test]
fn a_file_that_may_be_labels_or_histograms_is_refused_by_every_command() {
    let place = place();
    let readings = ["--form", "as labels: 10 teachers, 60 queries", "as histograms: 10 queries, 60 classes"];
    let refused = |arguments: &[&str]| place.fails(&[arguments, &["--votes", "labels.npy"]].concat(), 2, &readings);
    refused(&[&["account"][..], &NOISE[..]].concat());
    refused(&["figure", "gamma"]);
    refused(&["calibrate", "--epsilon", "5", "--delta", "1e-5"]);
    refused(&["audit", "--gamma", "1", "--query", "3"]);
    // Histograms with a missing vote in one row are not read as labels.
    npy(&place.path("lost.npy"), "3, 3", &[2, 1, 0, 0, 3, 0, 1, 1, 0]);
    place.fails(&[&["account", "--votes", "lost.npy"][..], &NOISE[..]].concat(), 2, &["--form"]);
    place.fails(
        &[&["account", "--votes", "lost.npy", "--form", "histograms"][..], &NOISE[..]].concat(),
        3,
        &["row 2 sums to 2, expected the number of teachers, 3 on row 0"],
    );
    // Labels do not reveal classes without a vote.
    let labels = [&["account", "--votes", "labels.npy", "--form", "labels"][..], &NOISE[..]].concat();
    place.fails(&labels, 2, &["--classes", "labels do not show classes without a vote"]);
    place.fails(&[&labels[..], &["--classes", "9"]].concat(), 3, &["votes for class 9 on query 7, expected 0 to 8"]);
    place.fails(
        &[&labels[..], &["--classes", "10", "--teachers", "11"]].concat(),
        3,
        &["10 teachers as labels, expected 11"],
    );
}

#[test]
fn labels_and_histograms_of_the_same_votes_cost_the_same() {
    let place = place();
    let truth = account(&place, "histograms.npy", &["--form", "histograms"]);
    let epsilon = truth["epsilon"].as_f64().expect("a number");
    assert!((epsilon - 7.24).abs() < 0.02 && truth["queries"] == 60, "{truth}");
    let read = serde_json::json!({ "form": "labels", "teachers": 10, "queries": 60, "classes": 10, "selected": 60 });
    fs::write(place.path("labels.csv"), csv(&unanimous().repeat(10), 60, ",", "\n")).expect("a file");
    for more in
        [&["--classes", "10"][..], &["--classes", "10", "--teachers", "10"], &["--form", "labels", "--classes", "10"]]
    {
        for votes in ["labels.npy", "labels.csv"] {
            let found = account(&place, votes, more);
            assert_eq!((&found["epsilon"], &found["votes_file"]), (&truth["epsilon"], &read), "{votes} {more:?}");
        }
    }
    // The number of classes may exceed the highest label.
    assert_ne!(account(&place, "labels.npy", &["--classes", "12"])["epsilon"], truth["epsilon"]);
    // The number of teachers also leaves only one possible form.
    npy(&place.path("three.npy"), "4, 3", &[2, 1, 0, 0, 3, 0, 1, 1, 1, 3, 0, 0]);
    assert_eq!(account(&place, "three.npy", &["--teachers", "3"])["votes_file"]["form"], "histograms");

    let text = place.succeeds(&[&["account", "--votes", "labels.npy", "--classes", "10"][..], &NOISE[..]].concat());
    assert!(text.contains("Votes read: 10 teachers, 60 queries, 10 classes (labels).\n"), "{text}");
    npy(&place.path("index.npy"), "2,", &[0, 59]);
    fs::write(place.path("index.csv"), "\u{feff}query\r\n0\r\n59\r\n").expect("a file");
    for (votes, form) in [("labels.npy", "labels"), ("histograms.npy", "histograms")] {
        let of = |more: &[&str]| account(&place, votes, &[&["--form", form, "--classes", "10"], more].concat());
        let some = of(&["--queries", "index.npy"]);
        assert_eq!((&some["queries"], &some["votes_file"]["selected"]), (&2.into(), &2.into()));
        assert_eq!(some, of(&["--queries", "index.csv"]));
        assert_eq!(of(&["--rows", "3..7"])["queries"], 4);
    }
    let calibrated = ["calibrate", "--epsilon", "5", "--delta", "1e-5", "--json"];
    let of = |more: &[&str]| -> Value {
        serde_json::from_str(&place.succeeds(&[&calibrated[..], more].concat())).expect("JSON")
    };
    let (by_file, by_number) =
        (of(&["--votes", "labels.npy", "--form", "labels"]), of(&["--queries", "60", "--teachers", "10"]));
    assert_eq!((&by_file["scale"], &by_file["queries"]), (&by_number["scale"], &60.into()));
    // A ledger's search takes its numbers from the command line alone, so a file is refused and not ignored.
    for of_a_ledger in [&["--budget"][..], &["--ledger", "ledger"]] {
        let file = [&calibrated[..5], of_a_ledger, &["--votes", "labels.npy", "--form", "labels"]].concat();
        place.fails(&file, 2, &["--votes"]);
    }
    let audit = ["audit", "--gamma", "1", "--runs", "1000", "--votes", "labels.csv", "--classes", "10", "--json"];
    let audited = place.succeeds(&[&audit[..], &["--query", "7"]].concat());
    let audited: Value = serde_json::from_str(&audited).expect("JSON");
    assert_eq!((&audited["votes"][0], &audited["votes_file"]["selected"]), (&10.into(), &1.into()));
    place.fails(&[&audit[..], &["--query", "60"]].concat(), 2, &["--query", "0 to 59"]);
    place.succeeds(&["figure", "tau", "--votes", "labels.csv", "--classes", "10"]);
}

#[test]
fn csv_is_read_as_spreadsheets_and_data_frames_write_it() {
    let place = Workplace::new("");
    let rows = [240u8, 5, 5, 100, 90, 60, 0, 0, 250, 124, 125, 1];
    npy(&place.path("votes.npy"), "4, 3", &rows);
    let truth = account(&place, "votes.npy", &[]);
    let read = |text: &[u8]| {
        fs::write(place.path("votes.csv"), text).expect("a file");
        let found = account(&place, "votes.csv", &[]);
        assert_eq!(found, truth, "{:?}", String::from_utf8_lossy(text));
    };
    read(csv(&rows, 3, ",", "\n").as_bytes());
    read(format!("\u{feff}{}", csv(&rows, 3, ";", "\r\n")).as_bytes());
    read(format!("\u{feff}\"cat\";\"dog\";\"cow, other\"\r\n{};;\r\n\r\n", csv(&rows, 3, ";", "\r\n")).as_bytes());
    read(csv(&rows, 3, "\t", "\r").as_bytes());
    read(b",0,1,2\n0,240,5,5\n1,100,90,60\n2,0,0,250\n3,124,125,1\n");
    read(b"2.4e2,\"5\",5.0\n100,90,60\n0,0,250\n124,125,1");

    let refused = |text: &[u8], code: i32, words: &[&str]| {
        fs::write(place.path("votes.csv"), text).expect("a file");
        place.fails(&[&["account", "--votes", "votes.csv"][..], &NOISE[..]].concat(), code, words);
    };
    refused(b"240,5,5\r\n\r\n100,90;60\r\n", 3, &["line 3", "';'", "','"]);
    refused(b"a,b,c\r\n240,5,5\r\n100,x,60\r\n", 3, &["line 3, column 2", "\"x\"", "integer"]);
    refused(b"240,5,5\r\n100,90\r\n", 3, &["line 2", "expected 3 columns, found 2"]);
    refused(b"240,5,5\r\n100,90,59\r\n", 3, &["line 2 sums to 249", "250 on line 1"]);
    refused(b"NaN,NaN,NaN\n240,5,5\n", 3, &["line 1, column 1"]);
    // Numeric names of columns or rows are not read as votes.
    refused(b"0,1,2\n240,5,5\n100,90,60\n", 3, &["line 1 counts from 0 to 2"]);
    refused(b"0,240,10\n1,200,49\n2,100,148\n", 3, &["column 1 numbers the lines"]);
    refused(b"", 3, &["at least one row"]);
    let wide: Vec<u8> = csv(&rows, 3, ",", "\n").encode_utf16().flat_map(u16::to_le_bytes).collect();
    refused(&[&[0xff, 0xfe][..], &wide].concat(), 3, &["UTF-16", "UTF-8"]);
    refused(&wide, 3, &["UTF-16", "UTF-8"]);
    refused(b"PK\x03\x04rubbish", 3, &["ZIP archive", "numpy.save"]);
}

/// A run without images on votes from a file, with real noise.
const RUN: &str = r#"
name = "votes"
[data]
source = "none"
pool_images = 3
[ensemble]
teachers = 3
[votes]
source = "file"
file = "votes.npy"
[queries]
count = 2
[noise]
source = "simulation"
[table]
repeats = 0
[[row]]
name = "Trusted"
aggregation = "trusted"
"#;

#[test]
fn a_run_asks_for_the_form_and_the_classes_that_it_cannot_know() {
    let place = Workplace::new(RUN);
    fn run<'a>(more: &[&'a str]) -> Vec<&'a str> {
        [&["run", "config.toml"], more].concat()
    }
    npy(&place.path("votes.npy"), "3, 3", &[1; 9]);
    place.fails(
        &run(&[]),
        2,
        &["`votes.form`", "as labels: 3 teachers, 3 queries", "as histograms: 3 queries, 3 classes"],
    );
    place.fails(&run(&["--dry-run"]), 2, &["`votes.form`"]);
    place.fails(&run(&["--set", "votes.form=labels"]), 2, &["`votes.classes`"]);
    place.fails(&run(&["--set", "votes.form=label"]), 2, &["`votes.form`", "expected labels or histograms"]);
    place.fails(&run(&["--set", "votes.classes=1"]), 2, &["`votes.classes`", "2 to 256"]);
    let said = |more: &[&str]| {
        let output = place.speed(&run(more));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let labels = said(&["--set", "votes.form=labels", "--set", "votes.classes=10"]);
    assert!(labels.contains("votes.npy: 3 teachers, 3 queries, 10 classes (labels)"), "{labels}");
    // Three of ten columns cannot be three classes.
    assert!(said(&["--set", "votes.classes=10"]).contains("10 classes (labels)"));
    let histograms = said(&["--set", "votes.form=histograms"]);
    assert!(histograms.contains("votes.npy: 3 teachers, 3 queries, 3 classes (histograms)"), "{histograms}");
    // Histograms with a missing vote are not read as labels.
    npy(&place.path("votes.npy"), "3, 3", &[1, 1, 0, 1, 1, 1, 1, 1, 1]);
    place.fails(&run(&["--set", "name=lost"]), 2, &["`votes.form`"]);
    fs::write(place.path("votes.csv"), "\u{feff}1;1;1\r\n3;0;0\r\n0;0;3\r\n").expect("a file");
    said(&["--set", "name=csv", "--set", "votes.file=votes.csv", "--set", "votes.form=histograms"]);
}

/// A round of three queries with two teachers; the student's list names the queries.
fn round(list: &str, queries: usize) -> Parties {
    let parties = Parties::new();
    fs::write(parties.path("student", "queries.csv"), list).expect("a list");
    parties.agree(queries, 2, "--gamma 1 --query-list queries.csv");
    parties.send(("student", "queries.csv"), ("teacher 0", "queries.csv"));
    parties
}

#[test]
fn a_teachers_votes_may_name_the_queries_in_any_order() {
    let parties = round("\u{feff}name\r\n\"b, left.png\"\r\n17\r\na.png\r\n", 3);
    let votes = |text: &[u8]| fs::write(parties.path("teacher 0", "votes.csv"), text).expect("votes");
    let answer = format!("{ANSWER} --simulation 8 --out message --new-registry --registry ");
    let message = |text: &str, registry: &str| {
        votes(text.as_bytes());
        parties
            .succeeds("teacher 0", &format!("{answer}{registry} --ledger {registry}.ledger --query-list queries.csv"));
        let message = fs::read(parties.path("teacher 0", "message")).expect("a message");
        fs::remove_file(parties.path("teacher 0", "message")).expect("a message");
        message
    };
    // Noise and encryption are seeded: the same labels give the same message.
    let truth = message("3\n0\n2\n", "r0");
    for (at, text) in [
        "a.png,2\n\"b, left.png\",3\n17,0\n",
        "\u{feff}\"name\";\"label\"\r\n17;0\r\na.png;2\r\n\"b, left.png\";3\r\n\r\n",
        "query,label\n2,2\n0,3\n1,0\n",
        "label;name\n0;17\n2;a.png\n3;\"b, left.png\"\n",
        "3;0;2\r\n",
        "0,0,0,1\n1,0,0,0\n0,0,1,0\n",
    ]
    .into_iter()
    .enumerate()
    {
        assert_eq!(message(text, &format!("r{}", at + 1)), truth, "{text:?}");
    }
    assert_ne!(message("3\n0\n1\n", "r9"), truth);

    let refused = |text: &[u8], more: &str, words: &[&str]| {
        votes(text);
        let output = parties.command("teacher 0", &format!("{answer}bad{more}")).output().expect("the binary starts");
        check_failure(&output, 3, words);
    };
    let list = " --query-list queries.csv";
    refused(b"a.png,2\n17,0\nc.png,1\n", list, &["line 3", "c.png", "not a query"]);
    refused(b"a.png,2\n17,0\na.png,1\n", list, &["line 3", "a.png", "has a label already, on line 1"]);
    refused(b"a.png,2\n17,0\n", list, &["2 labels, the round has 3 queries"]);
    refused(b"a.png,2\n17,0\n\"b, left.png\",1\n", "", &["line 1", "a.png", "names need --query-list"]);
    refused(b"0,0,1,1\n1,0,0,0\n0,0,1,0\n", list, &["line 1", "one-hot"]);
    refused(b"3\r\n0\r\nx\r\n", list, &["line 3: expected the label of query 2"]);
    // Another list is refused, and so is the same list in another program's format.
    fs::write(parties.path("teacher 0", "queries.csv"), "name\nb\n17\na.png\n").expect("a list");
    refused(b"3\n0\n2\n", list, &["queries.csv", "SHA-256"]);
}

#[test]
fn numbers_that_may_be_names_and_pairs_that_may_be_histograms_are_refused() {
    let parties = round("2\n0\n1\n", 3);
    let answer = |text: &str| {
        fs::write(parties.path("teacher 0", "votes.csv"), text).expect("votes");
        let line = format!("{ANSWER} --simulation 8 --out message --query-list queries.csv");
        parties.command("teacher 0", &line).output().expect("the binary starts")
    };
    check_failure(&answer("2,1\n0,2\n1,3\n"), 3, &["line 1", "the number of one query and the name of another"]);
    assert!(answer("name,label\n2,1\n0,2\n1,3\n").status.success());
}

#[test]
fn lists_of_another_form_are_for_votes_in_their_order_only() {
    let parties = round("name;ward\n2;1\n0;2\n1;3\n", 3);
    let answer = |text: &str| {
        fs::write(parties.path("teacher 0", "votes.csv"), text).expect("votes");
        parties.run("teacher 0", &format!("{ANSWER} --simulation 8 --out message --query-list queries.csv"))
    };
    // These numbers could be names.
    for votes in ["2,1\n0,2\n1,3\n", "name,label\n2,1\n0,2\n1,3\n"] {
        check_failure(&answer(votes), 3, &["queries.csv", "found the column \"ward\""]);
    }
    assert!(answer("2\n3\n1\n").status.success());
}

#[test]
fn a_round_is_refused_with_a_list_of_another_length() {
    let parties = Parties::new();
    parties.introduce(2);
    parties.keygen("student", "", "--simulation 5");
    for (list, words) in [
        ("file\n2\n0\n1\n", "needs the column name"),
        ("name\n2\n0\n", "found 2 names"),
        ("name,group\na,2\nb,0\nc,2\n", "found 2 groups"),
    ] {
        fs::write(parties.path("student", "queries.csv"), list).expect("a list");
        let line = "student round --accept-wrong-labels --public-key public.key --name test --queries 3 --classes 4 --roster roster.toml \
                    --proofs off --simulation --gamma 1 --query-list queries.csv --out round.toml";
        check_failure(&parties.run("student", line), 3, &["queries.csv", words]);
        assert!(!parties.path("student", "round.toml").exists());
    }
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
    fs::write(parties.path("student", "joined.toml"), &roster).expect("a roster");
    let line = "student round --accept-wrong-labels --public-key public.key --name joined --queries 3 --classes 4 --roster joined.toml --proofs off \
                --gamma 1 --simulation --reuse-keys --out joined-round.toml";
    parties.succeeds("student", line);
    // Cards joined by PowerShell, as UTF-16.
    fs::write(
        parties.path("student", "joined.toml"),
        roster.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>(),
    )
    .expect("a roster");
    let output =
        parties.command("student", &line.replace("joined-round", "other")).output().expect("the binary starts");
    check_failure(&output, 3, &["joined.toml", "UTF-16"]);
    marked(&parties.path("teacher 0", "round.toml"));
    marked(&parties.path("teacher 0", "signing.key"));
    fs::write(parties.path("teacher 0", "votes.csv"), "1\n2\n3\n").expect("votes");
    parties.succeeds("teacher 0", &format!("{ANSWER} --simulation 8 --out message"));
    let again = "student round --accept-wrong-labels --public-key public.key --name third --queries 3 --classes 4 --roster roster.toml --proofs off --gamma 1 \
                 --simulation --reuse-keys --out third.toml";
    parties.succeeds("student", again);

    let place = Workplace::new(RUN);
    npy(&place.path("votes.npy"), "3, 3", &[1; 9]);
    marked(&place.path("config.toml"));
    place.succeeds(&["run", "config.toml", "--set", "votes.form=histograms"]);
    place.fails(&["run", "config.toml", "--set", "votes.fire=x"], 2, &["unknown key"]);
    place.succeeds(&["ledger", "create", "ledger", "--epsilon", "7", "--delta", "1e-5"]);
    marked(&place.path("ledger"));
    place.succeeds(&["ledger", "check", "ledger"]);
    place.succeeds(&["ledger", "charge", "ledger", "--gamma", "0.1", "--queries", "2"]);
    place.succeeds(&["ledger", "check", "ledger"]);
}
