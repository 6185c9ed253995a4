//! Queries whose labels the student knows: it mixes them into a round and compares the answers before it writes any label.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use serde::Serialize;
use speed_core::vote_files::{NamedQueries, Pair, Pairs, parse_pairs};
use speed_core::{Classes, Randomness, class_list, derive_key};
use zeroize::Zeroizing;

use crate::error::{Refused, beginning};
use crate::file_kind::FileKind;
use crate::files::{Access, read_input, write_new};
use crate::round_file::RoundFile;

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
    pub(crate) fn read(options: &KnownOptions, file: &RoundFile) -> Result<Self, Refused> {
        let at = |fault: String| Refused::input(&options.answers)(fault);
        let parsed = read_pairs(&options.answers, &["query", "name"])?;
        let shape = file.round().shape();
        let names = match (&options.query_list, parsed.head.as_str()) {
            (Some(list), "name") => {
                let names = file.read_queries(list)?;
                Some(names.names().iter().cloned().zip(0..).collect::<HashMap<_, usize>>())
            }
            (None, "name") => {
                return Err(at("names its queries: give the round's list of queries with --query-list".to_owned()));
            }
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
            let query = query.ok_or_else(|| at(no_query(&pair)))?;
            let label = file.classes().number(&pair.value).ok_or_else(|| at(no_class(&pair, file.classes())))?;
            labels.insert(query, label);
        }
        if labels.len() >= shape.queries() || options.wrong >= labels.len() {
            let (known, queries, wrong) = (labels.len(), shape.queries(), options.wrong);
            return Err(at(format!(
                "expected fewer known answers than the {queries} queries, and fewer wrong ones than known ones, found {known} known answers of \
                 which {wrong} may be wrong"
            )));
        }
        Ok(Self { labels, allowed: options.wrong })
    }

    /// Compares the known answers with the decrypted labels, and removes the labels of their queries.
    pub(crate) fn check(&self, answers: &mut [Option<u8>]) -> Result<KnownReport, Refused> {
        let (known, allowed) = (self.labels.len(), self.allowed);
        let wrong = self.labels.iter().filter(|(query, label)| answers[**query] != Some(**label)).count();
        if wrong > allowed {
            return Err(Refused::fault(format!(
                "{wrong} of {known} known answers are wrong, at most {allowed} may be: the server lied, or the teachers do not recognise these \
                 pictures. No label was written. Publish nothing about the result, and let a teacher verify it with `speed server verify`"
            )));
        }
        self.labels.keys().for_each(|query| answers[*query] = None);
        Ok(KnownReport { known, wrong, allowed })
    }
}

/// Reads lines of a query, by one of these columns, and its label.
pub(crate) fn read_pairs(path: &Path, keys: &[&str]) -> Result<Pairs, Refused> {
    let bytes = Zeroizing::new(read_input(path, FileKind::KNOWN)?);
    parse_pairs(&bytes, keys, "label").map_err(Refused::input(path))
}

/// Returns the message about a query that the round does not have.
pub(crate) fn no_query(pair: &Pair) -> String {
    format!("line {}: expected a query of the round, found {:?}", pair.line, beginning(&pair.key))
}

/// Returns the message about a label that is not the name of a class.
pub(crate) fn no_class(pair: &Pair, classes: &Classes) -> String {
    let (line, names, found) = (pair.line, class_list(&classes.all_names()), beginning(&pair.value));
    format!("line {line}: expected a class of the round ({names}), found {found:?}")
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
pub fn mix(options: &MixOptions) -> Result<MixReport, Refused> {
    let bytes = read_input(&options.query_list, FileKind::QUERY_LIST)?;
    let list = NamedQueries::parse(&bytes).map_err(Refused::input(&options.query_list))?;
    if list.is_grouped() {
        return Err(Refused::input(&options.query_list)(
            "has groups: known answers can be mixed with single pictures only",
        ));
    }
    let known = read_pairs(&options.known, &["name"])?.pairs;
    if let Some(pair) = known.iter().find(|pair| pair.value.is_empty()) {
        let fault = format!("line {}: expected the class of this picture, found nothing", pair.line);
        return Err(Refused::input(&options.known)(fault));
    }
    let key = Randomness::fresh()?;
    let names = list.names().iter().cloned().chain(known.iter().map(|pair| pair.key.clone()));
    let mut names: Vec<([u8; 32], String)> = names
        .map(|name| (derive_key(b"speed/known-answers/v1", key.as_slice(), "order", 0, name.as_bytes()), name))
        .collect();
    names.sort_unstable();
    // Refuses a picture that is in both files.
    let mixed =
        list.with_pictures(names.iter().map(|(_, name)| name.clone())).map_err(Refused::input(&options.known))?;
    let text = mixed.to_csv(0..names.len());
    debug_assert!(NamedQueries::parse(text.as_bytes()).is_ok_and(|read| read == mixed));
    write_new(&options.out, text.as_bytes(), Access::Shared)?;
    Ok(MixReport { queries: names.len(), known: known.len(), out: options.out.clone() })
}
