//! Lists of runs, and names that people can read. Other messages: `tests/snapshots/{errors,refusals}.trycmd`.

use std::fs;

use regex::Regex;
use serde_json::Value;

use crate::cli::common::{TINY, Workplace};
use crate::docs::pages;

#[test]
fn a_list_has_dates_states_epsilons_and_accuracies() {
    let place = Workplace::finished(TINY);
    place.succeeds("run config.toml --set seed=4 --stage votes");
    let list = place.succeeds("list");
    assert!(["date (UTC)", "epsilon", "student %", "labels %"].iter().all(|head| list.contains(head)), "{list}");
    let line = |word: &str| list.lines().find(|line| line.contains(word)).expect("a line").to_owned();
    assert!(line(" finished ").contains("simulation") && line("unfinished, 3 stages").contains("-"), "{list}");
    let json = place.json("list --json");
    let finished = json["runs"].as_array().expect("runs").iter().find(|run| run["finished"] == true).expect("a run");
    assert!(finished["epsilon"].as_f64().is_some_and(|epsilon| epsilon > 1.0), "{finished}");
    assert!(finished["student_accuracy"].as_f64().is_some_and(|accuracy| accuracy > 0.0), "{finished}");
    assert!(finished["ended_at"].as_u64().is_some_and(|seconds| seconds > 1_700_000_000), "{finished}");
    // A run without its config is still listed.
    let run = place.path("results/tiny").join(finished["run"].as_str().expect("an id"));
    fs::write(run.join("config.toml"), "").expect("emptied");
    let list = place.succeeds("list");
    assert!(list.lines().filter(|line| line.contains("results/tiny/")).count() >= 2, "{list}");

    // Published runs count as finished, even without their stages.
    let results = concat!(env!("CARGO_MANIFEST_DIR"), "/../../results");
    let list = place.json(&["list", "--results", results, "--json"]);
    let is_published = |run: &&Value| run["folder"].as_str().is_some_and(|folder| folder.contains("/published/"));
    let published: Vec<&Value> = list["runs"].as_array().expect("runs").iter().filter(is_published).collect();
    assert!(published.len() > 5);
    let is_whole = |run: &Value| run["state"] == "finished" && run["finished"] == true && run["damage"].is_null();
    assert_eq!(published.iter().find(|run| !is_whole(run)), None);
}

#[test]
fn names_that_people_cannot_read_are_refused() {
    let place = Workplace::new("");
    for (role, name) in [("teacher", " St Mary's"), ("server", "a\u{200b}b"), ("teacher", "a\tb")] {
        let keygen = [role, "keygen", "--name", name, "--out", "key"];
        place.fails(&keygen, 2, &["a party's name needs", "visible characters"]);
    }
    place.fails(&["student", "identity", "--name", "\u{3164}", "--out", "key"], 2, &["a party's name needs"]);
    place.succeeds(&["teacher", "keygen", "--name", "St Mary's 日本", "--out", "key"]);
    Workplace::new(&TINY.replace("\"Trusted\"", "\"Trusted\\u200b\"")).fails("run config.toml", 2, &["`row.1.name`"]);
}

/// Checks that no text of the program contains the indent of a continued source line: a word, four blanks or more, and another
/// word, within quotes.
#[test]
fn no_message_has_the_indentation_of_its_source() {
    let odd = Regex::new(r#""[[:alpha:]][^"]* {4,}[[:alpha:]]"#).expect("a pattern");
    for file in pages::files().iter().filter(|file| file.contains("/src/") && file.ends_with(".rs")) {
        let text = fs::read_to_string(pages::root().join(file)).expect("a source");
        let mut lines = text.lines().filter(|line| !line.trim_start().starts_with("//") && !line.contains("  speed "));
        assert_eq!(lines.find(|line| odd.is_match(line)), None, "{file}");
    }
}
