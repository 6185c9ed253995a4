//! `docs/numbers/*.toml`: the source of each number in the documents, and the way to try each command.

use std::collections::BTreeMap;
use std::fs;
use std::sync::OnceLock;

use regex::Regex;
use serde::Deserialize;

use crate::docs::number::Rounding;
use crate::docs::pages;

/// The combined content of all files in `docs/numbers`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Book {
    pub(crate) claim: Vec<Claim>,
    pub(crate) table: Vec<Table>,
    pub(crate) given: Vec<Given>,
    pub(crate) tested: Vec<Tested>,
    pub(crate) command: Vec<Command>,
}

/// A passage whose numbers come from a file or a command.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Claim {
    pub(crate) pages: Vec<String>,
    /// The passage, with `{}` for each checked number.
    pub(crate) text: String,
    /// The source for values that begin with `# `.
    #[serde(default)]
    pub(crate) from: String,
    /// A value `SOURCE # SELECTOR` for each `{}`.
    pub(crate) values: Vec<String>,
    #[serde(default)]
    pub(crate) round: Rounding,
    #[serde(skip)]
    pub(crate) pattern: OnceLock<Regex>,
}

/// A table whose cells are compared with a table in a file or in the output of a command.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Table {
    pub(crate) pages: Vec<String>,
    /// The beginning of the table's first line.
    pub(crate) head: String,
    pub(crate) from: String,
    /// The number of columns that identify a row.
    #[serde(default = "one")]
    pub(crate) key: usize,
    /// Names of rows on the page and in the source, if they differ. The cells of a longer key are joined with " | ".
    #[serde(default)]
    pub(crate) rows: BTreeMap<String, String>,
    /// Headings on the page and in the source, if they differ.
    #[serde(default)]
    pub(crate) columns: BTreeMap<String, String>,
    /// If given, the only compared columns, by their headings on the page.
    #[serde(default)]
    pub(crate) only: Vec<String>,
    #[serde(default)]
    pub(crate) skip: Vec<String>,
    /// Whether it is compared only with SPEED_EXHAUSTIVE (.ci/nightly), because its command takes long.
    #[serde(default)]
    pub(crate) nightly: bool,
}

fn one() -> usize {
    1
}

/// Numbers of a page that no run produces: settings, constants of a proof or a format, numbers of other publications.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Given {
    pub(crate) page: String,
    pub(crate) why: String,
    /// The numbers as printed, each repeated for every occurrence.
    pub(crate) numbers: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tested {
    pub(crate) page: String,
    /// The beginning of the table's first line.
    pub(crate) head: String,
    pub(crate) file: String,
    pub(crate) test: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Command {
    pub(crate) shown: String,
    #[serde(default)]
    pub(crate) tried: Option<String>,
    pub(crate) why: String,
}

impl Book {
    pub(crate) fn read() -> Self {
        let mut book = Self::default();
        for name in pages::files().iter().filter(|name| name.starts_with("docs/numbers/") && name.ends_with(".toml")) {
            let text = fs::read_to_string(pages::root().join(name)).expect("text");
            let part: Self = toml::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
            book.claim.extend(part.claim);
            book.table.extend(part.table);
            book.given.extend(part.given);
            book.tested.extend(part.tested);
            book.command.extend(part.command);
        }
        book
    }

    /// Returns entries for missing pages, and entries without a reason.
    pub(crate) fn problems(&self, pages: &[pages::Page]) -> Vec<String> {
        let named = self.claim.iter().flat_map(|claim| &claim.pages);
        let named = named.chain(self.table.iter().flat_map(|table| &table.pages));
        let named = named.chain(self.given.iter().map(|given| &given.page));
        let mut problems: Vec<String> = named
            .filter(|name| !pages.iter().any(|page| page.name == **name && page.makes_claims()))
            .map(|name| format!("docs/numbers: {name} is not a page whose numbers are checked"))
            .collect();
        for claim in &self.claim {
            let holes = claim.text.matches("{}").count();
            if holes != claim.values.len() || holes == 0 {
                let values = claim.values.len();
                problems.push(format!("docs/numbers: {:?} has {holes} places and {values} values", claim.text));
            }
        }
        for tested in &self.tested {
            let source = fs::read_to_string(pages::root().join(&tested.file)).unwrap_or_default();
            if !source.contains(&format!("fn {}()", tested.test)) {
                problems.push(format!("docs/numbers: {} has no test {}", tested.file, tested.test));
            }
        }
        let reasons = self.given.iter().map(|given| &given.why).chain(self.command.iter().map(|command| &command.why));
        problems.extend(
            reasons.filter(|why| why.trim().is_empty()).map(|_| "docs/numbers: an entry without `why`".to_owned()),
        );
        problems
    }
}
