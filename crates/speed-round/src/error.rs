//! Errors of the roles' programs, each kind with its own exit code.

use std::io::ErrorKind;
use std::path::PathBuf;

use speed_accountant::ledger::LedgerError;
use speed_accountant::{AccountError, PriceError};
use speed_aggregation::error::{
    AnswerListError, EncodingError, InexactCircuit, PartError, PrivacyNoiseError, ProofError, ServerError, TeacherError,
};
use speed_aggregation::protocol::RoundId;
use speed_core::{EntropyError, ExitCode, printable_path, without_path};
use speed_mechanism::{Mechanism, MechanismError};

use crate::fault::{InputFault, ResultsFault, RoundFileFault};
use crate::refusal::Refusal;
use crate::roster::RosterError;
use crate::terms::TermsError;

/// An error that stopped a program. [`RolesError::exit_code`] is the exit code of the command line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RolesError {
    /// Options that contradict the round.
    #[error(transparent)]
    Options(#[from] OptionsFault),
    /// A round that costs more than the party's limit.
    #[error("--max-epsilon: {0}")]
    TooDear(#[from] PriceError),
    /// Invalid terms of a round.
    #[error(transparent)]
    Terms(#[from] TermsError),
    /// An invalid roster or party's name.
    #[error(transparent)]
    Roster(#[from] RosterError),
    /// A round without an exact encoding under this key.
    #[error(transparent)]
    Encoding(#[from] EncodingError),
    /// Privacy noise that cannot be drawn in shares.
    #[error(transparent)]
    PrivacyNoise(#[from] PrivacyNoiseError),
    /// Privacy noise that cannot be specified or drawn.
    #[error(transparent)]
    Mechanism(#[from] MechanismError),
    /// A circuit that is not exact.
    #[error(transparent)]
    Circuit(#[from] InexactCircuit),
    /// A round's file that is missing, damaged or changed.
    #[error("{}: {source}", printable_path(path))]
    Round {
        /// The file.
        path: PathBuf,
        /// The fault.
        source: RoundFileFault,
    },
    /// A key, a file of votes or a result that is missing or wrong.
    #[error("{}: {source}", printable_path(path))]
    Input {
        /// The file.
        path: PathBuf,
        /// The fault.
        source: InputFault,
    },
    /// Too few teachers with a usable answer.
    #[error("{counted} of {teachers} teachers gave a usable answer, at least {minimum} must")]
    TooFew {
        /// Number of teachers with a usable answer.
        counted: usize,
        /// Teachers of the round.
        teachers: usize,
        /// Number of teachers that must answer.
        minimum: usize,
        /// The refused files, which were already reported to [`Progress`](crate::server::Progress).
        refused: Vec<Refusal>,
    },
    /// A file or directory that already exists or is in use.
    #[error("{}: {source}", printable_path(path))]
    Results {
        /// The file or directory.
        path: PathBuf,
        /// The fault.
        source: ResultsFault,
    },
    /// A failure of reading or writing, for example a full disk.
    #[error("cannot {action} {}: {source}", printable_path(path))]
    Io {
        /// The attempted action.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// A registry that is damaged, or cannot be read or written.
    #[error("registry {}: {source}", printable_path(path))]
    Registry {
        /// The registry.
        path: PathBuf,
        /// The database's error.
        source: Box<redb::Error>,
    },
    /// A ledger that refuses the round, or is damaged.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// A round whose price is unknown.
    #[error(transparent)]
    Price(#[from] AccountError),
    /// A failed encryption of a teacher.
    #[error(transparent)]
    Teacher(#[from] TeacherError),
    /// A failed computation of a server.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// A proof or a proof key that cannot be created.
    #[error(transparent)]
    Proof(#[from] ProofError),
    /// A failed part of an opener.
    #[error(transparent)]
    Part(#[from] PartError),
    /// Answers that do not make a result.
    #[error(transparent)]
    Answers(#[from] AnswerListError),
    /// A failure of the operating system's generator.
    #[error(transparent)]
    Entropy(#[from] EntropyError),
}

/// Options that contradict the round.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum OptionsFault {
    /// A minimum of teachers that the round does not allow.
    #[error("--min-teachers {asked}: the round asks for at least {min} of its {max} teachers")]
    MinTeachers {
        /// The requested number.
        asked: usize,
        /// The smallest number that the round allows.
        min: usize,
        /// Teachers of the round.
        max: usize,
    },
    /// A program without a seed in a simulated round.
    #[error("this round is a simulation: give --simulation SEED")]
    SeedMissing,
    /// A program with a seed in a round that is not a simulation.
    #[error("this round is not a simulation: remove --simulation")]
    SeedRefused,
    /// A mechanism that the teacher did not agree to.
    #[error("you ask for {}, the round has {}", asked.identifier(), found.identifier())]
    Mechanism {
        /// The mechanism that the teacher agreed to.
        asked: Mechanism,
        /// The mechanism of the round.
        found: Mechanism,
    },
    /// Keys that were generated for another round.
    #[error(
        "these keys are already used for round {round}, and keys are for one round: generate new ones with `speed student keygen`, or give --reuse-keys"
    )]
    KeyUsed {
        /// That round.
        round: RoundId,
    },
    /// A second round of a key for one teacher.
    #[error(
        "this party already answered round {round} under the same key, and keys are for one round: a student that was corrupted after that round \
         could use another one to read its votes. Ask the student for new keys; --reuse-keys takes the risk"
    )]
    KeyAnswered {
        /// The other round.
        round: RoundId,
    },
    /// Keys that could reveal too much to a server or a teacher that lies.
    #[error(
        "the labels of {queries} queries could tell a lying server {here:.0} bits of the secret key, and the labels of the key's \
         earlier rounds {before:.0}; if more than {most} bits are known, the key has less than about 112 bits of security. New keys \
         serve {serves} queries with as many outcomes: send fewer queries, or, without a joint opening, divide them among several key sets (`speed student keygen --sets`, and --keys)"
    )]
    KeyWornOut {
        /// Queries of the round.
        queries: usize,
        /// Bits that this round may reveal.
        here: f64,
        /// Bits that the key's other rounds may have revealed.
        before: f64,
        /// The largest number of bits that may be known.
        most: u16,
        /// Queries that unused keys serve.
        serves: usize,
    },
    /// A result that no teacher verified.
    #[error(
        "no teacher verified this result: a lying server can make labels that are bits of the secret key. Give --verification FILE, \
         which a teacher makes with `speed server verify`, or --unverified to trust the server"
    )]
    Unverified,
    /// A joint round without the opener's part.
    #[error("this round is opened jointly: give --part FILE, which the round's opener makes with `speed teacher part`")]
    PartMissing,
    /// An opener's part in a round that the student opens alone.
    #[error("the student opens this round alone: remove --part")]
    PartRefused,
    /// A joint round without proofs.
    #[error(
        "a joint opening needs proofs: without them a student that colludes with the server and one teacher can read other teachers' votes, or \
         the complete secret key, from the labels"
    )]
    JointWithoutProofs,
    /// An opener of a round that the student opens alone.
    #[error("the student opens this round alone: it has no opener")]
    NoOpener,
    /// A joint round with keys that are not split.
    #[error(
        "secret.key is beside the public key: these keys are not split. A joint opening needs keys of `speed student keygen --joint`"
    )]
    WholeKey,
    /// A round of the student alone with keys that are split.
    #[error(
        "student.share is beside the public key: these keys are split. Name the holder of opener.share with --opener"
    )]
    SplitKey,
    /// A verification of a round whose server adds the noise.
    #[error(
        "the server adds the noise of this round, and only the server knows it: no other party can compute the sum again"
    )]
    CentralNoise,
    /// Votes with two possible readings.
    #[error(
        "the file of votes has lines of two numbers, which may be a query and its label or a histogram of two classes: give --form labels or \
         --form histograms"
    )]
    VotesForm,
    /// A program without the proof key in a round that requires proofs.
    #[error(
        "this round asks for proofs that messages are well formed: give --proof-key FILE, which the student created with the round"
    )]
    ProofKeyMissing,
    /// A program with a proof key in a round that requires no proofs.
    #[error("this round asks for no proofs: remove --proof-key")]
    ProofKeyRefused,
}

/// Returns whether an error means that a registry is damaged, or no registry of this program.
fn is_damage(error: &redb::Error) -> bool {
    match error {
        redb::Error::Io(error) => matches!(error.kind(), ErrorKind::InvalidData | ErrorKind::UnexpectedEof),
        redb::Error::Corrupted(_)
        | redb::Error::UpgradeRequired(_)
        | redb::Error::TableTypeMismatch { .. }
        | redb::Error::TypeDefinitionChanged { .. }
        | redb::Error::TableIsMultimap(_)
        | redb::Error::TableDoesNotExist(_) => true,
        _ => false,
    }
}

impl RolesError {
    /// Returns the documented exit code.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Options(_)
            | Self::TooDear(_)
            | Self::Terms(_)
            | Self::Roster(_)
            | Self::Encoding(_)
            | Self::PrivacyNoise(_)
            | Self::Mechanism(_)
            | Self::Circuit(_)
            | Self::Round { .. } => ExitCode::Usage,
            Self::Input { .. } | Self::TooFew { .. } => ExitCode::Input,
            Self::Results { .. } => ExitCode::Results,
            Self::Registry { source, .. } if is_damage(source) => ExitCode::Input,
            Self::Io { .. } | Self::Registry { .. } => ExitCode::InputOutput,
            Self::Ledger(error) => error.exit_code(),
            Self::Price(_)
            | Self::Teacher(_)
            | Self::Server(_)
            | Self::Proof(_)
            | Self::Part(_)
            | Self::Answers(_)
            | Self::Entropy(_) => ExitCode::Computation,
        }
    }

    /// Returns an error about an input.
    pub fn input<F: Into<InputFault>>(path: impl Into<PathBuf>) -> impl FnOnce(F) -> Self {
        let path = path.into();
        move |fault| Self::Input { path, source: fault.into() }
    }

    pub(crate) fn results(path: impl Into<PathBuf>, source: ResultsFault) -> Self {
        Self::Results { path: path.into(), source }
    }

    pub(crate) fn registry<E: Into<redb::Error>>(path: impl Into<PathBuf>) -> impl FnOnce(E) -> Self {
        let path = path.into();
        move |error| Self::Registry { path, source: Box::new(error.into()) }
    }

    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source: without_path(source) }
    }
}
