//! The command line.

mod privacy;

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};

use privacy::delta;
pub(crate) use privacy::{
    AccountOptions, AuditOptions, CalibrateOptions, FigureCommand, FigureOptions, LedgerCommand, NoiseOptions,
    QueryOptions, ShareKind,
};
use speed_accountant::Delta;
use speed_aggregation::Parameters;
use speed_core::{Circuit, ExitCode, NoisePlacement};

const ABOUT: &str = "Private collaborative deep learning: SPEED (Grivet Sébert et al.) in Rust";

const LONG_ABOUT: &str = "\
Private collaborative deep learning: SPEED (Grivet Sébert et al.) in Rust.

n data holders train private teachers. For every public query each teacher votes, adds its share of noise and encrypts \
the noisy vote under the student's key; a server sums the ciphertexts and computes the argmax without seeing anything; \
the student decrypts the winning label and learns from it; an accountant says what that cost in privacy.";

const FIRST_STEPS: &str = "\
First steps:
  speed run configs/quickstart.toml           built-in digits, a few minutes, no download
  speed data fetch mnist                      the four MNIST files into datasets/mnist
  speed run configs/mnist.toml                the paper's table
  speed list                                  what has been run
  speed show results/mnist/RUN --json         a finished run, for a program
  speed account --votes VOTES.npy --gamma 0.1 --delta 1e-5    what a run of queries cost

A labelling round between parties that trust each other with nothing (docs/protocol.md):
  speed student keygen --out keys             keys: secret.key stays, public.key to teachers, evaluation.key to the server
  speed student round ... --out round.toml    what all agree on: to everyone
  speed teacher answer ... --out FILE         each teacher: noisy votes, encrypted; to the server
  speed server aggregate ... --out result     the server: encrypted winners; to the student
  speed student open ... --out labels.csv     labels

A run that was killed goes on where it was: give the same command again.

Exit codes:";

/// Returns the text after the help: first steps, and the exit codes.
fn after_help() -> String {
    let code = |code: ExitCode| format!("\n  {}  {}", code.code(), code.meaning());
    format!("{FIRST_STEPS}{}", ExitCode::ALL.map(code).concat())
}

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

/// A choice of circuit among those that are exact.
fn exact_circuit() -> impl TypedValueParser<Value = Circuit> {
    let names = [Circuit::Tournament, Circuit::AllPairs].map(Circuit::name);
    PossibleValuesParser::new(names).map(|name| name.parse().expect("one of the names"))
}

/// Private collaborative deep learning.
#[derive(Debug, Parser)]
#[command(name = "speed", version, about = ABOUT, long_about = LONG_ABOUT, after_help = after_help())]
#[command(arg_required_else_help = true, max_term_width = 110)]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run an experiment from a config, or go on with one that was interrupted
    Run(RunOptions),
    /// List the runs in a results folder
    List {
        /// Folder of all results
        #[arg(long, value_name = "DIR", default_value = "results")]
        results: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the table of a finished run
    Show {
        /// A run's folder, results/EXPERIMENT/RUN
        run: PathBuf,
        /// Print the whole report as JSON
        #[arg(long)]
        json: bool,
    },
    /// Check or fetch datasets
    #[command(subcommand)]
    Data(DataCommand),
    /// The student of a labelling round: keys, terms, labels
    #[command(subcommand)]
    Student(StudentCommand),
    /// A teacher of a labelling round
    #[command(subcommand)]
    Teacher(TeacherCommand),
    /// The server of a labelling round
    #[command(subcommand)]
    Server(ServerCommand),
    /// Say what answered queries cost in privacy, with the claim in words
    Account(AccountOptions),
    /// Find the noise for a target epsilon, or the number of queries for a budget
    Calibrate(CalibrateOptions),
    /// Run the mechanism on neighbouring votes: a lower bound on epsilon that no claim may be below
    Audit(AuditOptions),
    /// Keep a record of answered queries with a budget
    #[command(subcommand)]
    Ledger(LedgerCommand),
    /// Draw the paper's figures of epsilon, as SVG and CSV
    #[command(subcommand)]
    Figure(FigureCommand),
}

#[derive(Debug, Args)]
pub(crate) struct RunOptions {
    /// A TOML file; configs/default.toml documents every key
    pub(crate) config: PathBuf,
    /// Change one key, for example --set student.epochs=50; may be given several times
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) overrides: Vec<String>,
    /// Folder of all results
    #[arg(long, value_name = "DIR", default_value = "results")]
    pub(crate) results: PathBuf,
    /// Folder of datasets; without it SPEED_DATASETS, then ./datasets
    #[arg(long, value_name = "DIR")]
    pub(crate) datasets: Option<PathBuf>,
    /// Threads; results do not depend on it [default: all processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) threads: Option<u16>,
    /// Do a stage again although it is done (teachers, votes, aggregate, student, ...); what it left is set aside
    #[arg(long, value_name = "STAGE")]
    pub(crate) force: Vec<String>,
    /// Go on with trainings that another kind of machine began: no one machine repeats them then, and the report says so
    #[arg(long)]
    pub(crate) mix_machines: bool,
    /// Print the resolved config and the stages, and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print the report as JSON instead of the table
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DataCommand {
    /// Check the files of a dataset: presence, checksums, headers
    Check {
        /// Name of the dataset: mnist, fashion-mnist, kmnist, emnist-digits, emnist-letters, emnist-balanced, svhn or cifar-10
        name: String,
        /// Folder of datasets; without it SPEED_DATASETS, then ./datasets
        #[arg(long, value_name = "DIR")]
        datasets: Option<PathBuf>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Download a dataset, checked and resumable
    Fetch {
        /// Name of the dataset: mnist, fashion-mnist, kmnist, emnist-digits, emnist-letters, emnist-balanced, svhn or cifar-10
        name: String,
        /// Folder of datasets; the files go into a folder of the dataset's name
        #[arg(long, value_name = "DIR", default_value = "datasets")]
        datasets: PathBuf,
        /// Take the files from below this address instead of the known mirrors; may be given several times
        #[arg(long, value_name = "URL")]
        mirror: Vec<String>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum StudentCommand {
    /// Generate the keys of all roles: secret.key (mode 0600), public.key, evaluation.key
    Keygen {
        /// Folder of the keys; existing keys are never overwritten
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
        /// Range of noisy counts: narrow up to a difference of 2544 votes, wide up to 30000
        #[arg(long, value_name = "RANGE", default_value = "narrow", value_parser = key_range())]
        range: Parameters,
        /// Keys from a seed, for simulations: whoever knows it knows the secret key
        #[arg(long, value_name = "SEED")]
        simulation: Option<u64>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Write the file of a round, which goes to everyone
    Round(RoundOptions),
    /// Decrypt a round's result
    Open {
        /// The student's secret.key
        #[arg(long, value_name = "FILE")]
        secret_key: PathBuf,
        /// The server's result
        #[arg(long, value_name = "FILE")]
        result: PathBuf,
        /// The round's file: a result of another round is refused
        #[arg(long, value_name = "FILE")]
        round: PathBuf,
        /// Delta at which the round's epsilon is printed
        #[arg(long, value_name = "D", default_value = "1e-5", value_parser = delta, allow_negative_numbers = true)]
        delta: Delta,
        /// Labels to write: query,label with an empty label for no answer
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct RoundOptions {
    /// The public.key that teachers will encrypt under
    #[arg(long, value_name = "FILE")]
    pub(crate) public_key: PathBuf,
    /// Name of the round; two rounds of one key need different names
    #[arg(long)]
    pub(crate) name: String,
    /// Number of queries
    #[arg(long, value_name = "N")]
    pub(crate) queries: usize,
    /// A file that lists the queries in order; its SHA-256 enters the round's id
    #[arg(long, value_name = "FILE")]
    pub(crate) query_list: Option<PathBuf>,
    /// Number of classes
    #[arg(long, value_name = "K")]
    pub(crate) classes: usize,
    /// The parties: the cards of the server and of all teachers, one after another
    #[arg(long, value_name = "FILE")]
    pub(crate) roster: PathBuf,
    /// Number of teachers that must answer [default: all]
    #[arg(long, value_name = "M")]
    pub(crate) min_teachers: Option<usize>,
    /// Mechanism of the noise
    #[arg(long, default_value = "discrete-laplace")]
    pub(crate) mechanism: String,
    /// Inverse scale of the noise, per vote
    #[arg(long, allow_negative_numbers = true)]
    pub(crate) gamma: f64,
    /// The parties that add the noise: every teacher a share, or the server all of it (docs/threat-models.md)
    #[arg(long, value_name = "NOISE", default_value = "teachers", value_parser = noise_placement())]
    pub(crate) noise: NoisePlacement,
    /// No answer where the noisy maximum is below so many votes
    #[arg(long, value_name = "VOTES", allow_negative_numbers = true)]
    pub(crate) threshold: Option<i64>,
    /// Proofs that messages are well formed. Without them a teacher that sends what is no encryption may read the secret key out
    /// of the labels, if it sees them (docs/threat-models.md)
    #[arg(long, value_name = "PROOFS", default_value = "required", value_parser = proofs())]
    pub(crate) proofs: bool,
    /// The proof key to write, for teachers and server [default: proof.key beside the round's file]
    #[arg(long, value_name = "FILE")]
    pub(crate) proof_key: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) price: PriceOptions,
    /// A round whose keys or noise come from a seed: no privacy
    #[arg(long)]
    pub(crate) simulation: bool,
    /// The round's file to write
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Limits on the price of a round.
#[derive(Debug, Args)]
pub(crate) struct PriceOptions {
    /// Delta at which the round's epsilon is printed
    #[arg(long, value_name = "D", default_value = "1e-5", value_parser = delta, allow_negative_numbers = true)]
    pub(crate) delta: Delta,
    /// Refuse a round that may cost more, whatever the votes are; without it, one whose single answer may cost more than 10
    #[arg(long, value_name = "E", allow_negative_numbers = true)]
    pub(crate) max_epsilon: Option<f64>,
}

#[derive(Debug, Args)]
pub(crate) struct IdentityOptions {
    /// Name of this party, for people
    #[arg(long)]
    pub(crate) name: String,
    /// The signing key to write (PEM, mode 0600); the card has the same name with .toml
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TeacherCommand {
    /// Generate this teacher's signing key, and its card for the student's roster
    Keygen(IdentityOptions),
    /// Encrypt this teacher's noisy votes for a round
    Answer(AnswerOptions),
}

#[derive(Debug, Args)]
pub(crate) struct AnswerOptions {
    /// This teacher's signing key; which teacher it is, the round's file says
    #[arg(long, value_name = "FILE")]
    pub(crate) signing_key: PathBuf,
    /// The student's public.key
    #[arg(long, value_name = "FILE")]
    pub(crate) public_key: PathBuf,
    /// The round's file
    #[arg(long, value_name = "FILE")]
    pub(crate) round: PathBuf,
    /// This teacher's votes, one label per query: .npy, or text with a label or `query,label` per line
    #[arg(long, value_name = "FILE")]
    pub(crate) votes: PathBuf,
    /// The round's proof key, where the round asks for proofs
    #[arg(long, value_name = "FILE")]
    pub(crate) proof_key: Option<PathBuf>,
    /// The list of queries that this teacher voted on; a round with another, or without one, is refused
    #[arg(long, value_name = "FILE")]
    pub(crate) query_list: Option<PathBuf>,
    /// The mechanism that this teacher agrees to; a round with another is refused
    #[arg(long, requires = "gamma")]
    pub(crate) mechanism: Option<String>,
    /// The inverse scale that this teacher agrees to; a round with another is refused
    #[arg(long, requires = "mechanism", allow_negative_numbers = true)]
    pub(crate) gamma: Option<f64>,
    #[command(flatten)]
    pub(crate) price: PriceOptions,
    /// Noise and encryption from a seed, in rounds that are simulations
    #[arg(long, value_name = "SEED")]
    pub(crate) simulation: Option<u64>,
    /// The message to write; its name means nothing
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
    /// Sum the teachers' messages and compute the encrypted winners; killed, it goes on where it was
    Aggregate(AggregateOptions),
}

#[derive(Debug, Args)]
pub(crate) struct AggregateOptions {
    /// The server's signing key
    #[arg(long, value_name = "FILE")]
    pub(crate) signing_key: PathBuf,
    /// The student's evaluation.key
    #[arg(long, value_name = "FILE")]
    pub(crate) evaluation_key: PathBuf,
    /// The round's file
    #[arg(long, value_name = "FILE")]
    pub(crate) round: PathBuf,
    /// The round's proof key, where the round asks for proofs
    #[arg(long, value_name = "FILE")]
    pub(crate) proof_key: Option<PathBuf>,
    /// Folder of the teachers' messages
    #[arg(long, value_name = "DIR")]
    pub(crate) answers: PathBuf,
    /// The result to write
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// Number of teachers that must answer, if more than the round says
    #[arg(long, value_name = "M")]
    pub(crate) min_teachers: Option<usize>,
    /// Folder that keeps the sum and the answers until all is done [default: OUT.state]
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
    /// The circuit of the argmax; both give the same winners
    #[arg(long, value_name = "CIRCUIT", default_value = "tournament", value_parser = exact_circuit())]
    pub(crate) circuit: Circuit,
    /// Threads; results do not depend on it [default: all processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) threads: Option<u16>,
    /// Randomness from a seed, in rounds that are simulations
    #[arg(long, value_name = "SEED")]
    pub(crate) simulation: Option<u64>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
