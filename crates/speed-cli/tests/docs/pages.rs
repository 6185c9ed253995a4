//! The Markdown files of the repository, and the parts of them that a number can stand in.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A Markdown file.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    /// The path from the repository's root.
    pub(crate) name: String,
    pub(crate) text: String,
}

/// The repository's root.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

/// All files that are part of the repository, as paths from its root. Build outputs and results of local runs are left out.
pub(crate) fn files() -> Vec<String> {
    let root = root();
    let mut found = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let name = path.strip_prefix(&root).expect("inside").to_string_lossy().replace('\\', "/");
            if name.ends_with("target") || name == ".git" || name == "shared" {
                continue;
            }
            // Runs write to `results/`; the repository keeps `results/published/`.
            if path.is_dir() && name.starts_with("results/") && !name.starts_with("results/published") {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push(name);
            }
        }
    }
    found.sort();
    found
}

/// All Markdown files.
pub(crate) fn pages() -> Vec<Page> {
    let markdown = files().into_iter().filter(|name| name.ends_with(".md"));
    markdown.map(|name| Page { text: fs::read_to_string(root().join(&name)).expect("text"), name }).collect()
}

impl Page {
    /// Whether its numbers are checked. Other Markdown files below `results/` are themselves the record of a measurement, and the
    /// changelog is about programs of the past.
    pub(crate) fn makes_claims(&self) -> bool {
        let name = self.name.as_str();
        name != "CHANGELOG.md"
            && !name.contains("/tests/")
            && (!name.starts_with("results/") || name.ends_with("README.md"))
    }

    /// The line of a byte, from 1.
    pub(crate) fn line(&self, at: usize) -> usize {
        self.text[..at].matches('\n').count() + 1
    }

    /// The text with everything that is code or an address blanked, byte by byte. Comments behind commands stay.
    pub(crate) fn prose(&self) -> String {
        let mut bytes = self.text.clone().into_bytes();
        let mut start = 0;
        let mut fence: Option<String> = None;
        for line in self.text.split_inclusive('\n') {
            let range = start..start + line.len();
            start += line.len();
            let trimmed = line.trim_start();
            match &fence {
                _ if trimmed.starts_with("```") => {
                    fence = if fence.is_some() { None } else { Some(trimmed.trim_end().to_owned()) };
                    blank(&mut bytes, range);
                }
                Some(kind) => {
                    let comment = if kind == "```console" { comment_start(line) } else { None };
                    blank(&mut bytes, range.start..comment.map_or(range.end, |at| range.start + at));
                }
                None => spans(line)
                    .into_iter()
                    .for_each(|span| blank(&mut bytes, range.start + span.start..range.start + span.end)),
            }
        }
        String::from_utf8(bytes).expect("blanked by characters")
    }

    /// The lines of its code blocks, indented or fenced, with their numbers.
    pub(crate) fn code(&self) -> Vec<(usize, &str)> {
        let mut inside = false;
        let mut lines = Vec::new();
        for (number, line) in self.text.lines().enumerate() {
            let fence = line.trim_start().starts_with("```");
            inside ^= fence;
            if !fence && (inside || line.starts_with("    ")) {
                lines.push((number + 1, line));
            }
        }
        lines
    }

    /// The commands of its `console` blocks as they are shown, without comments, continued lines joined.
    pub(crate) fn commands(&self) -> Vec<(usize, String)> {
        let mut commands: Vec<(usize, String)> = Vec::new();
        let (mut inside, mut continues) = (false, false);
        for (number, line) in self.text.lines().enumerate() {
            if line.trim_start().starts_with("```") {
                inside = line.trim() == "```console";
                continue;
            }
            let (text, more) = match line.trim_end().strip_suffix('\\') {
                Some(text) => (text, true),
                None => (&line[..comment_start(line).unwrap_or(line.len())], false),
            };
            if inside && continues {
                let (_, command) = commands.last_mut().expect("a command before its continuation");
                *command = format!("{command} {}", text.trim());
            } else if let (true, Some(text)) = (inside, text.strip_prefix("$ ")) {
                commands.push((number + 1, text.trim().to_owned()));
            } else {
                continue;
            }
            continues = more;
        }
        commands
    }
}

fn blank(bytes: &mut [u8], range: Range<usize>) {
    bytes[range].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
}

/// The byte at which the comment behind a command begins.
fn comment_start(line: &str) -> Option<usize> {
    line.find("  #").or_else(|| line.find(" # ")).map(|at| at + 1)
}

/// Code spans, targets of links and web addresses of a line.
fn spans(line: &str) -> Vec<Range<usize>> {
    let mut spans = Vec::new();
    let mut open = None;
    for (at, character) in line.char_indices() {
        match (character, open) {
            ('`', None) => open = Some(at),
            ('`', Some(from)) => {
                spans.push(from..at + 1);
                open = None;
            }
            _ => {}
        }
    }
    for (at, _) in line.match_indices("](") {
        let end = line[at..].find(')').map_or(line.len(), |length| at + length);
        spans.push(at + 2..end);
    }
    spans
}
