//! Checks the numbers, commands, links, paths and names of tests in the documents. `docs/numbers/README.md` explains how to write
//! an entry.

#![expect(clippy::print_stderr, reason = "a test says what it skipped and how much it compared")]

mod book;
mod check;
mod commands;
mod evidence;
mod links;
mod number;
pub(crate) mod pages;
mod shell;
mod sources;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::env;

use speed_core::fixture::exhaustive;

use book::Book;
use pages::Page;
use shell::Shell;
use sources::Sources;

/// Fails if there are problems, and prints one on each line.
#[track_caller]
fn none(problems: &[String]) {
    assert!(problems.is_empty(), "{} problems:\n{}\n", problems.len(), problems.join("\n"));
}

/// Reports skipped checks. Real data may be missing on a developer's machine, but not in CI.
#[track_caller]
fn skipped(what: &str) {
    assert!(env::var_os("CI").is_none(), "{what} need SPEED_VOTES and SPEED_DATASETS");
    eprintln!("skipped: {what} need SPEED_VOTES and SPEED_DATASETS");
}

fn pages_with_claims() -> Vec<Page> {
    pages::pages().into_iter().filter(Page::makes_claims).collect()
}

#[test]
fn every_number_agrees_with_its_source() {
    let (pages, book, sources) = (pages_with_claims(), Book::read(), &Sources::new());
    let mut problems = book.problems(&pages);
    let (mut compared, mut without_data) = (0, 0);
    for page in &pages {
        let report = check::check(page, &book, sources);
        problems.extend(report.problems);
        compared += report.compared.len();
        without_data += report.without_data;
    }
    eprintln!("{compared} numbers compared with files and commands");
    none(&problems);
    // In the same test, so that the commands of the sources run once.
    a_changed_digit_is_found(&pages, &book, sources);
    a_new_number_needs_a_source(&pages, &book, sources);
    if without_data > 0 {
        skipped(&format!("the sources of {without_data} numbers and tables"));
    }
}

/// Changes the last digit of some numbers of every page; with SPEED_EXHAUSTIVE (.ci/nightly) of all.
fn a_changed_digit_is_found(pages: &[Page], book: &Book, sources: &Sources) {
    let mut unnoticed = Vec::new();
    for page in pages {
        let before = check::check(page, book, sources);
        let mut places = before.compared;
        places.extend(number::measurements(&page.prose()));
        places
            .retain(|place| !before.elsewhere.iter().any(|table| table.start <= place.start && place.end <= table.end));
        let places: BTreeSet<usize> = places.into_iter().filter_map(|place| last_digit(&page.text, place)).collect();
        let step = if exhaustive() { 1 } else { places.len() / 5 + 1 };
        for at in places.into_iter().step_by(step) {
            let mut changed = page.clone();
            let digit = page.text.as_bytes()[at] - b'0';
            changed.text.replace_range(at..=at, &((digit + 1) % 10).to_string());
            let after = check::check(&changed, book, sources);
            if after.problems.is_empty() && before.without_data == 0 {
                unnoticed.push(format!("{}:{}: digit {digit} at byte {at}", page.name, page.line(at)));
            }
        }
    }
    none(&unnoticed);
}

fn last_digit(text: &str, place: std::ops::Range<usize>) -> Option<usize> {
    let start = place.start;
    text[place].rfind(|character: char| character.is_ascii_digit()).map(|at| start + at)
}

fn a_new_number_needs_a_source(pages: &[Page], book: &Book, sources: &Sources) {
    for added in [
        "\nIt takes 12.5 s.\n",
        "\nRight are 93 %.\n",
        "\n| a | b |\n|---|---|\n| c | 0.25 |\n",
        "\nIt fails once in 2^-40.\n",
    ] {
        let mut page = pages.iter().find(|page| page.name == "README.md").expect("a page").clone();
        let before = check::check(&page, book, sources).problems.len();
        page.text.push_str(added);
        assert_eq!(check::check(&page, book, sources).problems.len(), before + 1, "{added}");
    }
}

#[test]
fn every_command_runs_as_it_is_shown() {
    let book = Book::read();
    let (mut problems, mut without, mut tried) = (Vec::new(), 0, HashSet::new());
    for page in pages::pages().into_iter().filter(|page| !page.commands().is_empty()) {
        let shell = Shell::new();
        let (of_page, missing) = commands::check(&page, &book, &shell, &mut tried);
        problems.extend(of_page);
        without += missing;
    }
    none(&problems);
    if without > 0 {
        skipped(&format!("{without} commands"));
    }
}

#[test]
fn every_option_exists() {
    let (shell, mut helps) = (Shell::new(), HashMap::new());
    let pages = pages_with_claims();
    none(&pages.iter().flat_map(|page| commands::unknown_options(page, &shell, &mut helps)).collect::<Vec<_>>());
    let text = "    teacher   speed teacher keygen --nam X\n                --out FILE --nosuch\n".to_owned();
    let problems = commands::unknown_options(&page(text), &shell, &mut helps);
    assert_eq!(problems.len(), 2, "{problems:?}");
    for command in [
        "speed account --gama 1",
        "speed run configs/nosuch.toml",
        "cargo run -p speed-data --example nosuch",
        "scripts/nosuch",
        "make",
    ] {
        let page = page(format!("```console\n$ {command}\n```\n"));
        assert_eq!(commands::check(&page, &Book::default(), &shell, &mut HashSet::new()).0.len(), 1, "{command}");
    }
}

fn page(text: impl Into<String>) -> Page {
    Page { name: "docs/page.md".to_owned(), text: text.into() }
}

#[test]
fn every_link_and_path_exists() {
    let (pages, files) = (pages::pages(), pages::files());
    let mut problems = Vec::new();
    for page in &pages {
        problems.extend(links::broken(page, &pages, &files));
        if page.makes_claims() {
            problems.extend(links::missing_paths(page, &files));
        }
    }
    none(&problems);
    for text in [
        "[a](nosuch.md)",
        "[a](../README.md#nosuch)",
        "[a](../../outside.md)",
        "`crates/speed-cli/src/nosuch/`",
        "`speed-nn/src/{lib,nosuch}.rs`",
    ] {
        let page = page(text);
        let found = links::broken(&page, &pages, &files).len() + links::missing_paths(&page, &files).len();
        assert_eq!(found, 1, "{text}");
    }
}

#[test]
fn every_named_test_exists() {
    let (pages, tests) = (pages::pages(), evidence::tests(&pages::files()));
    let checked: Vec<&Page> = pages.iter().filter(|page| evidence::PAGES.contains(&page.name.as_str())).collect();
    assert_eq!(checked.len(), evidence::PAGES.len());
    none(&checked.iter().flat_map(|page| evidence::missing(page, &tests)).collect::<Vec<_>>());
    // Only tests count: other functions are refused, and metrics and names of two words are not taken for tests.
    let text = "`every_named_test_exists`, `a_test_that_nobody_wrote`, `pages_with_claims`, `one_teacher`, `speed_a_metric`, \
                `help.trycmd`, `no.trycmd`";
    let expected = ["a_test_that_nobody_wrote", "pages_with_claims", "no.trycmd"];
    let expected = expected.map(|name| format!("docs/page.md:1: no test is called {name}"));
    assert_eq!(evidence::missing(&page(text), &tests), expected);
}
