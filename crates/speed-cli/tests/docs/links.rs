//! Links between files, and paths on pages.

use std::collections::HashMap;

use regex::Regex;

use crate::docs::pages::{Block, Page};

/// Returns a page's links to missing files and headings.
pub(crate) fn broken(page: &Page, pages: &[Page], files: &[String]) -> Vec<String> {
    let link = Regex::new(r"\]\(([^)\s]+)\)").expect("a pattern");
    let code = Regex::new(r"`[^`\n]*`").expect("a pattern");
    let folder = page.name.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut problems = Vec::new();
    for line in page.lines().iter().filter(|line| line.block == Block::Prose) {
        let text = code.replace_all(line.text, "");
        for target in link.captures_iter(&text).map(|captures| captures.get(1).expect("a target").as_str()) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
            let path = if path.is_empty() { Some(page.name.clone()) } else { join(folder, path) };
            let problem = match path {
                None => "outside the repository".to_owned(),
                Some(path) if !exists(&path, files) => format!("{path} does not exist"),
                Some(path) => match pages.iter().find(|other| other.name == path) {
                    Some(other) if !anchor.is_empty() && !anchors(other).iter().any(|name| name == anchor) => {
                        format!("{path} has no heading #{anchor}")
                    }
                    _ => continue,
                },
            };
            problems.push(format!("{}:{}: link {target}: {problem}", page.name, line.number));
        }
    }
    problems
}

/// Returns missing paths in code spans. A path may leave out its first directories, as in
/// `speed-nn/src/matrix/tiles.rs`.
pub(crate) fn missing_paths(page: &Page, files: &[String]) -> Vec<String> {
    let span = Regex::new(r"`([^`\n]+)`").expect("a pattern");
    let path = Regex::new(r"^[\w.{},-]+(?:/[\w.{},-]+)*(?:/|\.rs)$").expect("a pattern");
    let rooted = ["crates/", "configs/", "docs/", "scripts/", "results/published/", ".ci/", "fuzz/", "examples/"];
    let mut problems = Vec::new();
    for captures in span.captures_iter(&page.text) {
        let place = captures.get(1).expect("a name");
        let name = place.as_str();
        let is_rooted = rooted.iter().any(|folder| name.starts_with(folder)) && !name.contains([' ', '*', '<']);
        let is_path = path.is_match(name) && (name.ends_with(".rs") || page.name == "ARCHITECTURE.md");
        if !is_rooted && !is_path {
            continue;
        }
        for wanted in alternatives(name) {
            let wanted = wanted.trim_end_matches('/');
            let found = files.iter().any(|file| format!("/{file}/").contains(&format!("/{wanted}/")));
            // Directories that a run creates.
            let folder = wanted.split('/').next().unwrap_or_default();
            let of_a_run = ["shards", "slurm", "tables", "stages", "results"].contains(&folder);
            if !found && (is_rooted || !of_a_run) {
                problems.push(format!("{}:{}: {wanted} does not exist", page.name, page.line(place.start())));
            }
        }
    }
    problems
}

/// Expands `a/{b,c}.rs` to `a/b.rs` and `a/c.rs`.
fn alternatives(name: &str) -> Vec<String> {
    match (name.find('{'), name.find('}')) {
        (Some(open), Some(close)) if open < close => {
            let (before, after) = (&name[..open], alternatives(&name[close + 1..]));
            let parts = name[open + 1..close].split(',');
            parts.flat_map(|part| after.iter().map(move |after| format!("{before}{part}{after}"))).collect()
        }
        _ => vec![name.to_owned()],
    }
}

fn exists(path: &str, files: &[String]) -> bool {
    let path = path.trim_end_matches('/');
    files.iter().any(|file| file == path || file.starts_with(&format!("{path}/")))
}

fn join(folder: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
        if part == ".." {
            parts.pop()?;
        } else {
            parts.push(part);
        }
    }
    Some(parts.join("/"))
}

/// Returns GitHub's anchors for the headings of a page.
fn anchors(page: &Page) -> Vec<String> {
    let (mut seen, mut anchors) = (HashMap::new(), Vec::new());
    for line in page.lines().iter().filter(|line| line.block == Block::Prose) {
        let heading = line.text.trim_start_matches('#');
        if heading.len() == line.text.len() || !heading.starts_with(' ') {
            continue;
        }
        let kept = heading
            .trim()
            .chars()
            .filter(|character| character.is_alphanumeric() || matches!(character, ' ' | '-' | '_'));
        let anchor: String =
            kept.flat_map(char::to_lowercase).map(|character| if character == ' ' { '-' } else { character }).collect();
        let count = seen.entry(anchor.clone()).and_modify(|count| *count += 1).or_insert(0);
        anchors.push(if *count == 0 { anchor } else { format!("{anchor}-{count}") });
    }
    anchors
}
