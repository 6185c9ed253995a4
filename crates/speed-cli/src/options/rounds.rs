//! Options of a round's parties.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, Args, Subcommand};
use speed_accountant::Delta;
use speed_accountant::forecast::Agreement;
use speed_aggregation::Parameters;
use speed_core::{Classes, NoisePlacement};
use speed_round::bundle::MAX_KEY_SETS;
use speed_round::{LedgerOptions, VotesForm, default_ledger, default_registry};

use super::privacy::MaxEpsilon;
use super::privacy::{agreement, delta};
use super::training::{
    PluralityOptions, StudentQueriesOptions, StudentTrainOptions, TeacherTrainOptions, TeacherVoteOptions, classes,
};

/// A choice of parameter set by the range of noisy counts.
fn key_range() -> impl TypedValueParser<Value = Parameters> {
    PossibleValuesParser::new(["narrow", "wide"])
        .map(|range| if range == "wide" { Parameters::WIDE_128 } else { Parameters::TOURNAMENT_128 })
}

/// A choice of those who add the privacy noise.
fn noise_placement() -> impl TypedValueParser<Value = NoisePlacement> {
    PossibleValuesParser::new(["teachers", "server"])
        .map(|noise| if noise == "server" { NoisePlacement::Central } else { NoisePlacement::Distributed })
}

/// A choice whether messages need proofs.
fn proofs() -> impl TypedValueParser<Value = bool> {
    PossibleValuesParser::new(["required", "off"]).map(|proofs| proofs == "required")
}

#[derive(Debug, Subcommand)]
pub(crate) enum StudentCommand {
    /// Generate the keys of all roles: secret.key (mode 0600), public.key, evaluation.key
    Keygen {
        /// Folder of the keys; existing keys are never overwritten
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
        /// Number of key sets, in the folders 1, 2 and so on: for rounds with more labels than one key serves (student round --keys)
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=MAX_KEY_SETS as i64))]
        sets: Option<u16>,
        /// Range of noisy counts: narrow up to a difference of 2544 votes, wide up to 30000
        #[arg(long, value_name = "RANGE", default_value = "narrow", value_parser = key_range())]
        range: Parameters,
        /// Split the secret key for a joint opening: instead of secret.key, write student.share, and opener.share for one
        /// hospital (both mode 0600). The party that runs this must give opener.share away and keep no copy
        #[arg(long, conflicts_with = "sets")]
        joint: bool,
        /// Seed for the keys, for simulations only: anyone who knows the seed knows the secret key
        #[arg(long, value_name = "SEED")]
        simulation: Option<u64>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Generate the student's signing key, and its card for the roster
    Identity(IdentityOptions),
    /// Choose the queries of a round among the public pictures
    Queries(StudentQueriesOptions),
    /// Mix pictures whose labels the student knows into a list of queries, in a secret order
    Mix {
        /// The list of queries whose labels the student wants
        #[arg(long, value_name = "FILE")]
        query_list: PathBuf,
        /// The known answers, lines of name,label; they stay with the student
        #[arg(long, value_name = "FILE")]
        known: PathBuf,
        /// The new list of queries, for `student round --query-list`
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Write the file of a round, which goes to everyone
    Round(Box<RoundOptions>),
    /// Fetch a round's result from its server, as soon as it is available
    Fetch {
        #[command(flatten)]
        client: ClientOptions,
        /// The result to write
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
    },
    /// Decrypt a round's result
    Open {
        /// The student's secret.key; in a joint opening student.share
        #[arg(long, value_name = "FILE")]
        secret_key: PathBuf,
        /// The opener's part of the result (speed teacher part), in a joint opening
        #[arg(long, value_name = "FILE")]
        part: Option<PathBuf>,
        /// The server's result
        #[arg(long, value_name = "FILE")]
        result: PathBuf,
        /// The round's file; the result of another round is refused
        #[arg(long, value_name = "FILE")]
        round: PathBuf,
        /// A teacher's verification of the result (speed server verify); may be repeated, and all must hold
        #[arg(long, value_name = "FILE")]
        verification: Vec<PathBuf>,
        /// Known answers to compare before any label is written: lines of query,label or name,label below these column names.
        /// Their labels are left empty
        #[arg(long, value_name = "FILE")]
        known: Option<PathBuf>,
        /// How many known answers may be wrong, because teachers are not always right
        #[arg(long, value_name = "N", default_value_t = 0, requires = "known")]
        known_wrong: usize,
        /// The round's list of queries, if the known answers name queries
        #[arg(long, value_name = "FILE", requires = "known")]
        query_list: Option<PathBuf>,
        /// Open a result that no teacher verified: its labels may be bits of the secret key if the server lies
        #[arg(long, conflicts_with = "verification")]
        unverified: bool,
        /// Keep the secret key or student.share, which is otherwise destroyed after the labels are written
        #[arg(long)]
        keep_keys: bool,
        /// Delta at which the round's epsilon is printed
        #[arg(long, value_name = "D", default_value = "1e-5", value_parser = delta)]
        delta: Delta,
        /// The file of labels to write, lines of query,label; an empty label means no answer
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Train a model on public images and the labels of a round
    Train(Box<StudentTrainOptions>),
    /// Label queries by the plurality of votes in clear text, without noise: for trials, not private
    Plurality(PluralityOptions),
}

#[derive(Debug, Args)]
pub(crate) struct ShowRoundOptions {
    /// The round's file
    pub(crate) round: PathBuf,
    /// Delta at which the round's epsilon is printed
    #[arg(long, value_name = "D", default_value = "1e-5", value_parser = delta)]
    pub(crate) delta: Delta,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RoundOptions {
    /// The public.key that teachers will encrypt under
    #[arg(long, value_name = "FILE", required_unless_present = "keys")]
    pub(crate) public_key: Option<PathBuf>,
    /// A folder of several key sets (keygen --sets), among which the queries are divided: one round for each, in a folder of --out
    #[arg(long, value_name = "DIR", conflicts_with_all = ["public_key", "evaluation_key", "proof_key", "reuse_keys"], requires = "query_list")]
    pub(crate) keys: Option<PathBuf>,
    /// Known answers that `student mix` mixed into the list; each part of them is written beside its secret key
    #[arg(long, value_name = "FILE", requires = "keys")]
    pub(crate) known: Option<PathBuf>,
    /// The evaluation.key of the same keys, whose SHA-256 enters the round's id [default: evaluation.key beside the public key]
    #[arg(long, value_name = "FILE")]
    pub(crate) evaluation_key: Option<PathBuf>,
    /// Name of the round; two rounds with the same key need different names
    #[arg(long)]
    pub(crate) name: String,
    /// Number of queries
    #[arg(long, value_name = "N")]
    pub(crate) queries: usize,
    /// A file that lists the queries in order; its SHA-256 enters the round's id
    #[arg(long, value_name = "FILE")]
    pub(crate) query_list: Option<PathBuf>,
    /// The names of the classes in their order, separated by commas, by which votes and labels refer to them; or their number, if they are
    /// called 0, 1 and so on
    #[arg(long, value_name = "NAMES", value_parser = classes)]
    pub(crate) classes: Classes,
    /// The parties: a folder with the card of each in a file of its own, or a file with all cards one after another
    #[arg(long, value_name = "FOLDER")]
    pub(crate) roster: PathBuf,
    /// Number of parties that answer; a roster with another number is refused
    #[arg(long, value_name = "N", required_unless_present = "simulation")]
    pub(crate) parties: Option<usize>,
    /// Number of teachers of all parties together; a roster with another number is refused [default: one of each party]
    #[arg(long, value_name = "N", requires = "parties")]
    pub(crate) teachers: Option<usize>,
    /// Number of teachers that must answer; a party counts with all its teachers [default: all]
    #[arg(long, value_name = "M")]
    pub(crate) min_teachers: Option<usize>,
    #[command(flatten)]
    pub(crate) mechanism: RoundNoiseOptions,
    /// The parties that add the noise: every teacher a share, or the server all of it (docs/threat-models.md)
    #[arg(long, value_name = "NOISE", default_value = "teachers", value_parser = noise_placement())]
    pub(crate) noise: NoisePlacement,
    /// Give no answer where the largest noisy count is below this number of votes
    #[arg(long, value_name = "VOTES")]
    pub(crate) threshold: Option<i64>,
    /// Proofs that messages are well formed. Without proofs, a teacher that sends malformed ciphertexts and sees the
    /// labels can recover the secret key from them (docs/threat-models.md)
    #[arg(long, value_name = "PROOFS", default_value = "required", value_parser = proofs(), action = ArgAction::Set)]
    pub(crate) proofs: bool,
    /// The teacher that opens the result together with the student, by its name in the roster: the holder of opener.share,
    /// for keys of speed student keygen --joint
    #[arg(long, value_name = "NAME", conflicts_with = "keys")]
    pub(crate) opener: Option<String>,
    /// Reuse the keys of another round. All rounds of a key together may have 333 bits of labels (100 labels of ten classes)
    #[arg(long)]
    pub(crate) reuse_keys: bool,
    /// The proof key to write, for teachers and server [default: proof.key beside the round's file]
    #[arg(long, value_name = "FILE")]
    pub(crate) proof_key: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) price: PriceOptions,
    /// Expected share of the teachers that vote for the right class: also print the forecast of speed plan
    #[arg(long, value_name = "SHARE", value_parser = agreement)]
    pub(crate) agreement: Option<Agreement>,
    /// Write a round in which even a unanimous vote gives a wrong label more than 5 % of the time
    #[arg(long)]
    pub(crate) accept_wrong_labels: bool,
    /// Make the round a simulation, whose keys or noise come from a seed: no privacy
    #[arg(long)]
    pub(crate) simulation: bool,
    /// The round's file to write; with --keys the folder of the rounds
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The noise of a new round: the mechanism, and exactly one parameter.
#[derive(Debug, Args)]
pub(crate) struct RoundNoiseOptions {
    /// Mechanism of the noise: binomial or discrete-laplace [default: binomial, with --gamma discrete-laplace]
    #[arg(long)]
    pub(crate) mechanism: Option<String>,
    /// Coins that each teacher tosses for each class and query: the scale of binomial noise
    #[arg(long, value_name = "M", conflicts_with_all = ["sigma", "gamma"])]
    pub(crate) coins: Option<u64>,
    /// Standard deviation of binomial noise, in votes: each teacher tosses the fewest coins that reach it together
    #[arg(long, conflicts_with = "gamma")]
    pub(crate) sigma: Option<f64>,
    /// Inverse scale of discrete Laplace noise, per vote
    #[arg(long)]
    pub(crate) gamma: Option<f64>,
}

/// The noise that a teacher agrees to.
#[derive(Debug, Args)]
pub(crate) struct AgreedNoiseOptions {
    /// The mechanism that this teacher agrees to; a round with another is refused
    #[arg(long)]
    pub(crate) mechanism: Option<String>,
    /// The coins of each teacher that this teacher agrees to, for binomial noise
    #[arg(long, value_name = "M", requires = "mechanism", conflicts_with = "gamma")]
    pub(crate) coins: Option<u64>,
    /// The inverse scale that this teacher agrees to, for discrete Laplace noise
    #[arg(long, requires = "mechanism")]
    pub(crate) gamma: Option<f64>,
}

/// Limits on the price of a round.
#[derive(Debug, Args)]
pub(crate) struct PriceOptions {
    /// Delta at which the round's epsilon is printed
    #[arg(long, value_name = "D", default_value = "1e-5", value_parser = delta)]
    pub(crate) delta: Delta,
    #[command(flatten)]
    pub(crate) limit: MaxEpsilon,
}

/// A party's records.
#[derive(Debug, Args)]
pub(crate) struct RecordOptions {
    /// Registry of this party's rounds, which prevents answering or evaluating a round twice [default: beside the signing
    /// key]
    #[arg(long, value_name = "FILE")]
    registry: Option<PathBuf>,
    /// Create a missing registry. Only for a key that never answered; keygen creates one beside the key
    #[arg(long)]
    pub(crate) new_registry: bool,
    /// Ledger that is charged before the round is answered; simulations are not charged [default: beside the signing key]
    #[arg(long, value_name = "FILE")]
    ledger: Option<PathBuf>,
    /// Delta of the ledger, if it does not exist yet
    #[arg(long, value_name = "D", default_value = "1e-5", value_parser = delta)]
    ledger_delta: Delta,
}

impl RecordOptions {
    pub(crate) fn registry(&self, signing_key: &Path) -> PathBuf {
        self.registry.clone().unwrap_or_else(|| default_registry(signing_key))
    }

    pub(crate) fn ledger(&self, signing_key: &Path) -> LedgerOptions {
        let path = self.ledger.clone().unwrap_or_else(|| default_ledger(signing_key));
        LedgerOptions { path, delta: self.ledger_delta }
    }
}

#[derive(Debug, Args)]
pub(crate) struct IdentityOptions {
    /// Display name of this party
    #[arg(long)]
    pub(crate) name: String,
    /// The signing key to write (PEM, mode 0600); the card gets the same name with .toml, and the registry of a teacher or a server with .registry
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TeacherCommand {
    /// Generate this teacher's signing key, and its card for the student's roster
    Keygen {
        #[command(flatten)]
        identity: IdentityOptions,
        /// Number of teachers of this party, which its card states: models trained on disjoint parts of its records
        #[arg(long, value_name = "N", default_value_t = 1)]
        teachers: u64,
    },
    /// Train a teacher, or several on disjoint parts, on one organisation's labelled images
    Train(Box<TeacherTrainOptions>),
    /// Let models vote on public images; `teacher answer` reads the votes
    Vote(TeacherVoteOptions),
    /// Encrypt this teacher's noisy votes for a round
    Answer(Box<AnswerOptions>),
    /// Send this teacher's message to the round's server; an interrupted upload resumes
    Send {
        #[command(flatten)]
        client: ClientOptions,
        /// This teacher's message
        #[arg(long, value_name = "FILE")]
        message: PathBuf,
        /// The server's receipt to write
        #[arg(long, value_name = "FILE")]
        receipt: PathBuf,
    },
    /// Fetch the round's log from its server
    Log {
        #[command(flatten)]
        client: ClientOptions,
        /// The log to write
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
    },
    /// Check whether the server counted this teacher's message, from the log and the receipt
    Check {
        /// The round's file
        #[arg(long, value_name = "FILE")]
        round: PathBuf,
        /// This teacher's message
        #[arg(long, value_name = "FILE")]
        message: PathBuf,
        /// The server's receipt, if the message was sent over a network
        #[arg(long, value_name = "FILE")]
        receipt: Option<PathBuf>,
        /// The round's log, which the server gives to every teacher
        #[arg(long, value_name = "FILE")]
        log: PathBuf,
        /// A verification of the result: its log must be the same as this one. Ask the verifier for it
        #[arg(long, value_name = "FILE")]
        verification: Option<PathBuf>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Make this teacher's part of the opening of a result that it verified, in a round with a joint opening
    Part(OpenPartOptions),
}

#[derive(Debug, Args)]
pub(crate) struct OpenPartOptions {
    /// This teacher's signing key; the round's file names it as the opener
    #[arg(long, value_name = "FILE")]
    pub(crate) signing_key: PathBuf,
    /// The opener's share of the secret key, from the student (speed student keygen --joint)
    #[arg(long, value_name = "FILE")]
    pub(crate) opener_share: PathBuf,
    /// The round's file
    #[arg(long, value_name = "FILE")]
    pub(crate) round: PathBuf,
    /// The server's result
    #[arg(long, value_name = "FILE")]
    pub(crate) result: PathBuf,
    /// This teacher's own verification of the result (speed server verify)
    #[arg(long, value_name = "FILE")]
    pub(crate) verification: PathBuf,
    /// Registry of this teacher's rounds, which prevents parts of two results [default: beside the signing key]
    #[arg(long, value_name = "FILE")]
    pub(crate) registry: Option<PathBuf>,
    /// Keep the share, which is otherwise destroyed after the part is written
    #[arg(long)]
    pub(crate) keep_share: bool,
    /// Make the part although this teacher answered another round of the same keys (student round --reuse-keys)
    #[arg(long)]
    pub(crate) reuse_keys: bool,
    /// The part to write, for the student
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct AnswerOptions {
    /// This teacher's signing key, which identifies the teacher in the round's file
    #[arg(long, value_name = "FILE")]
    pub(crate) signing_key: PathBuf,
    /// The student's public.key
    #[arg(long, value_name = "FILE")]
    pub(crate) public_key: PathBuf,
    /// The round's file
    #[arg(long, value_name = "FILE")]
    pub(crate) round: PathBuf,
    /// This teacher's votes, .npy or CSV: a label for each query, in order; `query,label` lines in any order, with query
    /// numbers or, with --query-list, names; or one-hot histograms, queries x classes. For several teachers: a folder with
    /// such a file for each, or one table: labels, teachers x queries, or counts, queries x classes
    #[arg(long, value_name = "FILE")]
    pub(crate) votes: PathBuf,
    /// Form of the votes, if the file is ambiguous: labels or histograms
    #[arg(long, value_name = "FORM")]
    pub(crate) form: Option<VotesForm>,
    /// The round's proof key, if the round requires proofs
    #[arg(long, value_name = "FILE")]
    pub(crate) proof_key: Option<PathBuf>,
    /// The list of queries that this teacher voted on, whose names the votes may use; a round with another list, or
    /// without one, is refused
    #[arg(long, value_name = "FILE")]
    pub(crate) query_list: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) mechanism: AgreedNoiseOptions,
    #[command(flatten)]
    pub(crate) records: RecordOptions,
    #[command(flatten)]
    pub(crate) price: PriceOptions,
    /// Answer although this teacher answered another round of the same keys (student round --reuse-keys): a student
    /// that was corrupted in between could read this teacher's votes of the first round
    #[arg(long)]
    pub(crate) reuse_keys: bool,
    /// Seed for noise and encryption, only in a simulation round
    #[arg(long, value_name = "SEED")]
    pub(crate) simulation: Option<u64>,
    /// The message to write; the file name is arbitrary
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ServerCommand {
    /// Generate the server's signing key, and its card for the student's roster
    Keygen(IdentityOptions),
    /// Sum the teachers' messages and compute the encrypted winners; resumes after an interruption
    Aggregate(Box<AggregateOptions>),
    /// Serve a round over a network: receive messages and send the result to the student; resumes after an interruption
    Serve(Box<ServeOptions>),
    /// Sign and write the seed of a result for a verifier, from which the verifier computes the same answers. It must
    /// stay secret from the student
    Reveal(RevealOptions),
    /// Compute sum and answers of a round again and compare them with the server's result: for a teacher, or for any
    /// other party except the student
    Verify(Box<ServerVerifyOptions>),
}

#[derive(Debug, Args)]
pub(crate) struct RevealOptions {
    /// The server's signing key
    #[arg(long, value_name = "FILE")]
    pub(crate) signing_key: PathBuf,
    /// The server's registry, which has the result [default: beside the signing key]
    #[arg(long, value_name = "FILE")]
    pub(crate) registry: Option<PathBuf>,
    /// The round's file
    #[arg(long, value_name = "FILE")]
    pub(crate) round: PathBuf,
    /// The revealed seed to write (mode 0600)
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ServerVerifyOptions {
    /// The student's evaluation.key
    #[arg(long, value_name = "FILE")]
    pub(crate) evaluation_key: PathBuf,
    /// The round's proof key, if the round requires proofs
    #[arg(long, value_name = "FILE")]
    pub(crate) proof_key: Option<PathBuf>,
    /// The round's file
    #[arg(long, value_name = "FILE")]
    pub(crate) round: PathBuf,
    /// The server's result
    #[arg(long, value_name = "FILE")]
    pub(crate) result: PathBuf,
    /// The round's log
    #[arg(long, value_name = "FILE")]
    pub(crate) log: PathBuf,
    /// The seed that the server revealed
    #[arg(long, value_name = "FILE")]
    pub(crate) seed: PathBuf,
    /// Folder with the counted messages, from the server's --copy-messages or from the teachers; other files are ignored
    #[arg(long, value_name = "DIR")]
    pub(crate) messages: PathBuf,
    /// Number of threads; the outcome does not depend on it [default: all processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) threads: Option<u16>,
    /// A teacher's signing key, which signs the verification
    #[arg(long, value_name = "FILE", requires = "out")]
    pub(crate) signing_key: Option<PathBuf>,
    /// The verification to write for the student, if the server did not lie
    #[arg(long, value_name = "FILE", requires = "signing_key")]
    pub(crate) out: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Options of a server of a round, whatever brings the messages.
#[derive(Debug, Args)]
pub(crate) struct ServerOptions {
    /// The server's signing key
    #[arg(long, value_name = "FILE")]
    pub(crate) signing_key: PathBuf,
    /// The student's evaluation.key
    #[arg(long, value_name = "FILE")]
    pub(crate) evaluation_key: PathBuf,
    /// The round's file
    #[arg(long, value_name = "FILE")]
    pub(crate) round: PathBuf,
    /// The round's proof key, if the round requires proofs
    #[arg(long, value_name = "FILE")]
    pub(crate) proof_key: Option<PathBuf>,
    /// Number of teachers that must answer, if more than the round requires
    #[arg(long, value_name = "M")]
    pub(crate) min_teachers: Option<usize>,
    #[command(flatten)]
    pub(crate) records: RecordOptions,
    /// Folder to which the counted messages are copied for verifiers (speed server verify), because the registry deletes
    /// them when the result exists
    #[arg(long, value_name = "DIR")]
    pub(crate) copy_messages: Option<PathBuf>,
    /// Number of threads; results do not depend on it [default: all processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) threads: Option<u16>,
    /// Seed for all randomness, only in a simulation round
    #[arg(long, value_name = "SEED")]
    pub(crate) simulation: Option<u64>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct AggregateOptions {
    #[command(flatten)]
    pub(crate) server: ServerOptions,
    /// Folder of the teachers' messages
    #[arg(long, value_name = "DIR")]
    pub(crate) answers: PathBuf,
    /// The result to write; the round's log gets the same name followed by .log
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct ServeOptions {
    #[command(flatten)]
    pub(crate) server: ServerOptions,
    /// Address for the round's parties; TLS rejects all others
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) listen: String,
    /// Address of /health and /metrics for monitoring, without TLS: do not expose it to the internet
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) watch: Option<String>,
    /// Address of a proxy in front of the server; its connections must begin with a header of the PROXY protocol, version 2,
    /// whose address counts as the client's, so only the proxy may be able to connect from it
    #[arg(long, value_name = "IP")]
    pub(crate) proxy: Option<IpAddr>,
    /// Minutes after the first start of this round's server until the sum closes if enough teachers have answered;
    /// without it, the server waits for all teachers
    #[arg(long, value_name = "MINUTES")]
    pub(crate) wait: Option<u32>,
    /// Exit after the student has fetched the result
    #[arg(long)]
    pub(crate) until_fetched: bool,
}

/// Options of a party that asks a server.
#[derive(Debug, Args)]
pub(crate) struct ClientOptions {
    /// This party's signing key
    #[arg(long, value_name = "FILE")]
    pub(crate) signing_key: PathBuf,
    /// The round's file, which contains the server's key
    #[arg(long, value_name = "FILE")]
    pub(crate) round: PathBuf,
    /// The server's address
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) server: String,
    /// How long to retry an unavailable, busy or unfinished server, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    pub(crate) patience: u64,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
