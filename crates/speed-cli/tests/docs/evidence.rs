//! Names of tests on the pages about security.

use std::collections::BTreeSet;
use std::fs;

use regex::Regex;

use crate::docs::pages::{self, Page};

/// The pages on which every name of at least three words is the name of a test, and every script exists.
pub(crate) const PAGES: [&str; 4] = ["SECURITY.md", "docs/hospitals.md", "docs/protocol.md", "docs/threat-models.md"];

pub(crate) fn tests(files: &[String]) -> BTreeSet<String> {
    let test = r"#\[(?:tokio::)?test(?:\([^\]]*\))?\]\s*(?:(?:#\[[^\n]*\]|//[^\n]*)\s*)*(?:async )?fn (\w+)";
    let test = Regex::new(test).expect("a pattern");
    let sources = files.iter().filter(|file| file.ends_with(".rs"));
    let scripts = files.iter().filter(|file| file.ends_with(".trycmd"));
    let scripts = scripts.filter_map(|file| Some(file.rsplit_once('/')?.1.to_owned()));
    sources
        .flat_map(|file| {
            let source = fs::read_to_string(pages::root().join(file)).expect("a source");
            test.captures_iter(&source).map(|captures| captures[1].to_owned()).collect::<Vec<_>>()
        })
        .chain(scripts)
        .collect()
}

/// Returns a page's names of tests that do not exist. Names that begin with `speed_` are metrics of the server.
pub(crate) fn missing(page: &Page, tests: &BTreeSet<String>) -> Vec<String> {
    let name = Regex::new(r"`([a-z][a-z0-9]*(?:_[a-z0-9]+){2,}|[a-z-]+\.trycmd)`").expect("a pattern");
    let names = name.captures_iter(&page.text).filter_map(|captures| captures.get(1));
    names
        .filter(|name| !name.as_str().starts_with("speed_") && !tests.contains(name.as_str()))
        .map(|name| format!("{}:{}: no test is called {}", page.name, page.line(name.start()), name.as_str()))
        .collect()
}
