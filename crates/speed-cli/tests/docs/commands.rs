//! Checks that every command on a page works as it is shown.

use std::collections::{HashMap, HashSet};

use regex::Regex;

use crate::docs::book::Book;
use crate::docs::pages::{Page, files};
use crate::docs::shell::Shell;

/// A way to try a command.
enum Trial {
    Run(String),
    /// The file that must exist.
    File(String),
    Unknown,
}

/// Returns the problems of a page's commands, and the number of commands that need data. Adds the dry runs that succeeded to
/// `tried`, and does not repeat them: they change nothing.
pub(crate) fn check(page: &Page, book: &Book, shell: &Shell, tried: &mut HashSet<String>) -> (Vec<String>, usize) {
    let (mut problems, mut without) = (Vec::new(), 0);
    for (line, shown) in page.commands() {
        let entry = book.command.iter().find(|entry| entry.shown == shown);
        let trial = match entry.map(|entry| &entry.tried) {
            Some(None) => continue,
            Some(Some(tried)) => Trial::Run(tried.clone()),
            None => trial(&shown),
        };
        let problem = match trial {
            Trial::Run(command) if tried.contains(&command) => continue,
            Trial::Run(command) => match shell.run(&command) {
                Ok(Some(_)) => {
                    if command.contains(" --dry-run") {
                        tried.insert(command);
                    }
                    continue;
                }
                Ok(None) => {
                    without += 1;
                    continue;
                }
                Err(message) => message,
            },
            Trial::File(needed) if files().iter().any(|file| matches(file, &needed)) => continue,
            Trial::File(needed) => format!("{needed} does not exist"),
            Trial::Unknown => format!("`{shown}` is not known here: name it in docs/numbers/commands.toml"),
        };
        problems.push(format!("{}:{line}: {problem}", page.name));
    }
    (problems, without)
}

/// Returns options in code blocks that are missing in their command's `--help`. Commands outside `console` blocks need
/// several parties or machines, so only their options are checked.
/// `helps` has the helps of commands that were printed before.
pub(crate) fn unknown_options(page: &Page, shell: &Shell, helps: &mut HashMap<Vec<String>, String>) -> Vec<String> {
    let command = Regex::new(r"(?:^|[ /])speed((?: [a-z]+)+)").expect("a pattern");
    let option = Regex::new(r"(?:^| )(--[a-z][a-z-]*)").expect("a pattern");
    let mut problems = Vec::new();
    let mut words: Vec<String> = Vec::new();
    for (line, text) in page.code() {
        let text = text.split(" # ").next().unwrap_or_default();
        let start = command.captures(text);
        if let Some(found) = &start {
            words = found[1].split_whitespace().map(str::to_owned).collect();
        } else if !text.trim_start().starts_with('-') {
            words.clear();
        }
        let from = start.map_or(0, |found| found.get(0).expect("the command").end());
        for found in option.captures_iter(&text[from..]).filter(|_| !words.is_empty()) {
            let known = Regex::new(&format!("{}(?:[^a-z-]|$)", &found[1])).expect("a name");
            if !known.is_match(helps.entry(words.clone()).or_insert_with(|| help(&words, shell))) {
                problems.push(format!("{}:{line}: `speed {}` has no option {}", page.name, words.join(" "), &found[1]));
            }
        }
    }
    problems
}

/// Returns the help of the longest command at the beginning of these words.
fn help(words: &[String], shell: &Shell) -> String {
    let lengths = (1..=words.len().min(2)).rev();
    let texts = lengths.map(|length| shell.run(&format!("speed {} --help", words[..length].join(" "))));
    texts.into_iter().find_map(|text| text.ok().flatten()).unwrap_or_default()
}

fn matches(file: &str, needed: &str) -> bool {
    match needed.split_once('*') {
        Some((start, end)) => file.starts_with(start) && file.ends_with(end),
        None => file == needed,
    }
}

/// Returns the way to try a command. `speed run` gets `--dry-run` without students, and `speed plan` measures no times, because
/// measuring takes long. Other commands of `speed` run unchanged. A build or a script needs its files. A preset alone needs its file,
/// because speed-experiment plans all presets.
fn trial(shown: &str) -> Trial {
    let environment = Regex::new(r"^(?:[A-Z_]+=\S+ )+").expect("a pattern");
    let command = environment
        .replace(shown, "")
        .replace("target/release/speed", "speed")
        .replace("cargo run --release -- ", "speed ");
    let words: Vec<&str> = command.split_whitespace().collect();
    let after = |option: &str| words.iter().position(|word| *word == option).and_then(|at| words.get(at + 1));
    match words.as_slice() {
        ["speed", "run", preset] if preset.starts_with("configs/") => Trial::File((*preset).to_owned()),
        ["speed", "run", ..] => Trial::Run(format!("{command} --dry-run --set table.repeats=0")),
        ["speed", "plan", ..] => Trial::Run(format!("{command} --without-times")),
        ["speed", ..] => Trial::Run(command),
        ["cargo", "run" | "build" | "test", ..] => {
            let package = after("-p").map_or("*".to_owned(), |package| (*package).to_owned());
            let example = after("--example").map(|example| format!("crates/{package}/examples/{example}.rs"));
            Trial::File(example.unwrap_or(format!("crates/{package}/Cargo.toml")))
        }
        ["bash", script, ..] | ["python", script, ..] => Trial::File((*script).to_owned()),
        [script, ..] if script.starts_with("scripts/") || script.starts_with(".ci/") => {
            Trial::File((*script).to_owned())
        }
        _ => Trial::Unknown,
    }
}
