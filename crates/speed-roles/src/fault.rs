//! Faults of files.

use speed_aggregation::error::{DecodeError, OpenError, ProofError, ServerError};
use speed_aggregation::keys::KeyId;
use speed_aggregation::protocol::RoundId;
use speed_core::{Digest, DigestError, TextError, class_list};
use speed_mechanism::MechanismError;
use speed_votes::{AnswerError, QueryListError, TableError};

use crate::party_key::PartyKey;
use crate::roster::RosterError;
use crate::terms::TermsError;

/// A file that could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadFault {
    /// A file that is longer than allowed; none of it was read.
    #[error("{found} bytes, expected at most {max}")]
    TooLong {
        /// Bytes of the file.
        found: u64,
        /// Bytes allowed.
        max: u64,
    },
    /// A directory, pipe or device.
    #[error("not a regular file")]
    NotRegular,
    /// A secret file that other users can read, or that its group can change.
    #[error("a secret that other users can read or change: mode {found:04o}, expected 0600 (chmod 600)")]
    Exposed {
        /// The permissions.
        found: u32,
    },
    /// A failure of reading.
    #[error("cannot read: {0}")]
    Io(#[from] std::io::Error),
}

/// A fault of a key, votes, a directory of messages, a stored sum or a result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InputFault {
    /// A file that could not be read.
    #[error(transparent)]
    Read(#[from] ReadFault),
    /// A file of another kind, for example because two files were exchanged on a command line.
    #[error("is {found}, expected {expected}: check which file each option names")]
    OtherKind {
        /// The kind expected.
        expected: &'static str,
        /// The kind found.
        found: &'static str,
    },
    /// Bytes that are not the expected kind of file.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// Bytes that are not votes for the round.
    #[error(transparent)]
    Labels(#[from] AnswerError),
    /// A table that is not the votes of a party's teachers.
    #[error(transparent)]
    PartyVotes(Box<speed_votes::FormError>),
    /// A table of the votes of a party's teachers on another number of queries.
    #[error("{found} queries, the round has {expected}")]
    PartyQueries {
        /// Queries of the round.
        expected: usize,
        /// Queries of the table.
        found: usize,
    },
    /// A folder of votes without one file for each teacher of the party.
    #[error("{found} files of votes, expected one for each of the party's {expected} teachers")]
    TeacherFiles {
        /// Teachers of the party.
        expected: usize,
        /// Files found.
        found: usize,
    },
    /// A text that is not a list of queries.
    #[error(transparent)]
    Queries(#[from] QueryListError),
    /// A stored sum that is damaged or belongs to another round.
    #[error(transparent)]
    Sum(Box<ServerError>),
    /// A key that is not the round's.
    #[error("is key {found}, the round is for key {expected}")]
    Key {
        /// The round's key.
        expected: KeyId,
        /// The file's key.
        found: KeyId,
    },
    /// An evaluation key whose file is not the one that the round states.
    #[error(
        "has SHA-256 {found}, but the round states {expected} (evaluation.sha256): it is another evaluation key, or was changed"
    )]
    EvaluationKey {
        /// SHA-256 in the round's file.
        expected: Digest,
        /// SHA-256 of the file.
        found: Digest,
    },
    /// A file that is not a signing key.
    #[error("not an Ed25519 signing key in PEM (PKCS #8), as `speed teacher keygen` and `openssl genpkey` write it")]
    SigningKey,
    /// A signing key of a party that has no such role in the round.
    #[error("is the key of {found}, which is {is}")]
    Party {
        /// The key's owner.
        found: Box<PartyKey>,
        /// The owner's relation to the round.
        is: &'static str,
    },
    /// A secret key that was destroyed when its labels were written.
    #[error("was destroyed when its labels were written; the labels are in the output file")]
    Destroyed,
    /// A damaged list of a key's rounds.
    #[error(
        "expected one line for each round of the key: its id, and a number of bits (.rounds) or the SHA-256 of what was opened (.opened)"
    )]
    KeyUse,
    /// Bytes that are not text.
    #[error(transparent)]
    Text(#[from] TextError),
    /// A text that is not TOML, or has unknown keys.
    #[error("{}", shortened(.0))]
    Toml(#[from] Box<toml::de::Error>),
    /// Parties that do not form a roster.
    #[error(transparent)]
    Roster(#[from] RosterError),
    /// A card that names no party or several.
    #[error("names {found} parties, but in a folder of cards every file is the card of one party")]
    CardOfSeveral {
        /// Parties found.
        found: usize,
    },
    /// The keys of a simulation for another round.
    #[error(
        "is a simulation's key, which anyone who knows its seed can compute: a round with real votes needs new keys (speed student keygen)"
    )]
    SimulatedKey,
    /// Real keys for a simulation.
    #[error(
        "is not a simulation's key (a share says so itself, other keys have SIMULATION.txt beside them), and a simulation may reveal its key: generate keys for it with \
         `speed student keygen --simulation SEED`"
    )]
    RealKey,
    /// A second result of a round.
    #[error(
        "the result with SHA-256 {first} of this round was opened before, and this is another one, {found}: the server signed both, which \
         convicts it, and a second result could reveal more of the secret key"
    )]
    SecondResult {
        /// SHA-256 of the result that was opened.
        first: Digest,
        /// SHA-256 of this result.
        found: Digest,
    },
    /// A result of fewer teachers than the round's minimum.
    #[error("counts {found} teachers, but at least {minimum} must answer: the server signed it, which convicts it")]
    TooFewCounted {
        /// Teachers counted.
        found: usize,
        /// The round's minimum.
        minimum: usize,
    },
    /// A folder that does not have exactly one folder for each key set.
    #[error(
        "expected only the folders 1, 2 and so on, one for each key set (speed student keygen --sets), found {sets} of them among {found} entries"
    )]
    KeySets {
        /// Key sets found, from 1 without a gap.
        sets: usize,
        /// Entries of the folder.
        found: usize,
    },
    /// Fewer queries than key sets.
    #[error("has {queries} queries, expected at least one for each of {sets} key sets")]
    FewQueries {
        /// Queries of the list.
        queries: usize,
        /// Key sets.
        sets: usize,
    },
    /// A second card of a role that one party has.
    #[error("is a second card of a {role}, but a round has one")]
    SecondCard {
        /// The role.
        role: &'static str,
    },
    /// A folder of cards without the student's or the server's card.
    #[error("needs the cards of the student, the server and every party that answers")]
    CardsMissing,
    /// A proof key that is damaged or not the round's.
    #[error(transparent)]
    Proof(Box<ProofError>),
    /// A result that the round's server did not sign.
    #[error("is not signed by the round's server {server:?}: it was changed, or another party made it")]
    Unsigned {
        /// The server's name.
        server: String,
    },
    /// A directory that cannot be listed.
    #[error("cannot read the folder: {0}")]
    Folder(#[source] std::io::Error),
    /// A log or a receipt that belongs to another round, or has the wrong content.
    #[error(transparent)]
    Log(#[from] LogFault),
    /// A list of queries that is not the round's.
    #[error("has the SHA-256 {found}, the round's list of queries has {expected}")]
    QueryList {
        /// The round's digest.
        expected: Digest,
        /// The file's digest.
        found: Digest,
    },
    /// A list of queries where the round has none.
    #[error("the round names no list of queries")]
    NoQueryList,
    /// A result of another round.
    #[error("is of round {found}, expected round {expected}")]
    OtherRound {
        /// The round.
        expected: RoundId,
        /// The round of the result.
        found: RoundId,
    },
    /// A result that contradicts its round.
    #[error("contradicts the round's file")]
    Contradiction,
    /// An answer that cannot be decrypted.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A seed or a verification that is not the result's, or a message that a verification lacks.
    #[error(transparent)]
    Verification(#[from] VerificationFault),
    /// An opener's part that is not the result's, or that the opener must not make.
    #[error(transparent)]
    Opening(#[from] OpeningFault),
    /// Known answers that do not fit the round, or that are wrong in its result.
    #[error(transparent)]
    Known(#[from] KnownFault),
    /// Answers that are not outcomes of the round.
    #[error(
        "{count} of its answers are not outcomes of the round, the first for query {first}: the server did not compute them, a \
         teacher sent values beyond the round's range, or the opener of a joint round changed its part. No label was written"
    )]
    Undecodable {
        /// The number of such answers.
        count: usize,
        /// The first query with one.
        first: usize,
    },
}

/// A fault of known answers.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KnownFault {
    /// A text that is not lines of a query and its label.
    #[error(transparent)]
    Table(Box<TableError>),
    /// Names of queries without the round's list.
    #[error("names its queries: give the round's list of queries with --query-list")]
    NoList,
    /// A query that the round does not have.
    #[error("line {line}: expected a query of the round, found {found:?}")]
    Query {
        /// The line, from 1.
        line: usize,
        /// The cell, cut after 100 characters.
        found: String,
    },
    /// A known answer without a label.
    #[error("line {line}: expected the class of this picture, found nothing")]
    NoLabel {
        /// The line, from 1.
        line: usize,
    },
    /// A label that is not the name of a class.
    #[error("line {line}: expected a class of the round ({}), found {found:?}", class_list(classes))]
    Label {
        /// The line, from 1.
        line: usize,
        /// The cell, cut after 100 characters.
        found: String,
        /// The names of the round's classes.
        classes: Vec<String>,
    },
    /// Too many known answers, or so many wrong ones that the comparison could not fail.
    #[error(
        "expected fewer known answers than the {queries} queries, and fewer wrong ones than known ones, found {known} known answers of \
         which {wrong} may be wrong"
    )]
    Count {
        /// Number of known answers.
        known: usize,
        /// Queries of the round.
        queries: usize,
        /// Number that may be wrong.
        wrong: usize,
    },
    /// A list of groups.
    #[error("has groups: known answers can be mixed with single pictures only")]
    Groups,
    /// A result whose answers to known queries are wrong.
    #[error(
        "{wrong} of {known} known answers are wrong, at most {allowed} may be: the server lied, or the teachers do not recognise these \
         pictures. No label was written. Publish nothing about the result, and let a teacher verify it with `speed server verify`"
    )]
    Wrong {
        /// Number of wrong answers.
        wrong: usize,
        /// Number of known answers.
        known: usize,
        /// Number that may be wrong.
        allowed: usize,
    },
}

impl From<TableError> for KnownFault {
    fn from(error: TableError) -> Self {
        Self::Table(Box::new(error))
    }
}

/// A fault of the files of a verification.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VerificationFault {
    /// A seed or a verification of another result.
    #[error("is of the result with SHA-256 {found}, this result has {expected}")]
    OtherResult {
        /// The SHA-256 of the result.
        expected: Digest,
        /// The SHA-256 in the file.
        found: Digest,
    },
    /// A log that is not the one of a verification.
    #[error(
        "this log has SHA-256 {found}, and the verifier saw the one with {expected}: fetch the log again after the result exists; if the two still \
         differ, the server signed two logs, and they convict it"
    )]
    OtherLog {
        /// The SHA-256 in the verification.
        expected: Digest,
        /// The SHA-256 of this log.
        found: Digest,
    },
    /// A verification that no teacher of the round signed.
    #[error("is not signed by teacher {teacher} of the round, which it names")]
    Unsigned {
        /// The teacher.
        teacher: usize,
    },
    /// A directory of copies without all counted messages.
    #[error(
        "lacks the counted messages of {}: give the directory that has them with --answers, or leave --copy-messages out. A result \
         can be verified only with all of them, and the registry deletes its own when the result exists",
        in_words(.teachers)
    )]
    NoCopies {
        /// The teachers, in ascending order.
        teachers: Vec<usize>,
    },
    /// A counted message that is not in the directory.
    #[error(
        "has no file with the SHA-256 {digest}, the message of teacher {teacher} that the server counted according to its log: ask \
         the teacher or the server for it"
    )]
    MissingMessage {
        /// The teacher.
        teacher: usize,
        /// The SHA-256 of the message.
        digest: Digest,
    },
}

/// A fault of a joint opening.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpeningFault {
    /// A part that the round's opener did not sign.
    #[error("is not signed by the round's opener {opener:?}: it was changed, or another party made it")]
    Unsigned {
        /// The opener's name.
        opener: String,
    },
    /// A part of another number of answers.
    #[error("has {found} words, the answers of the round need {expected}")]
    Words {
        /// Words needed.
        expected: usize,
        /// Words found.
        found: usize,
    },
    /// A verification by another party.
    #[error(
        "is a verification by teacher {found}, expected one by the opener, teacher {expected}: the opener verifies the result itself, because \
         an unverified answer could read its share of the key"
    )]
    OtherVerifier {
        /// The opener.
        expected: usize,
        /// The teacher that signed the verification.
        found: usize,
    },
    /// A share of a key that was generated with another evaluation key.
    #[error(
        "was generated with the evaluation key {expected}, the round states {found}: with another evaluation key a verified answer could read \
         the opener's share of the key"
    )]
    EvaluationKey {
        /// SHA-256 of the share's evaluation key.
        expected: Digest,
        /// SHA-256 of the round's evaluation key.
        found: Digest,
    },
    /// A second result of a round.
    #[error(
        "has the SHA-256 {found}, but this opener made its part of the result {expected} of the same round: it opens one result of a round. Two \
         signed results of one round convict the server"
    )]
    SecondResult {
        /// The SHA-256 of the result whose part exists.
        expected: Digest,
        /// The SHA-256 of this result.
        found: Digest,
    },
    /// A second part of a result.
    #[error(
        "says that this result was opened with the part with SHA-256 {first}, and this part has {found}. An honest opener makes one part of a \
         result: two parts with the opener's signature convict it"
    )]
    SecondPart {
        /// SHA-256 of the part that was used.
        first: Digest,
        /// SHA-256 of this part.
        found: Digest,
    },
    /// A round that the opener did not answer.
    #[error(
        "has no message of this opener to round {round}: an opener opens a round only if it answered it, because it agreed to the round \
         when it answered"
    )]
    NotAnswered {
        /// The round.
        round: RoundId,
    },
}

/// Returns a list of at most ten teachers in words.
fn in_words(teachers: &[usize]) -> String {
    let first: Vec<_> = teachers.iter().take(10).map(|teacher| format!("teacher {teacher}")).collect();
    let more = teachers.len() - first.len();
    first.join(", ") + &if more > 0 { format!(" and {more} more") } else { String::new() }
}

/// A fault of a log or a receipt.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LogFault {
    /// A log or receipt of another round.
    #[error("is of round {found}, expected round {expected}")]
    OtherRound {
        /// The round.
        expected: RoundId,
        /// The round of the log or receipt.
        found: RoundId,
    },
    /// A log or receipt that the round's server did not sign.
    #[error("is not signed by the round's server {server:?}: it was changed, or another party made it")]
    Unsigned {
        /// The server's name.
        server: String,
    },
    /// A log that is older than the receipt.
    #[error(
        "has {entries} entries and is older than the receipt, which was signed at {expected} entries: fetch the log again"
    )]
    Older {
        /// Number of entries of the log.
        entries: usize,
        /// Number of entries that the log had at the time of the receipt.
        expected: usize,
    },
    /// A receipt that the round's server did not sign for this message. It is not evidence about the message.
    #[error(
        "is not a receipt of the round's server {server:?} for this message: it belongs to another message, or was changed"
    )]
    NotForMessage {
        /// The server's name.
        server: String,
    },
    /// A log that contradicts the receipt. The server signed both, so log, receipt and message together convict the
    /// server.
    #[error(
        "does not record this message at entry {entry}, but the receipt with the server's signature does: the server changed its log. \
         Keep message, receipt and log, because together they prove it"
    )]
    Contradiction {
        /// The entry, from 0.
        entry: usize,
    },
    /// A log that no honest server writes. The server signed it, so it convicts the server.
    #[error(
        "entry {entry} {is}: no honest server writes such a log, and the server signed it. Keep it, because it proves this"
    )]
    Form {
        /// The entry, from 0.
        entry: usize,
        /// The fault, in words.
        is: &'static str,
    },
    /// A log whose counted parties are not those of the result.
    #[error("log and result contradict each other about teacher {teacher}: only one of them counts it")]
    Statuses {
        /// The first such teacher.
        teacher: usize,
    },
    /// A log that counts a message for another teacher than the one that signed it.
    #[error("the log counts a message that teacher {signer} signed as one of teacher {teacher}")]
    Signer {
        /// The teacher that the log names.
        teacher: usize,
        /// The teacher that signed the message.
        signer: usize,
    },
    /// A log without a result.
    #[error("ends before the result: fetch the log again")]
    NoResult,
    /// A sum that was closed without the teacher's message.
    #[error("states that the sum was closed without this message of teacher {teacher}")]
    NotCounted {
        /// The teacher.
        teacher: usize,
    },
}

/// Returns a parser's message in one line: the place and the fault, without the file's line, whose content is
/// untrusted.
fn shortened(error: &toml::de::Error) -> String {
    let begin =
        |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(200).collect::<String>();
    // The first line contains line and column; without a place, it is the fault itself.
    let text = error.to_string();
    let place = text.lines().next().unwrap_or_default();
    if place == error.message() { begin(place) } else { format!("{}: {}", begin(place), begin(error.message())) }
}

/// A fault of a file or directory of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResultsFault {
    /// A file that would be overwritten.
    #[error("already exists and is never overwritten: move it away, or give another name")]
    Exists,
    /// A file with other bytes at the path of a result, a log or a receipt.
    #[error("already exists with other content: move it away, or give another name")]
    Other,
    /// Something at the path of a result that is not a file: a directory, or a dangling link.
    #[error("already exists and is not a file: move it away, or give another --out")]
    NoFile,
    /// A result that another program is about to write.
    #[error("another program uses it")]
    InUse,
    /// A key without a registry.
    #[error(
        "there is no registry here, so the answers of this key are unknown: a second answer to a round would have other noise. `keygen` made one beside the key: \
         give it with --registry, or add --new-registry to `answer`, `aggregate` or `serve` for a key that never answered"
    )]
    NoRegistry,
    /// A registry without a round that was charged.
    #[error(
        "does not contain this round, but the ledger was charged for it: the round was answered with another registry, or this one was lost or restored. Give the \
         right --registry, because a second answer would have other noise"
    )]
    Forgotten,
    /// A registry without the result of the round.
    #[error("does not contain the result of this round: wait until it exists, or give the right --registry")]
    NoResult,
    /// A registry without the seed of a closed sum.
    #[error("does not contain the seed of this round's answers: it was damaged, so restore it from a copy")]
    NoSeed,
    /// A registry that another program uses.
    #[error("another program uses this registry: wait until it ends")]
    RegistryInUse,
}

/// A round's file that is missing, damaged or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RoundFileFault {
    /// A digest of zeros, which means in the round's id that nothing is stated.
    #[error("{field} is zeros: leave it out if nothing is stated")]
    ZeroDigest {
        /// The key in the file.
        field: &'static str,
    },
    /// Names of classes whose number differs from the number of classes.
    #[error("queries.class_names: expected a name for each of {expected} classes, found {found}")]
    ClassNames {
        /// Number of classes.
        expected: usize,
        /// Number of names.
        found: usize,
    },
    /// Names of classes that are their numbers.
    #[error("queries.class_names: leave it out if the classes are called by their numbers")]
    NumberedClasses,
    /// A file that could not be read.
    #[error(transparent)]
    Read(#[from] ReadFault),
    /// A file of another kind, for example because two files were exchanged on a command line.
    #[error("is {found}, expected a round's file: check which file each option names")]
    OtherKind {
        /// The kind found.
        found: &'static str,
    },
    /// Bytes that are not text.
    #[error("not a round's file: {0}")]
    Text(#[from] TextError),
    /// A text that is not TOML, or has unknown keys.
    #[error("{}", shortened(.0))]
    Toml(#[from] Box<toml::de::Error>),
    /// A file of another version.
    #[error("format {found}, this program reads format {expected}")]
    Format {
        /// The version that this program reads.
        expected: u32,
        /// The version found.
        found: u32,
    },
    /// A field that is not a digest.
    #[error("{field}: {source}")]
    Digest {
        /// The field.
        field: &'static str,
        /// The cause.
        source: DigestError,
    },
    /// Invalid terms of a round.
    #[error(transparent)]
    Terms(#[from] TermsError),
    /// Privacy noise that cannot be bounded.
    #[error(transparent)]
    Mechanism(#[from] MechanismError),
    /// A parameter of the noise that is missing, or that of another mechanism.
    #[error("noise: mechanism {mechanism:?} needs {expected}, found {found}")]
    NoiseParameter {
        /// The mechanism.
        mechanism: String,
        /// Its parameter.
        expected: &'static str,
        /// The parameters found.
        found: &'static str,
    },
    /// A bound that is too small for the noise.
    #[error("noise.bound is {found}, this noise needs at least {min}")]
    Bound {
        /// The smallest bound.
        min: u64,
        /// The bound found.
        found: u64,
    },
    /// An opener and an opening that do not belong together.
    #[error("opening: a joint opening needs opening = \"joint\", the opener's name and proofs, found {found}")]
    Opening {
        /// The keys found.
        found: &'static str,
    },
    /// A content that does not match the id.
    #[error("the id is {id}.., but the file's content has {content}..: it was changed")]
    Changed {
        /// The id in the file.
        id: RoundId,
        /// The id of its content.
        content: RoundId,
    },
}
