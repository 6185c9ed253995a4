//! The command line.

mod cluster;
mod price;
mod privacy;
mod rounds;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

pub(crate) use cluster::{StatusOptions, SubmitOptions};
pub(crate) use price::MaxEpsilon;
pub(crate) use privacy::{
    AccountOptions, AuditOptions, CalibrateOptions, FigureCommand, FigureOptions, LedgerCommand, NoiseOptions,
    QueryOptions, ShareKind,
};
pub(crate) use rounds::{
    AggregateOptions, AnswerOptions, ClientOptions, IdentityOptions, PriceOptions, RoundOptions, ServeOptions,
    ServerCommand, ServerOptions, ShowRoundOptions, StudentCommand, TeacherCommand,
};
use speed_core::ExitCode;

const ABOUT: &str = "Private collaborative deep learning: SPEED (Grivet Sébert et al.) in Rust";

const LONG_ABOUT: &str = "\
Private collaborative deep learning: SPEED (Grivet Sébert et al.) in Rust.

n data holders train private teachers. For every public query each teacher votes, adds its share of noise and encrypts \
the noisy vote under the student's key; a server sums the ciphertexts and computes the argmax without seeing anything; \
the student decrypts the winning label and learns from it; an accountant says what that cost in privacy.";

const FIRST_STEPS: &str = "\
First steps:
  speed run configs/quickstart.toml     built-in digits, minutes, no download
  speed data fetch mnist                the MNIST files into datasets/mnist
  speed run configs/mnist.toml          the paper's table
  speed list                            what has been run
  speed watch mnist                     how far a run is, from elsewhere
  speed show mnist --json               a finished run, for a program
  speed compare RUN RUN --paper         runs side by side, and the paper
  speed account --votes VOTES.npy --gamma 0.1 --delta 1e-5    what queries cost

A labelling round between organisations (docs/hospitals.md; student and server
must not work together):
  speed student keygen --out keys           keys: secret.key stays, public.key
                                            to teachers, evaluation.key to the
                                            server
  speed student round ... --out round.toml  what all agree on: to everyone
  speed round round.toml                    everyone: parties, terms, price
  speed teacher answer ... --out FILE       each teacher: noisy votes,
                                            encrypted; to the server
  speed server aggregate ... --out result   the server: encrypted winners; to
                                            the student
  speed student open ... --out labels.csv   labels
  The same over a network: speed server serve, teacher send, teacher log,
  teacher check, student fetch

A run that was killed goes on where it was: give the same command again.

Exit codes:";

/// Returns the text after the help: first steps, and the exit codes.
fn after_help() -> String {
    let code = |code: ExitCode| format!("\n  {}  {}", code.code(), code.meaning());
    format!("{FIRST_STEPS}{}", ExitCode::ALL.map(code).concat())
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
    /// Print the table of a finished run or sweep
    Show {
        /// A run: its folder results/EXPERIMENT/RUN, an experiment with one finished run, or the beginning of a run's id; or a sweep likewise
        run: PathBuf,
        /// Folder of all results, in which runs are looked for by name
        #[arg(long, value_name = "DIR", default_value = "results")]
        results: PathBuf,
        /// Say below the table what its columns mean
        #[arg(long)]
        legend: bool,
        /// Print the whole report as JSON
        #[arg(long)]
        json: bool,
        /// Print the page, one HTML file: speed show RUN --html > page.html
        #[arg(long, conflicts_with_all = ["json", "legend"])]
        html: bool,
    },
    /// Follow a run that goes on in another terminal
    ///
    /// Reads the run's folder, and ends when no process works on it any more; exit code 0 also where it ended unfinished.
    Watch {
        /// A run: its folder results/EXPERIMENT/RUN, an experiment of which one run goes on, or the beginning of a run's id
        run: PathBuf,
        /// Folder of all results, in which runs are looked for by name
        #[arg(long, value_name = "DIR", default_value = "results")]
        results: PathBuf,
        /// Print how far it is now, and end
        #[arg(long)]
        once: bool,
        /// Print JSON; an object a line, every second, without --once
        #[arg(long)]
        json: bool,
    },
    /// Run an experiment on a cluster, as arrays of jobs that depend on one another
    ///
    /// Writes readable scripts into the run's folder and submits them. The same command again submits what is missing: shards that are not
    /// done and whose jobs neither wait nor run (docs/cluster.md).
    Submit(SubmitOptions),
    /// Say how far a run on a cluster is: units, jobs, and the logs of those that failed
    Status(StatusOptions),
    /// Put finished runs side by side, and beside the paper
    ///
    /// Prints what differs in their configs, versions and machines, and for every figure of rows of the same name the values and their
    /// differences from the first run, of students with Welch's interval at 95 %.
    Compare(CompareOptions),
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
    /// Print what a round's file says, once it is checked: what a party reads before it takes part
    Round(ShowRoundOptions),
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
    /// Print what a shell completes: speed completions bash > FILE
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the manual page, or write one for every command into a folder
    Manual {
        /// The folder, which is created
        #[arg(value_name = "DIR")]
        folder: Option<PathBuf>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ExperimentOptions {
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
}

#[derive(Debug, Args)]
pub(crate) struct RunOptions {
    #[command(flatten)]
    pub(crate) experiment: ExperimentOptions,
    /// Threads; results do not depend on it [default: all processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) threads: Option<u16>,
    #[command(flatten)]
    pub(crate) limit: MaxEpsilon,
    /// Do a stage again although it is done (teachers, votes, aggregate, student, ...); what it left is set aside
    #[arg(long, value_name = "STAGE")]
    pub(crate) force: Vec<String>,
    /// End after a stage (teachers, votes, aggregate, student, ...), without tables; what comes before it is done as well
    #[arg(long, value_name = "STAGE", conflicts_with = "dry_run")]
    pub(crate) stage: Option<String>,
    /// Do a share of the stage's units and nothing else: with --stage teachers, aggregate or student, 3/50 for the third of fifty
    /// processes that share a results folder (docs/cluster.md)
    #[arg(long, value_name = "I/N", requires = "stage", conflicts_with = "force")]
    pub(crate) shard: Option<String>,
    /// Seconds for which a shard waits for an earlier stage that it does not find done: file systems may show late what another machine wrote
    #[arg(long, value_name = "SECONDS", default_value_t = 0, hide_default_value = true, requires = "shard")]
    pub(crate) latency_wait: u32,
    /// Stop unless this is the id of the config's run, or of its sweep: for scripts, whose config may have changed since
    #[arg(long, value_name = "ID")]
    pub(crate) run: Option<String>,
    /// Go on with trainings that another kind of machine began, and with shards of another binary: no one machine repeats them then,
    /// and the report says so
    #[arg(long)]
    pub(crate) mix_machines: bool,
    /// Print the resolved config and the stages, and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Say below the table what its columns mean
    #[arg(long)]
    pub(crate) legend: bool,
    /// Say nothing about progress; errors are said
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Form of progress on standard error: text, or json for an object a line (docs/json.md)
    #[arg(long, value_name = "FORMAT", default_value = "text", hide_possible_values = true)]
    pub(crate) log_format: LogFormat,
    /// Print the report as JSON instead of the table
    #[arg(long)]
    pub(crate) json: bool,
}

/// The form of progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// An object a line.
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct CompareOptions {
    /// Runs, each a folder results/EXPERIMENT/RUN, an experiment with one finished run, or the beginning of a run's id; differences are from
    /// the first
    #[arg(required = true, value_name = "RUN", num_args = 1..=26)]
    pub(crate) runs: Vec<PathBuf>,
    /// Beside the paper's own figures, as far as the configs carry them
    #[arg(long)]
    pub(crate) paper: bool,
    /// Folder of all results, in which runs are looked for by name
    #[arg(long, value_name = "DIR", default_value = "results")]
    pub(crate) results: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Print Markdown
    #[arg(long, conflicts_with = "json")]
    pub(crate) markdown: bool,
    /// Print the figures as comma-separated values, not rounded
    #[arg(long, conflicts_with_all = ["json", "markdown"])]
    pub(crate) csv: bool,
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
