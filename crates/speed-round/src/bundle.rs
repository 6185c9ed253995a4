//! Rounds for more labels than one key serves: the queries are divided among several key sets, and every part is a round of its
//! own. The rounds are made at once, and their folder goes to the other parties.

use std::collections::HashSet;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use speed_aggregation::Parameters;
use speed_core::vote_files::{NamedQueries, csv_cell};
use speed_core::{Classes, Digest};
use zeroize::Zeroizing;

use crate::error::Refused;
use crate::file_kind::FileKind;
use crate::files::{Access, expect_absent, folder_of, read_input, temporary, visible_files, write_new};
use crate::known_answers::{no_class, no_query, read_pairs};
use crate::randomness::RoundRandomness;
use crate::round_file::RoundFile;
use crate::student::{self, KEY_FILES, KeygenReport, RoundOptions};
use crate::terms::Terms;

/// The largest number of key sets of a bundle.
pub const MAX_KEY_SETS: usize = 999;

/// The names of the files of a part, in the folder of the bundle: round, proof key, public key and list of queries.
const PART_FILES: [&str; 4] = ["round.toml", "proof.key", "public.key", "queries.csv"];

/// The file of a part's known answers, beside its secret key.
const KNOWN: &str = "known.csv";

/// Generates `sets` key sets in the folders `1`, `2` and so on of `folder`. A simulation's seed is that of the first set, and each further set
/// has the next seed.
///
/// # Errors
/// The errors of [`student::keygen`].
pub fn keygen(
    folder: &Path,
    sets: usize,
    parameters: &Parameters,
    simulation: Option<u64>,
) -> Result<Vec<KeygenReport>, Refused> {
    // Before the first slow generation.
    (1..=sets).try_for_each(|set| expect_absent(&folder.join(set.to_string())))?;
    let randomness = |set: usize| RoundRandomness::from_seed(simulation.map(|seed| seed.wrapping_add(set as u64 - 1)));
    (1..=sets).map(|set| student::keygen(&folder.join(set.to_string()), parameters, randomness(set))).collect()
}

/// The options of the rounds of a bundle besides their terms.
#[derive(Clone, Debug)]
pub struct BundleOptions {
    /// The folder of the key sets ([`keygen`]).
    pub keys: PathBuf,
    /// The list of all queries, which is divided in its order.
    pub query_list: PathBuf,
    /// The known answers that were mixed into the list, lines of `name,label`. Each part's answers are written beside its secret key.
    pub known: Option<PathBuf>,
    /// True if messages need proofs.
    pub proofs: bool,
    /// The folder to create.
    pub out: PathBuf,
    /// The source of the proof keys' randomness.
    pub randomness: RoundRandomness,
}

/// A part of a bundle.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// The folder of its files.
    pub folder: PathBuf,
    /// Its round.
    pub file: RoundFile,
}

/// Returns the number of key sets in a folder.
pub(crate) fn key_sets(folder: &Path) -> Result<usize, Refused> {
    let found = visible_files(folder)?;
    let is_set = |set: &usize| folder.join(set.to_string()).is_dir();
    let sets = (1..=MAX_KEY_SETS).take_while(is_set).count();
    if sets > 0 && sets == found.len() {
        Ok(sets)
    } else {
        let found = found.len();
        Err(Refused::input(folder)(format!(
            "expected only the folders 1, 2 and so on, one for each key set (speed student keygen --sets), found {sets} of them among {found} entries"
        )))
    }
}

/// Writes the rounds of a bundle: for each key set a part of the queries in their order, as equal in size as possible. `terms` are
/// those of all queries together. A folder of `out` has all files of a part but the evaluation key. The folder `out` is created last, as a
/// unit; before that, the use of each key set is recorded beside its public key.
///
/// # Errors
/// The errors of [`student::round`] for each part. If there are fewer queries than key sets, the list has another number of queries, or a
/// known answer is not in the list.
pub fn rounds(terms: &Terms, options: &BundleOptions) -> Result<Vec<Part>, Refused> {
    let out = &options.out;
    expect_absent(out)?;
    let sets = key_sets(&options.keys)?;
    let parts = Parts::read(terms, sets, options)?;
    let place = temporary(0o777).tempdir_in(folder_of(out)).map_err(Refused::io("write", out))?;
    let prepared: Vec<_> = (0..sets)
        .map(|part| parts.prepare(part, &place.path().join((part + 1).to_string())))
        .collect::<Result<_, _>>()?;
    for part in 0..sets {
        parts.write_known(part)?;
    }
    let files: Vec<RoundFile> = prepared.into_iter().map(student::PreparedRound::write).collect::<Result<_, _>>()?;
    fs::rename(place.path(), out).map_err(Refused::io("write", out))?;
    let folder = |part: usize| out.join((part + 1).to_string());
    Ok(files.into_iter().enumerate().map(|(part, file)| Part { folder: folder(part), file }).collect())
}

/// The parts of a bundle before they are written.
struct Parts<'a> {
    terms: &'a Terms,
    options: &'a BundleOptions,
    sets: usize,
    queries: NamedQueries,
    /// The known answers, name and label.
    known: Vec<(String, String)>,
}

impl<'a> Parts<'a> {
    fn read(terms: &'a Terms, sets: usize, options: &'a BundleOptions) -> Result<Self, Refused> {
        let list = &options.query_list;
        let queries = NamedQueries::parse(&read_input(list, FileKind::QUERY_LIST)?);
        let queries = queries.and_then(|queries| queries.expect_count(terms.queries)).map_err(Refused::input(list))?;
        if queries.names().len() < sets {
            let queries = queries.names().len();
            let fault = format!("has {queries} queries, expected at least one for each of {sets} key sets");
            return Err(Refused::input(list)(fault));
        }
        let known =
            options.known.as_deref().map_or(Ok(Vec::new()), |path| read_known(path, &queries, &terms.classes))?;
        Ok(Self { terms, options, sets, queries, known })
    }

    /// Returns the queries of a part.
    fn range(&self, part: usize) -> Range<usize> {
        let start = |part: usize| part * self.queries.names().len() / self.sets;
        start(part)..start(part + 1)
    }

    fn keys(&self, part: usize, name: &str) -> PathBuf {
        self.options.keys.join((part + 1).to_string()).join(name)
    }

    /// Writes the files of a part but its round, and returns the round.
    fn prepare(&self, part: usize, folder: &Path) -> Result<student::PreparedRound, Refused> {
        let [round, proof_key, public, list] = PART_FILES.map(|name| folder.join(name));
        let [_, public_key, evaluation_key] = KEY_FILES.map(|name| self.keys(part, name));
        fs::create_dir(folder).map_err(Refused::io("create", folder))?;
        let queries = self.queries.to_csv(self.range(part));
        write_new(&list, queries.as_bytes(), Access::Shared)?;
        write_new(&public, &read_input(&public_key, FileKind::PUBLIC_KEY)?, Access::Shared)?;
        let terms = Terms {
            name: format!("{} ({} of {})", self.terms.name, part + 1, self.sets),
            queries: self.range(part).len(),
            query_list: Some(Digest::of(queries.as_bytes())),
            evaluation_key: Some(student::evaluation_key_digest(&evaluation_key, &public_key)?),
            ..self.terms.clone()
        };
        let options = RoundOptions {
            public_key,
            proof_key: self.options.proofs.then_some(proof_key),
            reuse_keys: false,
            out: round,
            randomness: self.options.randomness,
        };
        student::prepare(&terms, &options)
    }

    /// Writes the known answers of a part beside its secret key, if it has any.
    fn write_known(&self, part: usize) -> Result<(), Refused> {
        let names: HashSet<&String> = self.queries.names()[self.range(part)].iter().collect();
        let own = self.known.iter().filter(|(name, _)| names.contains(name));
        let lines: String = own.map(|(name, label)| format!("{},{}\n", csv_cell(name), csv_cell(label))).collect();
        if lines.is_empty() {
            return Ok(());
        }
        let text = Zeroizing::new(format!("name,label\n{lines}"));
        write_new(&self.keys(part, KNOWN), text.as_bytes(), Access::Owner)
    }
}

/// Reads the known answers of all queries.
fn read_known(path: &Path, queries: &NamedQueries, classes: &Classes) -> Result<Vec<(String, String)>, Refused> {
    let pairs = read_pairs(path, &["name"])?.pairs;
    let names: HashSet<&String> = queries.names().iter().collect();
    if let Some(pair) = pairs.iter().find(|pair| !names.contains(&pair.key)) {
        return Err(Refused::input(path)(no_query(pair)));
    }
    match pairs.iter().find(|pair| classes.number(&pair.value).is_none()) {
        Some(pair) => Err(Refused::input(path)(no_class(pair, classes))),
        None => Ok(pairs.into_iter().map(|pair| (pair.key, pair.value)).collect()),
    }
}
