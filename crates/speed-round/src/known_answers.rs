//! Queries whose labels the student knows: it mixes them into a round and compares the answers before it writes any label.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use serde::Serialize;
use speed_core::vote_files::{NamedQueries, Pair, csv_cell, parse_pairs};
use speed_core::{Classes, Randomness, derive_key};
use zeroize::Zeroizing;

use crate::error::RolesError;
use crate::fault::{InputFault, KnownFault};
use crate::file_kind::FileKind;
use crate::files::{Access, read_input, write_new};
use crate::round_file::RoundFile;
use crate::round_queries;

/// The student's known answers, and how many of them may be wrong.
#[derive(Clone, Debug)]
pub struct KnownOptions {
    /// Lines of `query,label` or `name,label` below these column names.
    pub answers: PathBuf,
    /// The round's list of queries, if the lines name queries.
    pub query_list: Option<PathBuf>,
    /// The largest number of wrong answers. Teachers are not always right, so it is 0 only for pictures that all of them
    /// recognise.
    pub wrong: usize,
}

/// The comparison of the known answers with the labels.
#[derive(Clone, Copy, Debug, Serialize)]
#[non_exhaustive]
pub struct KnownReport {
    /// Number of known answers.
    pub known: usize,
    /// Number of answers that differ. A query without an answer differs.
    pub wrong: usize,
    /// The largest number that may differ.
    pub allowed: usize,
}

/// The known labels of a round, by query.
pub(crate) struct KnownAnswers {
    labels: BTreeMap<usize, u8>,
    allowed: usize,
}

impl KnownAnswers {
    /// Reads known answers and checks them against the terms of the round.
    pub(crate) fn read(options: &KnownOptions, file: &RoundFile) -> Result<Self, RolesError> {
        let at = |fault: KnownFault| RolesError::input(&options.answers)(InputFault::Known(fault));
        let bytes = Zeroizing::new(read_input(&options.answers, FileKind::KNOWN)?);
        let parsed = parse_pairs(&bytes, &["query", "name"], "label").map_err(|fault| at(fault.into()))?;
        let shape = file.round().shape();
        let names = match (&options.query_list, parsed.head.as_str()) {
            (Some(list), "name") => Some(numbers(list, file)?),
            (None, "name") => return Err(at(KnownFault::NoList)),
            _ => None,
        };
        let mut labels = BTreeMap::new();
        for pair in parsed.pairs {
            let query = match &names {
                Some(names) => names.get(&pair.key).copied(),
                // "00" and "+0" could name query 0 a second time.
                None => pair.key.parse().ok().filter(|query: &usize| query.to_string() == pair.key),
            };
            let query = query.filter(|query| *query < shape.queries());
            let query = query.ok_or(KnownFault::Query { line: pair.line, found: beginning(&pair.key) }).map_err(at)?;
            let label = file.classes().number(&pair.value);
            labels.insert(query, label.ok_or_else(|| KnownFault::label(&pair, file.classes())).map_err(at)?);
        }
        if labels.len() >= shape.queries() || options.wrong >= labels.len() {
            let (known, queries, wrong) = (labels.len(), shape.queries(), options.wrong);
            return Err(at(KnownFault::Count { known, queries, wrong }));
        }
        Ok(Self { labels, allowed: options.wrong })
    }

    /// Compares the known answers with the decrypted labels, and removes the labels of their queries.
    pub(crate) fn check(&self, answers: &mut [Option<u8>]) -> Result<KnownReport, InputFault> {
        let (known, allowed) = (self.labels.len(), self.allowed);
        let wrong = self.labels.iter().filter(|(query, label)| answers[**query] != Some(**label)).count();
        if wrong > allowed {
            return Err(KnownFault::Wrong { wrong, known, allowed }.into());
        }
        self.labels.keys().for_each(|query| answers[*query] = None);
        Ok(KnownReport { known, wrong, allowed })
    }
}

/// Returns the numbers of the queries of the round's list by their names.
fn numbers(list: &Path, file: &RoundFile) -> Result<HashMap<String, usize>, RolesError> {
    Ok(round_queries::read(list, file)?.names().iter().cloned().zip(0..).collect())
}

impl KnownFault {
    /// Returns the fault of a label that is not the name of a class.
    pub(crate) fn label(pair: &Pair, classes: &Classes) -> Self {
        Self::Label { line: pair.line, found: beginning(&pair.value), classes: classes.all_names() }
    }
}

/// Returns the beginning of a cell for a message.
pub(crate) fn beginning(text: &str) -> String {
    text.chars().take(100).collect()
}

/// The options of a list of queries with known answers.
#[derive(Clone, Debug)]
pub struct MixOptions {
    /// The list of queries whose labels the student wants.
    pub query_list: PathBuf,
    /// The known answers, lines of `name,label`.
    pub known: PathBuf,
    /// The list to create.
    pub out: PathBuf,
}

/// The report of a list of queries with known answers.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct MixReport {
    /// Number of queries of the new list.
    pub queries: usize,
    /// Number of queries whose answers are known.
    pub known: usize,
    /// The new list.
    pub out: PathBuf,
}

/// Writes the pictures of a list of queries and those of known answers as one list, in a random order from the operating
/// system's generator. The order depends on no name, so the places of the known answers are secret from everyone who does
/// not know their pictures.
///
/// # Errors
/// If an input is not a list, has groups, or names a picture twice; or the new list exists or cannot be written.
pub fn mix(options: &MixOptions) -> Result<MixReport, RolesError> {
    let at_known = |fault: KnownFault| RolesError::input(&options.known)(InputFault::Known(fault));
    let bytes = read_input(&options.query_list, FileKind::QUERY_LIST)?;
    let list = NamedQueries::parse(&bytes).map_err(RolesError::input(&options.query_list))?;
    if list.is_grouped() {
        return Err(RolesError::input(&options.query_list)(InputFault::Known(KnownFault::Groups)));
    }
    let known = Zeroizing::new(read_input(&options.known, FileKind::KNOWN)?);
    let known = parse_pairs(&known, &["name"], "label").map_err(|fault| at_known(fault.into()))?.pairs;
    if let Some(pair) = known.iter().find(|pair| pair.value.is_empty()) {
        return Err(at_known(KnownFault::NoLabel { line: pair.line }));
    }
    let key = Randomness::fresh()?;
    let names = list.names().iter().cloned().chain(known.iter().map(|pair| pair.key.clone()));
    let mut names: Vec<([u8; 32], String)> = names
        .map(|name| (derive_key(b"speed/known-answers/v1", key.as_slice(), "order", 0, name.as_bytes()), name))
        .collect();
    names.sort_unstable();
    let lines = names.iter().map(|(_, name)| csv_cell(name) + "\n");
    let text: String = std::iter::once("name\n".to_owned()).chain(lines).collect();
    // Also refuses a picture that is in both files.
    let read = NamedQueries::parse(text.as_bytes()).map_err(RolesError::input(&options.known))?;
    debug_assert!(read.names().iter().eq(names.iter().map(|(_, name)| name)));
    write_new(&options.out, text.as_bytes(), Access::Shared)?;
    Ok(MixReport { queries: names.len(), known: known.len(), out: options.out.clone() })
}
