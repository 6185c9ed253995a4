//! Rounds for more labels than one key serves: several key sets, and a round for each.

use std::fs;

use serde_json::json;

use crate::cli::common::{check_failure, entries, has, succeeded};
use crate::cli::json::documented;
use crate::cli::roles::{AGGREGATE, ANSWER, Parties};

const ROUND: &str = "student round --keys keys --roster roster.toml --parties 2 --name year --classes 4 --gamma 9 --proofs off --out rounds";

/// Gives the student a list of so many pictures, p0 to the last.
fn list(parties: &Parties, pictures: usize) {
    let names: String = (0..pictures).map(|picture| format!("p{picture}\n")).collect();
    parties.write("student", "queries.csv", format!("name\n{names}"));
}

/// Two teachers and gamma 9: a label differs from the votes in one run of four million.
#[test]
fn two_key_sets_give_two_rounds_whose_labels_are_those_of_all_queries() {
    let parties = Parties::new();
    parties.introduce(2);
    list(&parties, 5);
    parties.write("student", "known.csv", "name,label\np1,1\np4,0\n");
    let sets = documented(&parties.succeeds("student", "student keygen --sets 2 --out keys --simulation 5 --json"));
    assert_eq!(sets["sets"].as_array().map(Vec::len), Some(2));
    let line = format!("{ROUND} --queries 5 --query-list queries.csv --known known.csv --simulation --json");
    let bundle = documented(&parties.succeeds("student", &line));
    has(&bundle, &json!({ "rounds": [{ "queries": 2 }, { "queries": 3 }] }));
    assert_ne!(bundle["rounds"][0]["key"], bundle["rounds"][1]["key"]);
    // Together they cost as much as one round of five queries.
    let one = "student round --public-key keys/1/public.key --roster roster.toml --parties 2 --name one --classes 4 --gamma 9 --proofs off \
               --queries 5 --simulation --out one.toml --json";
    assert_eq!(bundle["price"], documented(&parties.succeeds("student", one))["price"]);
    assert_eq!(parties.read("student", "keys/1/known.csv"), "name,label\np1,1\n");
    assert_eq!(parties.read("student", "rounds/2/queries.csv"), "name\np2\np3\np4\n");

    let votes = ["0\n1\n", "2\n3\n0\n"];
    for (part, votes) in [(1, votes[0]), (2, votes[1])] {
        for (party, file) in [("teacher 0", "public.key"), ("teacher 1", "public.key"), ("server", "evaluation.key")] {
            let folder = if party == "server" { "keys" } else { "rounds" };
            parties.send(("student", &format!("{folder}/{part}/{file}")), (party, file));
            parties.send(("student", &format!("rounds/{part}/round.toml")), (party, "round.toml"));
        }
        for teacher in 0..2 {
            let party = format!("teacher {teacher}");
            parties.send(("student", &format!("rounds/{part}/queries.csv")), (&party, "queries.csv"));
            parties.write(&party, "votes.csv", votes);
            let line = format!("{ANSWER} --query-list queries.csv --simulation 8 --out message-{part}");
            parties.succeeds(&party, &line);
            let inbox = format!("server/inbox-{part}");
            parties.send((&party, &format!("message-{part}")), (&inbox, &format!("{teacher}.msg")));
        }
        let server = AGGREGATE.replace("inbox", &format!("inbox-{part}")).replace("result", &format!("result-{part}"));
        parties.succeeds("server", &server);
        parties.send(("server", &format!("result-{part}")), ("student", "result"));
        let open = format!(
            "student open --secret-key keys/{part}/secret.key --result result --round rounds/{part}/round.toml --known \
             keys/{part}/known.csv --query-list rounds/{part}/queries.csv --out labels-{part}.csv --json"
        );
        let report = documented(&parties.succeeds("student", &open));
        has(&report, &json!({ "known_answers": { "known": 1, "wrong": 0 } }));
    }
    assert_eq!(parties.read("student", "labels-1.csv"), "query,label\n0,0\n1,\n");
    assert_eq!(parties.read("student", "labels-2.csv"), "query,label\n0,2\n1,3\n2,\n");
}

#[test]
fn a_bundle_serves_what_its_keys_serve_and_is_written_as_a_unit() {
    let parties = Parties::new();
    parties.introduce(2);
    list(&parties, 400);
    parties.succeeds("student", "student keygen --sets 2 --out keys");
    let round = ROUND.replace("--gamma 9", "--gamma 0.05 --accept-wrong-labels --max-epsilon 10000");
    let make = |more: &str| parties.run("student", &format!("{round} {more}"));
    let fails = |more: &str, code: i32, words: &[&str]| {
        check_failure(&make(more), code, words);
        assert!(!parties.path("student", "rounds").exists());
        let left = entries(&parties.path("student", ""));
        assert!(left.iter().all(|path| !path.to_string_lossy().contains("/.writing")), "{left:?}");
    };
    // 166 labels of four classes have 332 bits.
    fails("--queries 400 --query-list queries.csv", 2, &["200 queries", "serve 166 queries", "--sets"]);
    fails("--queries 399 --query-list queries.csv", 3, &["queries.csv", "399", "400"]);
    fails("--queries 400", 2, &["--query-list"]);
    fails("--queries 400 --query-list queries.csv --public-key keys/1/public.key", 2, &["cannot be used with"]);
    list(&parties, 1);
    fails("--queries 1 --query-list queries.csv", 3, &["1 queries", "2 key sets"]);
    list(&parties, 4);
    parties.write("student", "known.csv", "name,label\np1,1\nelsewhere,0\n");
    fails("--queries 4 --query-list queries.csv --known known.csv", 3, &["known.csv", "elsewhere"]);
    fs::create_dir(parties.path("student", "keys/old")).expect("a folder");
    fails("--queries 4 --query-list queries.csv", 3, &["keys", "found 2 of them among 3"]);
    fs::remove_dir(parties.path("student", "keys/old")).expect("removed");
    // Keys of different sets are never exchanged unnoticed.
    fs::rename(parties.path("student", "keys/2/evaluation.key"), parties.path("student", "kept")).expect("moved");
    parties.send(("student", "keys/1/evaluation.key"), ("student", "keys/2/evaluation.key"));
    fails("--queries 4 --query-list queries.csv", 3, &["keys/2/evaluation.key", "the round is for key"]);
    fs::rename(parties.path("student", "kept"), parties.path("student", "keys/2/evaluation.key")).expect("moved");

    let bundle = documented(&succeeded(make("--queries 4 --query-list queries.csv --json")));
    for set in 0..2 {
        let uses = parties.read("student", &format!("keys/{}/public.rounds", set + 1));
        assert!(uses.starts_with(bundle["rounds"][set]["round"].as_str().expect("an id")), "{uses}");
    }
    check_failure(&make("--queries 4 --query-list queries.csv"), 4, &["rounds", "never overwritten"]);
    fs::rename(parties.path("student", "rounds"), parties.path("student", "first")).expect("moved");
    list(&parties, 3);
    fails("--queries 3 --query-list queries.csv", 2, &["already used for round"]);
    parties.fails("student", "student keygen --sets 3 --out keys", 4, &["keys/1"]);
}
