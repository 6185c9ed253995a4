//! Links between files, and paths on pages.

use std::collections::HashMap;

use regex::Regex;

use crate::docs::pages::Page;

/// Returns a page's links to missing files and headings.
pub(crate) fn broken(page: &Page, pages: &[Page], files: &[String]) -> Vec<String> {
    let link = Regex::new(r"\]\(([^)\s]+)\)").expect("a pattern");
    let mut problems = Vec::new();
    let (text, folder) = (without_code(&page.text), page.name.rsplit_once('/').map_or("", |(folder, _)| folder));
    for captures in link.captures_iter(&text) {
        let target = captures.get(1).expect("a target");
        if target.as_str().contains("://") || target.as_str().starts_with("mailto:") {
            continue;
        }
        let (path, anchor) = target.as_str().split_once('#').unwrap_or((target.as_str(), ""));
        let path = if path.is_empty() { Some(page.name.clone()) } else { join(folder, path) };
        let problem = match path {
            None => Some("outside the repository".to_owned()),
            Some(path) if !exists(&path, files) => Some(format!("{path} does not exist")),
            Some(path) => {
                let other = pages.iter().find(|other| other.name == path);
                let missing = !anchor.is_empty()
                    && other.is_some_and(|other| !anchors(&other.text).iter().any(|name| name == anchor));
                missing.then(|| format!("{path} has no heading #{anchor}"))
            }
        };
        problems.extend(problem.map(|problem| {
            format!("{}:{}: link {}: {problem}", page.name, page.line(target.start()), target.as_str())
        }));
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
        let name = captures.get(1).expect("a name");
        let is_rooted =
            rooted.iter().any(|folder| name.as_str().starts_with(folder)) && !name.as_str().contains([' ', '*', '<']);
        if !is_rooted
            && !(path.is_match(name.as_str()) && (name.as_str().ends_with(".rs") || page.name == "ARCHITECTURE.md"))
        {
            continue;
        }
        for wanted in alternatives(name.as_str()) {
            let wanted = wanted.trim_end_matches('/');
            let found = files.iter().any(|file| {
                let file = format!("/{file}/");
                file.contains(&format!("/{wanted}/"))
            });
            // Directories that a run creates.
            let of_a_run = ["shards", "slurm", "tables", "stages", "results"]
                .contains(&wanted.split('/').next().unwrap_or_default());
            if !found && (is_rooted || !of_a_run) {
                problems.push(format!("{}:{}: {wanted} does not exist", page.name, page.line(name.start())));
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

/// Returns a text with code blocks and code spans blanked.
fn without_code(text: &str) -> String {
    let (mut inside, mut blanked) = (false, String::with_capacity(text.len()));
    let span = Regex::new(r"`[^`\n]*`").expect("a pattern");
    for line in text.split_inclusive('\n') {
        let fence = line.trim_start().starts_with("```");
        if inside || fence {
            blanked.extend(line.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }));
        } else {
            blanked.push_str(&span.replace_all(line, |code: &regex::Captures| " ".repeat(code[0].len())));
        }
        inside ^= fence;
    }
    blanked
}

/// Returns GitHub's anchors for the headings of a page.
fn anchors(text: &str) -> Vec<String> {
    let (mut inside, mut seen, mut anchors) = (false, HashMap::new(), Vec::new());
    for line in text.lines() {
        inside ^= line.trim_start().starts_with("```");
        let heading = line.trim_start_matches('#');
        if inside || heading.len() == line.len() || !heading.starts_with(' ') {
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
