//! The command line.

mod forecast;
mod privacy;
mod rounds;
mod training;

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

pub(crate) use forecast::PlanOptions;
pub(crate) use privacy::{
    AccountOptions, AuditOptions, CalibrateOptions, CheckOptions, FigureCommand, FigureOptions, LedgerCommand,
    MaxEpsilon, NoiseOptions, QueryOptions, ShareKind,
};
pub(crate) use rounds::{
    AggregateOptions, AgreedNoiseOptions, AnswerOptions, ClientOptions, IdentityOptions, OpenPartOptions,
    RevealOptions, RoundNoiseOptions, RoundOptions, ServeOptions, ServerCommand, ServerOptions, ServerVerifyOptions,
    ShowRoundOptions, StudentCommand, TeacherCommand,
};
use speed_core::ExitCode;
use speed_experiment::model::PixelType;
use training::MAX_SEED;
pub(crate) use training::{
    PluralityOptions, StudentQueriesOptions, StudentTrainOptions, TeacherTrainOptions, TeacherVoteOptions,
};

const ABOUT: &str = "Private collaborative deep learning: SPEED (Grivet Sébert et al.) in Rust";

const LONG_ABOUT: &str = "\
Private collaborative deep learning: SPEED (Grivet Sébert et al.) in Rust.

n data holders train private teachers. For every public query each teacher votes, adds its share of noise and encrypts \
the noisy vote under the student's key. A server sums the ciphertexts and computes the argmax without seeing a plaintext. \
The student decrypts the winning label and learns from it. An accountant computes the privacy cost.";

const FIRST_STEPS: &str = "\
First steps:
  speed run configs/quickstart.toml     built-in digits, minutes, no download
  speed data fetch mnist                the MNIST files into datasets/mnist
  speed run configs/mnist.toml          the paper's table
  speed list                            all runs
  speed show mnist --follow             progress of a run in another terminal
  speed show mnist --json               a finished run, for a program
  speed predict --model FILE IMAGES     labels from a trained student
  speed export --model FILE --out m.onnx    the model for other programs
  speed data example --out trial        pictures for docs/first-model.md
  speed compare RUN RUN --paper         runs side by side, with the paper
  speed account --votes VOTES.npy --gamma 0.1 --delta 1e-5    privacy cost

A labelling round between organisations (docs/hospitals.md; student and server
must not work together):
  speed student keygen --out keys           keys: secret.key stays, public.key
                                            to teachers, evaluation.key to the
                                            server
  speed student round ... --out round.toml  the terms; to everyone
  speed round round.toml                    each party: check terms and price
  speed teacher train ... --out FILE        each teacher: a model of its own
  speed teacher vote ... --out votes.csv    images, and its votes
  speed teacher answer ... --out FILE       each teacher: noisy votes,
                                            encrypted; to the server
  speed server aggregate ... --out result   the server: encrypted winners; to
                                            the student
  speed server verify ... --out FILE        a teacher: computes the answers again
  speed student open ... --out labels.csv   labels
  speed student train ... --out FILE        the student: a model from the labels
  The same over a network: speed server serve, teacher send, teacher log,
  teacher check, student fetch

To resume an interrupted run, repeat its command.

Exit codes:";

/// Returns the text after the help: first steps, and the exit codes.
fn after_help() -> String {
    let code = |code: ExitCode| format!("\n  {:>3}  {}", code.code(), code.meaning());
    format!("{FIRST_STEPS}{}", ExitCode::ALL.map(code).concat())
}

/// Private collaborative deep learning.
#[derive(Debug, Parser)]
#[command(name = "speed", version, about = ABOUT, long_about = LONG_ABOUT, after_help = after_help())]
#[command(arg_required_else_help = true, max_term_width = 110)]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Do not report progress and notes; errors and warnings about data are still reported
    #[arg(long, short, global = true, display_order = 900)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run an experiment from a config, or resume it
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
    /// Print the table of a finished run or sweep, or the state of an unfinished one
    ///
    /// The state has the stages, their finished units, the shards at work and, on a cluster, the jobs with the logs of
    /// failed ones.
    Show(ShowOptions),
    /// Run an experiment on a cluster, as arrays of dependent jobs
    ///
    /// Writes readable scripts into the run's folder and submits them. If repeated, the command submits only the missing
    /// shards: those that are not done and whose jobs neither wait nor run (docs/experiments.md).
    Submit(SubmitOptions),
    /// Compare finished runs with each other and with the paper
    ///
    /// Prints the differences in configs, versions and machines. For rows with the same name, prints every figure and its
    /// difference from the first run; for students with Welch's 95 % interval.
    Compare(CompareOptions),
    /// Classify images with a trained model
    ///
    /// Prints the label and the probability of every class for each image. Images are resized and converted as in the model's
    /// training; without resizing there, an image of another size is refused.
    Predict(PredictOptions),
    /// Write a trained model for other programs, as ONNX or safetensors
    ///
    /// An ONNX model prepares the pixels itself: it reads images and returns probabilities and logits. It is compared with the network before it
    /// is written.
    Export(ExportOptions),
    /// Check the card of a model against the files that it describes
    ///
    /// Compares every field that public files determine, and computes the epsilon again from the config of the run or from
    /// the file and the result of the round.
    Verify(VerifyOptions),
    /// Check, fetch or make datasets
    #[command(subcommand)]
    Data(DataCommand),
    /// The student of a labelling round: keys, terms, labels, training
    #[command(subcommand)]
    Student(StudentCommand),
    /// A teacher of a labelling round: training, votes, messages
    #[command(subcommand)]
    Teacher(TeacherCommand),
    /// The server of a labelling round
    #[command(subcommand)]
    Server(ServerCommand),
    /// Check a round's file and print its parties, terms and privacy cost, for a party that decides whether to take
    /// part
    Round(ShowRoundOptions),
    /// Forecast right labels, epsilon and cost of a labelling round, before anything is spent
    ///
    /// The labels are forecast with the noise of all teachers, from an expected agreement or the votes of a public pilot
    /// (docs/privacy.md, "Forecast"). Nothing is charged.
    Plan(PlanOptions),
    /// Compute the privacy cost of answered queries, with the claim in words
    Account(AccountOptions),
    /// Find the noise for a target epsilon, or the number of queries for a budget
    Calibrate(CalibrateOptions),
    /// Run the mechanism on neighbouring votes to find a lower bound on epsilon, which no valid claim is below
    Audit(AuditOptions),
    /// Keep a record of answered queries with a budget
    #[command(subcommand)]
    Ledger(LedgerCommand),
    /// Draw the paper's figures of epsilon, as SVG and CSV
    #[command(subcommand)]
    Figure(FigureCommand),
    /// Generate shell completions: speed completions bash > FILE
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the manual page, or write a page for every command into a folder
    Manual {
        /// The folder to create
        #[arg(value_name = "DIR")]
        folder: Option<PathBuf>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ExperimentOptions {
    /// A TOML file; configs/default.toml documents every key
    pub(crate) config: PathBuf,
    /// Change one key, for example --set teacher.steps=300; may be given several times
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) overrides: Vec<String>,
    /// Folder of all results
    #[arg(long, value_name = "DIR", default_value = "results")]
    pub(crate) results: PathBuf,
    /// Folder of datasets [default: SPEED_DATASETS, or ./datasets if it is not set]
    #[arg(long, value_name = "DIR")]
    pub(crate) datasets: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct RunOptions {
    #[command(flatten)]
    pub(crate) experiment: ExperimentOptions,
    /// Number of threads; results do not depend on it [default: all processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) threads: Option<u16>,
    #[command(flatten)]
    pub(crate) limit: MaxEpsilon,
    /// Repeat a finished stage (teachers, votes, aggregate, student, ...); its old results are set aside
    #[arg(long, value_name = "STAGE")]
    pub(crate) force: Vec<String>,
    /// End after a stage (teachers, votes, aggregate, student, ...), without tables; earlier stages run first
    #[arg(long, value_name = "STAGE", conflicts_with = "dry_run")]
    pub(crate) stage: Option<String>,
    /// Process one share of the stage's units and nothing else, with --stage teachers, aggregate or student: 3/50 is the
    /// third of fifty processes that share a results folder (docs/experiments.md)
    #[arg(long, value_name = "I/N", requires = "stage", conflicts_with = "force")]
    pub(crate) shard: Option<String>,
    /// How long a shard waits for an unfinished earlier stage, in seconds, because file systems may show another
    /// machine's files late
    #[arg(long, value_name = "SECONDS", default_value_t = 0, hide_default_value = true, requires = "shard")]
    pub(crate) latency_wait: u32,
    /// Stop unless the config's run or sweep has this id; for scripts, because the config may have changed
    #[arg(long, value_name = "ID")]
    pub(crate) run: Option<String>,
    /// Resume trainings of another kind of machine and shards of another binary; no single machine can then reproduce the
    /// results, and the report states this
    #[arg(long)]
    pub(crate) mix_machines: bool,
    /// Print the resolved config and the stages without running them
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print an explanation of the columns below the table
    #[arg(long)]
    pub(crate) legend: bool,
    /// Format of progress on standard error: text, or json for one object a line (docs/json.md)
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
    /// One object a line.
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct SubmitOptions {
    #[command(flatten)]
    pub(crate) experiment: ExperimentOptions,
    /// Submit to Slurm, with sbatch, squeue, sacct and scancel
    #[arg(long, required = true)]
    pub(crate) slurm: bool,
    /// Maximum number of shards of a stage [default: the previous submission's, else 100; never more than units]
    #[arg(long, value_name = "N")]
    pub(crate) shards: Option<NonZeroUsize>,
    /// Maximum number of shards that run at the same time
    #[arg(long, value_name = "N")]
    pub(crate) at_once: Option<NonZeroUsize>,
    /// Partition
    #[arg(long, value_name = "NAME")]
    pub(crate) partition: Option<String>,
    /// Account
    #[arg(long, value_name = "NAME")]
    pub(crate) account: Option<String>,
    /// Time limit of every job, in sbatch's format [default: twice the estimate from a few steps measured here, at least
    /// ten minutes]
    #[arg(long, value_name = "TIME")]
    pub(crate) time: Option<String>,
    /// Number of processors and threads of every shard and job
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) cpus: u16,
    /// Memory of every shard and job, in sbatch's format [default: twice the size of the largest values]
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<String>,
    /// Any other option for sbatch, as --sbatch=--gres=gpu:1; may be given several times, and overrides all others
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    pub(crate) sbatch: Vec<String>,
    #[command(flatten)]
    pub(crate) limit: MaxEpsilon,
    /// Resume work of another kind of machine or another binary, as in speed run
    #[arg(long)]
    pub(crate) mix_machines: bool,
    /// Print scripts and commands without writing or submitting anything
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ShowOptions {
    /// A run or sweep: its folder, such as results/EXPERIMENT/RUN, an experiment with one finished run or one run, or the
    /// beginning of its id
    pub(crate) run: PathBuf,
    /// Folder of all results, searched for runs by name
    #[arg(long, value_name = "DIR", default_value = "results")]
    pub(crate) results: PathBuf,
    /// Follow a run until no process works on it, then print its table or state; of several runs of an experiment, the
    /// active one
    #[arg(long, conflicts_with = "html")]
    pub(crate) follow: bool,
    /// Print an explanation of the columns below the table
    #[arg(long)]
    pub(crate) legend: bool,
    /// Print the complete report or the state as JSON; with --follow, the state as one object a line every second
    #[arg(long)]
    pub(crate) json: bool,
    /// Print the page, one HTML file: speed show RUN --html > page.html
    #[arg(long, conflicts_with_all = ["json", "legend"])]
    pub(crate) html: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CompareOptions {
    /// Runs, each a folder results/EXPERIMENT/RUN, an experiment with one finished run, or the beginning of a run's id;
    /// differences are relative to the first
    #[arg(required = true, value_name = "RUN", num_args = 1..=26)]
    pub(crate) runs: Vec<PathBuf>,
    /// Compare with the paper's own figures that the configs contain
    #[arg(long)]
    pub(crate) paper: bool,
    /// Folder of all results, searched for runs by name
    #[arg(long, value_name = "DIR", default_value = "results")]
    pub(crate) results: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Print Markdown
    #[arg(long, conflicts_with = "json")]
    pub(crate) markdown: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PredictOptions {
    /// The model: models/ROW/student-0.safetensors in a run's folder, or the weights of one of its teachers,
    /// stages/teachers/teacher-0000.bin
    #[arg(long, value_name = "FILE")]
    pub(crate) model: PathBuf,
    /// PNG and JPEG pictures, folders of pictures, and .npy arrays: images x height x width (x channels) or images x channels
    /// x height x width, uint8 or floating-point values of 0 to 1
    #[arg(required = true, value_name = "IMAGES")]
    pub(crate) images: Vec<PathBuf>,
    /// Format of the output: table, csv, json (docs/json.md), or npy, a float32 array of images x classes
    #[arg(long, value_name = "FORMAT", default_value = "table", hide_possible_values = true)]
    pub(crate) format: PredictionFormat,
    /// New file for the output [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Number of threads; predictions do not depend on it [default: all processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) threads: Option<u16>,
    /// Folder of datasets, for a teacher of a run that kept no students [default: SPEED_DATASETS, or ./datasets if it is not
    /// set]
    #[arg(long, value_name = "DIR")]
    pub(crate) datasets: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct VerifyOptions {
    /// The card: models/ROW/model-card.json in a run's folder, or the -card.json beside a model
    #[arg(value_name = "CARD")]
    pub(crate) card: PathBuf,
    /// The folder of the run, for a card that was moved away from it; the models must be beside the card
    #[arg(long, value_name = "DIR", conflicts_with = "round")]
    pub(crate) run: Option<PathBuf>,
    /// The round's file, for the card of a round's model
    #[arg(long, value_name = "FILE")]
    pub(crate) round: Option<PathBuf>,
    /// The round's result, if the card was written with it
    #[arg(long, value_name = "FILE", requires = "round")]
    pub(crate) result: Option<PathBuf>,
    /// Print JSON (docs/json.md)
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ExportOptions {
    /// The model: models/ROW/student-0.safetensors in a run's folder, or the weights of one of its teachers,
    /// stages/teachers/teacher-0000.bin
    #[arg(long, value_name = "FILE")]
    pub(crate) model: PathBuf,
    /// Format: onnx, or safetensors, the model's own file
    #[arg(long, value_name = "FORMAT", default_value = "onnx", hide_possible_values = true)]
    pub(crate) to: ModelFormat,
    /// File for the model; another file of this name is not overwritten
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// Pixels that an ONNX model reads: uint8, values of 0 to 255, or float, values of 0 to 1
    #[arg(long, value_name = "TYPE", default_value = "uint8", value_parser = pixels(), hide_possible_values = true)]
    pub(crate) pixels: PixelType,
    /// Also write the names of the classes as a JSON list, for runtimes that do not show a model's metadata
    #[arg(long, value_name = "FILE")]
    pub(crate) classes: Option<PathBuf>,
    /// Folder of datasets, for a teacher of a run that kept no students [default: SPEED_DATASETS, or ./datasets if it is not
    /// set]
    #[arg(long, value_name = "DIR")]
    pub(crate) datasets: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The format of an exported model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModelFormat {
    /// Open Neural Network Exchange.
    Onnx,
    /// The format of models in runs.
    Safetensors,
}

/// A choice of the pixels of an ONNX model.
fn pixels() -> impl TypedValueParser<Value = PixelType> {
    PossibleValuesParser::new(["uint8", "float"])
        .map(|pixels| if pixels == "float" { PixelType::Float } else { PixelType::Uint8 })
}

/// The format of predictions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PredictionFormat {
    /// For people.
    Table,
    /// Comma-separated values.
    Csv,
    /// An object for programs.
    Json,
    /// The probabilities as a NumPy array.
    Npy,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DataCommand {
    /// Check the files of a dataset: presence, checksums, headers
    Check {
        /// Name of the dataset: mnist, fashion-mnist, kmnist, emnist-digits, emnist-letters, emnist-balanced, svhn or cifar-10
        name: String,
        /// Folder of datasets [default: SPEED_DATASETS, or ./datasets if it is not set]
        #[arg(long, value_name = "DIR")]
        datasets: Option<PathBuf>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Download a dataset and check it; an interrupted download resumes
    Fetch {
        /// Name of the dataset: mnist, fashion-mnist, kmnist, emnist-digits, emnist-letters, emnist-balanced, svhn or cifar-10
        name: String,
        /// Folder of datasets; the files go into a subfolder with the dataset's name
        #[arg(long, value_name = "DIR", default_value = "datasets")]
        datasets: PathBuf,
        /// Base address to download from instead of the known mirrors; may be given several times
        #[arg(long, value_name = "URL")]
        mirror: Vec<String>,
    },
    /// Write example pictures for a first model (docs/first-model.md)
    ///
    /// Built-in digits, 24 x 24: 600 labelled pictures for each of three organisations, 400 public pictures without labels
    /// and 1000 test pictures.
    Example {
        /// The new folder
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
        /// Seed of the digits
        #[arg(long, value_name = "SEED", default_value_t = 1, value_parser = clap::value_parser!(u64).range(..=MAX_SEED))]
        seed: u64,
    },
}
