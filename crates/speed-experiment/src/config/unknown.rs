//! Messages about unknown keys, values and files, with suggestions.

use std::path::{Path, PathBuf};

use speed_core::{did_you_mean, nearest};
use toml::{Table, Value};

use super::defaults::{ROWS, defaults};

const ELSEWHERE: [(&[&str], &str); 3] = [
    (
        &["epsilon", "eps", "target_epsilon"],
        "no key sets epsilon, which follows from the noise: `speed calibrate --epsilon E --delta D --queries N` finds noise.gamma for an \
         epsilon; --max-epsilon and privacy.budget limit it",
    ),
    (
        &["scale", "b", "lambda", "inverse_scale"],
        "the scale of the noise is set by its inverse, noise.gamma, per vote, by noise.sigma for skellam, or by noise.coins for binomial",
    ),
    (
        &["std", "stddev", "standard_deviation", "noise_multiplier", "variance"],
        "noise.sigma is the standard deviation of skellam or binomial noise, in votes; discrete-laplace noise has noise.gamma",
    ),
];

const MAX_SECTIONS: usize = 3;

/// Returns a message that a table has no key `name`, with suggestions.
pub(super) fn unknown_key(table: &Table, name: &str) -> String {
    unknown_of(&table.keys().map(String::as_str).collect::<Vec<_>>(), name)
}

/// Returns the same message for a table with the keys `known`.
pub(super) fn unknown_of(known: &[&str], name: &str) -> String {
    let lower = name.to_lowercase();
    if let Some((_, instead)) = ELSEWHERE.iter().find(|(names, _)| names.contains(&lower.as_str())) {
        return format!("unknown key: {instead}");
    }
    let near = nearest(name, known.iter().copied());
    let mut elsewhere = Vec::new();
    paths("", &Value::Table(defaults()), &mut elsewhere);
    let same = elsewhere.iter().map(String::as_str).filter(|path| path.rsplit('.').next() == Some(name));
    let same: Vec<&str> = same.take(MAX_SECTIONS).collect();
    let here = if same.is_empty() { "" } else { " here" };
    let meant: Vec<String> = near.into_iter().chain(same).map(|key| format!("`{key}`")).collect();
    if meant.is_empty() {
        return format!("unknown key; allowed here: {}", known.join(", "));
    }
    format!("unknown key{here}; did you mean {}?", meant.join(" or "))
}

/// Collects the dotted paths of all keys; for rows, only those of the first.
fn paths(prefix: &str, value: &Value, found: &mut Vec<String>) {
    let below = |key: &str| if prefix.is_empty() { key.to_owned() } else { format!("{prefix}.{key}") };
    match value {
        Value::Table(table) => table.iter().for_each(|(key, value)| {
            found.push(below(key));
            paths(&below(key), value, found);
        }),
        Value::Array(items) if prefix == ROWS => {
            items.iter().take(1).for_each(|row| paths(&below("0"), row, found));
        }
        _ => {}
    }
}

/// Adds a suggestion to serde's message about a choice: "unknown variant `x`, expected `a` or `b`".
pub(super) fn with_suggestion(message: &str) -> String {
    let mut quoted = message.split('`').skip(1).step_by(2);
    match quoted.next() {
        Some(found) if message.starts_with("unknown variant") => format!("{message}{}", did_you_mean(found, quoted)),
        _ => message.to_owned(),
    }
}

/// Returns the config that was probably meant if the file `path` does not exist.
pub(super) fn config_instead(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut folders: Vec<PathBuf> = folder.map(Path::to_path_buf).into_iter().collect();
    folders.extend(["", "configs"].map(PathBuf::from));
    let with_ending = format!("{name}.toml");
    let written = folders.iter().flat_map(|folder| [name, &with_ending].map(|name| folder.join(name)));
    let inside = path.join("config.toml");
    if let Some(there) = written.chain([inside]).find(|path| path.is_file()) {
        return Some(there);
    }
    folders.into_iter().find_map(|folder| {
        let names = names_in(&folder);
        let stem = name.strip_suffix(".toml").unwrap_or(name);
        nearest(stem, names.iter().map(String::as_str)).map(|near| folder.join(format!("{near}.toml")))
    })
}

fn names_in(folder: &Path) -> Vec<String> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().take(1000);
    let names = entries.filter_map(|entry| entry.file_name().to_str()?.strip_suffix(".toml").map(str::to_owned));
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}
