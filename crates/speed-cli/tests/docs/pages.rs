//! The Markdown files of the repository, and their parts that may contain numbers.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug)]
pub(crate) struct Page {
    /// The path relative to the repository's root.
    pub(crate) name: String,
    pub(crate) text: String,
}

/// A line of a page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line<'a> {
    /// Its number, from 1.
    pub(crate) number: usize,
    /// The position of its first byte.
    pub(crate) start: usize,
    /// Its text with its end.
    pub(crate) text: &'a str,
    pub(crate) block: Block<'a>,
}

/// The part of a page that a line belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Block<'a> {
    Prose,
    /// The first or last line of a code block.
    Fence,
    /// A code block with this first line.
    Code(&'a str),
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

/// Lists the repository's files as paths relative to its root, without build outputs and results of local runs.
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
            // Runs write to `results/`, and only `results/published/` is part of the repository.
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

pub(crate) fn pages() -> Vec<Page> {
    let markdown = files().into_iter().filter(|name| name.ends_with(".md"));
    markdown.map(|name| Page { text: fs::read_to_string(root().join(&name)).expect("text"), name }).collect()
}

impl Page {
    /// Returns whether the page's numbers are checked. Other Markdown files below `results/` are themselves records of
    /// measurements, and the changelog states no measurements.
    pub(crate) fn makes_claims(&self) -> bool {
        let name = self.name.as_str();
        name != "CHANGELOG.md"
            && !name.contains("/tests/")
            && (!name.starts_with("results/") || name.ends_with("README.md"))
    }

    pub(crate) fn line(&self, at: usize) -> usize {
        self.text[..at].matches('\n').count() + 1
    }

    /// Returns the text with code and addresses blanked, byte by byte. Comments after commands stay.
    pub(crate) fn prose(&self) -> String {
        let mut bytes = self.text.clone().into_bytes();
        for Line { start, text, block, .. } in self.lines() {
            match block {
                Block::Fence => blank(&mut bytes, start..start + text.len()),
                Block::Code(kind) => {
                    let comment = if kind == "```console" { comment_start(text) } else { None };
                    blank(&mut bytes, start..start + comment.unwrap_or(text.len()));
                }
                Block::Prose => {
                    spans(text).into_iter().for_each(|span| blank(&mut bytes, start + span.start..start + span.end));
                }
            }
        }
        String::from_utf8(bytes).expect("blanked by characters")
    }

    /// Returns the lines with their code blocks.
    pub(crate) fn lines(&self) -> Vec<Line<'_>> {
        let (mut start, mut inside) = (0, None);
        let mut lines = Vec::new();
        for (number, text) in (1..).zip(self.text.split_inclusive('\n')) {
            let block = match inside {
                _ if text.trim_start().starts_with("```") => {
                    inside = if inside.is_some() { None } else { Some(text.trim()) };
                    Block::Fence
                }
                Some(kind) => Block::Code(kind),
                None => Block::Prose,
            };
            lines.push(Line { number, start, text, block });
            start += text.len();
        }
        lines
    }

    /// Returns the numbered lines of all code blocks, indented or fenced.
    pub(crate) fn code(&self) -> Vec<(usize, &str)> {
        let is_code = |line: &Line<'_>| match line.block {
            Block::Code(_) => true,
            Block::Prose => line.text.starts_with("    "),
            Block::Fence => false,
        };
        self.lines().into_iter().filter(is_code).map(|line| (line.number, line.text.trim_end())).collect()
    }

    /// Returns the commands of `console` blocks as shown, without comments and with continued lines joined.
    pub(crate) fn commands(&self) -> Vec<(usize, String)> {
        let mut commands: Vec<(usize, String)> = Vec::new();
        let mut continues = false;
        for Line { number, text: line, .. } in
            self.lines().iter().filter(|line| line.block == Block::Code("```console"))
        {
            let (text, more) = match line.trim_end().strip_suffix('\\') {
                Some(text) => (text, true),
                None => (&line[..comment_start(line).unwrap_or(line.len())], false),
            };
            if continues {
                let (_, command) = commands.last_mut().expect("a command before its continuation");
                *command = format!("{command} {}", text.trim());
            } else if let Some(text) = text.strip_prefix("$ ") {
                commands.push((*number, text.trim().to_owned()));
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

/// Returns the position of the comment after a command.
fn comment_start(line: &str) -> Option<usize> {
    line.find("  #").or_else(|| line.find(" # ")).map(|at| at + 1)
}

/// Finds code spans, link targets and web addresses in a line.
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
