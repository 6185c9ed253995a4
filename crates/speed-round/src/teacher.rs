//! The teacher's program: it turns votes and privacy noise into one message. A party with several teachers adds up their
//! votes and their shares of the noise.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use serde::Serialize;
use speed_accountant::PriceLimit;
use speed_aggregation::protocol::Submission;
use speed_aggregation::{PublicKey, Teacher};
use speed_core::vote_files::{
    AnswerError, Known, NamedQueries, QueryNames, Question, Table, VoteFile, VotesForm, parse_answer,
};
use speed_core::{Digest, NoisePlacement, Vote};
use speed_mechanism::{Mechanism, MechanismError};
use zeroize::Zeroizing;

use crate::error::Refused;
use crate::file_kind::FileKind;
use crate::files::{Access, decode_input, expect_absent, hash_file, read_input, refused, visible_files, write_new};
use crate::identity::Identity;
use crate::key_bits::KeyBits;
use crate::price::{LedgerOptions, RoundLedger, expect_price};
use crate::proofs;
use crate::randomness::RoundRandomness;
use crate::registry::RoundRegistry;
use crate::round_file::RoundFile;

/// The options of a teacher.
#[derive(Clone, Debug)]
pub struct TeacherOptions {
    /// The teacher's signing key.
    pub signing_key: PathBuf,
    /// The student's public key.
    pub public_key: PathBuf,
    /// The round's proof key, if the round asks for proofs.
    pub proof_key: Option<PathBuf>,
    /// The round's file.
    pub round: PathBuf,
    /// The votes: one vote per query, or those of all teachers of the party.
    pub votes: PathBuf,
    /// The form of the votes, if the file has two possible readings.
    pub form: Option<VotesForm>,
    /// The message file to create.
    pub out: PathBuf,
    /// The list of queries that the teacher voted on. A round with another list, or without one, is refused. With a
    /// list, the votes may refer to queries by name.
    pub query_list: Option<PathBuf>,
    /// The mechanism that the teacher agrees to. A round with another mechanism is refused.
    pub mechanism: Option<Mechanism>,
    /// The teacher's registry, which holds the message of every round that it answered.
    pub registry: PathBuf,
    /// Whether a missing registry is created, for a key that never answered.
    pub new_registry: bool,
    /// The ledger that the round is charged to.
    pub ledger: LedgerOptions,
    /// The limit on the price of the round for one teacher; the default refuses a round of which one answer may cost more than epsilon 10. A
    /// simulation has no price.
    pub limit: PriceLimit,
    /// True if the teacher may answer another round of the same key.
    pub reuse_keys: bool,
    /// The source of noise and encryption randomness.
    pub randomness: RoundRandomness,
}

/// The report of a teacher. It contains no vote and no noise.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct TeacherReport {
    /// The round's id.
    pub round: String,
    /// The round's name.
    pub name: String,
    /// The party's index.
    pub teacher: usize,
    /// Number of the party's teachers, whose votes the message adds up.
    pub teachers: usize,
    /// True if the message contains a proof that it is well formed.
    pub proven: bool,
    /// Number of queries answered.
    pub queries: usize,
    /// The mechanism of the noise in the message; `None` if the server adds the noise.
    pub noise: Option<String>,
    /// True if the teacher answered this round before. Then the stored message is written again, even if the votes have
    /// changed.
    pub repeated: bool,
    /// True if noise and encryption come from a seed.
    pub simulation: bool,
    /// The message's file.
    pub out: PathBuf,
    /// The length of the message file in bytes.
    pub bytes: usize,
}

/// Encrypts a teacher's votes into one message, with its share of the noise if the round requires it. A round is
/// answered once: the message is stored in the teacher's registry before it is written, and every later call writes it
/// again. Between these two steps, the round is charged to the teacher's ledger as if only the minimum number of
/// teachers answered. A round that is charged but has no stored message is refused, because its message may already be
/// sent.
///
/// # Errors
/// If an input is missing, damaged or does not fit the round, the ledger has no budget for it, or the message's file
/// already exists.
pub fn answer(options: &TeacherOptions) -> Result<TeacherReport, Refused> {
    expect_absent(&options.out)?;
    let file = RoundFile::read(&options.round)?;
    file.check_randomness(options.randomness.kind())?;
    let noise = file.noise().mechanism();
    if let Some(asked) = options.mechanism.filter(|asked| *asked != noise) {
        return Err(Refused::usage(format!(
            "you ask for {}, the round has {}",
            asked.identifier(),
            noise.identifier()
        )));
    }
    if let Some(list) = &options.query_list {
        file.check_queries(hash_file(list, FileKind::QUERY_LIST.max)?).map_err(Refused::input(list))?;
    }
    let is_teacher = |key| file.roster().teacher(key);
    let (identity, teacher) = Identity::read_as(&options.signing_key, is_teacher, "none of the round's teachers")?;
    let registry = RoundRegistry::open(&options.registry, options.new_registry)?;
    let ledger = RoundLedger { options: &options.ledger, file: &file, party: identity.key() };
    let index = u32::try_from(teacher).unwrap_or(u32::MAX);
    let kept = registry.answered(file.id(), index)?;
    let repeated = kept.is_some();
    let submission = match kept {
        Some(kept) => kept,
        None => {
            ledger.expect_uncharged(registry.path())?;
            expect_price(&file, options.limit, options.ledger.delta)?;
            // No message is created without a budget for it, so the votes can still be corrected.
            ledger.expect_budget(file.round().min_teachers())?;
            let submission = encrypt(options, &file, (&identity, teacher), &registry)?;
            let key = (!file.round().is_simulation()).then(|| (file.key(), KeyBits::of(&file).labels));
            registry.keep_answered(file.id(), index, key, &submission)?;
            submission
        }
    };
    // The charge follows the storage and precedes the release of the message, so a charge without a stored message
    // proves that the registry was lost.
    let teachers = file.round().teachers_of(teacher);
    ledger.charge(file.round().min_teachers(), teachers, Digest::of(&submission))?;
    write_new(&options.out, &submission, Access::Shared)?;
    Ok(TeacherReport {
        round: file.id().to_hex(),
        name: file.name().to_owned(),
        teacher,
        teachers,
        proven: file.round().proofs().is_some(),
        queries: file.round().shape().queries(),
        noise: (file.round().placement() == NoisePlacement::Distributed).then(|| noise.identifier()),
        repeated,
        simulation: options.randomness.is_simulation(),
        out: options.out.clone(),
        bytes: submission.len(),
    })
}

/// Creates the teacher's message.
fn encrypt(
    options: &TeacherOptions,
    file: &RoundFile,
    (identity, teacher): (&Identity, usize),
    registry: &RoundRegistry,
) -> Result<Vec<u8>, Refused> {
    let key = decode_input(&options.public_key, FileKind::PUBLIC_KEY, PublicKey::from_bytes)?;
    file.check_key(&options.public_key, key.id())?;
    KeyBits::check_rounds(file, key.parameters(), registry, options.reuse_keys)?;
    let proof_key = proofs::read(options.proof_key.as_deref(), file, key.parameters())?;
    let counts = counts(options, file, teacher)?;
    let values = party_values(file, &counts, teacher, options.randomness)?;
    let (round, randomness) = (file.round(), options.randomness.keys());
    let (message, proofs) = match &proof_key {
        None => (Teacher::new(teacher).answer(&key, round, &values, &randomness)?, Vec::new()),
        Some(proof_key) => {
            let (message, proofs) =
                Teacher::new(teacher).answer_with_proof(&key, round, &values, proof_key, &randomness)?;
            (message, proofs.to_bytes()?)
        }
    };
    Ok(Submission::new(message, proofs, |digest| identity.sign(digest)).to_bytes())
}

/// Returns the values that a teacher of the round encrypts which is a party of its own: one-hot or empty votes (queries x
/// classes, row-major), plus its shares of the noise if the teachers add it.
///
/// # Errors
/// If the noise cannot be drawn.
///
/// # Panics
/// If `votes` does not have one vote for each query, each empty or a label below the number of classes, or the party has
/// several teachers.
pub fn values<V: Copy + Into<Vote>>(
    file: &RoundFile,
    votes: &[V],
    teacher: usize,
    randomness: RoundRandomness,
) -> Result<Zeroizing<Vec<i64>>, MechanismError> {
    let classes = file.round().shape().classes();
    let mut counts = Zeroizing::new(vec![0; file.round().values()]);
    count(votes, classes, &mut counts);
    party_values(file, &counts, teacher, randomness)
}

/// Returns the values that a party of the round encrypts (queries x classes, row-major): how many of its teachers chose each
/// class, plus their shares of the noise if the teachers add it.
///
/// # Errors
/// If the noise cannot be drawn.
///
/// # Panics
/// If `counts` does not have one count for each query and class, or those of a query add up to more than the party's teachers.
pub fn party_values(
    file: &RoundFile,
    counts: &[u32],
    party: usize,
    randomness: RoundRandomness,
) -> Result<Zeroizing<Vec<i64>>, MechanismError> {
    let (shape, teachers) = (file.round().shape(), file.round().teachers_of(party));
    let noise = match file.round().placement() {
        NoisePlacement::Distributed => {
            Some((file.noise().share_of(shape.teachers())?, randomness.teacher_noise(file.id(), party)))
        }
        NoisePlacement::Central => None,
    };
    let noise = noise.as_ref().map(|(share, randomness)| (share, randomness));
    Ok(speed_aggregation::party_values(shape, counts, teachers, noise)?)
}

/// Reads how many of a party's teachers chose each class of each query (queries x classes, row-major). A teacher whose vote is
/// empty chose none; all votes may be empty.
///
/// The votes of one teacher are a file of one vote per query. Those of several are a folder with such a file for each
/// teacher, or one table: labels (teachers x queries) or counts (queries x classes), which add up to at most the number of
/// teachers on every query.
fn counts(options: &TeacherOptions, file: &RoundFile, party: usize) -> Result<Zeroizing<Vec<u32>>, Refused> {
    let teachers = file.round().teachers_of(party);
    if teachers > 1 && !options.votes.is_dir() {
        return of_table(options, file, teachers).map(Zeroizing::new);
    }
    let paths = if teachers > 1 { teacher_files(&options.votes, teachers)? } else { vec![options.votes.clone()] };
    let classes = file.round().shape().classes();
    let mut list = options.query_list.as_ref().map(|list| file.read_queries(list));
    let mut counts = Zeroizing::new(vec![0; file.round().values()]);
    for path in paths {
        let votes = Zeroizing::new(of_teacher(options, &path, file, &mut list)?);
        count(&votes, classes, &mut counts);
    }
    Ok(counts)
}

/// Reads one teacher's vote on each query. If the votes need a list that could not be read, takes its error.
fn of_teacher(
    options: &TeacherOptions,
    path: &Path,
    file: &RoundFile,
    list: &mut Option<Result<NamedQueries, Refused>>,
) -> Result<Vec<Vote>, Refused> {
    let shape = file.round().shape();
    let question = Question {
        queries: shape.queries(),
        classes: file.classes(),
        form: options.form,
        names: match &*list {
            None => QueryNames::NoList,
            Some(Ok(list)) => QueryNames::Known(list.names()),
            Some(Err(_)) => QueryNames::Unreadable,
        },
    };
    let votes = Zeroizing::new(read_input(path, FileKind::VOTES)?);
    parse_answer(&votes, &question).map_err(|fault| match (fault, list.take()) {
        (AnswerError::Undecided, _) => Refused::usage(
            "the file of votes has lines of two numbers, which may be a query and its label or a histogram of two classes: give --form labels or \
             --form histograms",
        ),
        // A list of queries may have any format, unless the votes refer to queries by name.
        (AnswerError::UnreadableNames { .. }, Some(Err(error))) => error,
        (fault, _) => refused(path, FileKind::VOTES, fault),
    })
}

/// Reads the votes of several teachers from one table.
fn of_table(options: &TeacherOptions, file: &RoundFile, teachers: usize) -> Result<Vec<u32>, Refused> {
    let shape = file.round().shape();
    let bytes = Zeroizing::new(read_input(&options.votes, FileKind::VOTES)?);
    let refuse = |fault: &dyn Display| refused(&options.votes, FileKind::VOTES, fault);
    let (table, form) = match file.classes().names() {
        Some(names) => (Table::of_classes(&bytes, names), Some(VotesForm::Histograms)),
        None => (Table::parse(&bytes), options.form),
    };
    let table = table.map_err(|error| refuse(&AnswerError::from(error)))?;
    let known = Known { teachers: Some(teachers), queries: Some(shape.queries()), classes: Some(shape.classes()) };
    let votes = VoteFile::of_party(table, form, &known).map_err(|error| refuse(&error))?;
    let (expected, found) = (shape.queries(), votes.queries_in_file());
    if found != expected {
        return Err(refuse(&format_args!("{found} queries, the round has {expected}")));
    }
    let all: Vec<usize> = (0..expected).collect();
    let histograms = votes.histograms(&all).map_err(|error| refuse(&error))?;
    Ok(histograms.concat())
}

/// Adds one teacher's votes to the counts of each class on each query.
fn count<V: Copy + Into<Vote>>(votes: &[V], classes: usize, counts: &mut [u32]) {
    for (query, vote) in votes.iter().enumerate() {
        let vote: Vote = (*vote).into();
        if let Some(label) = vote {
            counts[query * classes + usize::from(label)] += 1;
        }
    }
}

/// Returns the files of a folder, in the order of their names, if there is one for each teacher. Hidden files do not count.
fn teacher_files(folder: &Path, expected: usize) -> Result<Vec<PathBuf>, Refused> {
    let files = visible_files(folder)?;
    let found = files.len();
    if found == expected {
        Ok(files)
    } else {
        let expected = format!("expected one for each of the party's {expected} teachers");
        Err(Refused::input(folder)(format!("{found} files of votes, {expected}")))
    }
}
