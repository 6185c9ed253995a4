//! The commands: parse, call, print. Results go to standard output, everything else to standard error.

mod card;
mod client;
mod compare;
mod data;
mod export;
mod forecast;
mod identity;
mod new_round;
mod plan;
mod predict;
mod privacy;
mod round;
mod round_noise;
mod run;
mod runs;
mod server;
mod shell;
mod show;
mod student;
mod submit;
mod teacher;
mod training;
mod verify;

use clap::Subcommand;

use crate::failure::{Failure, usage};
use crate::options::threads;
use crate::output::{WITHOUT_PROOFS, influence, mark, print, print_report};
use crate::process;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run an experiment from a config, or resume it
    Run(run::RunArguments),
    /// List the runs in a results folder
    List(runs::ListOptions),
    /// Print the table of a finished run or sweep, or the state of an unfinished one
    ///
    /// The state has the stages, their finished units, the shards at work and, on a cluster, the jobs with the logs of
    /// failed ones.
    Show(show::ShowOptions),
    /// Run an experiment on a cluster, as arrays of dependent jobs
    ///
    /// Writes readable scripts into the run's folder and submits them. If repeated, the command submits only the missing
    /// shards: those that are not done and whose jobs neither wait nor run (docs/experiments.md).
    Submit(submit::SubmitOptions),
    /// Compare finished runs with each other and with the paper
    ///
    /// Prints the differences in configs, versions and machines. For rows with the same name, prints every figure and its
    /// difference from the first run; for students with Welch's 95 % interval.
    Compare(compare::CompareOptions),
    /// Classify images with a trained model
    ///
    /// Prints the label and the probability of every class for each image. Images are resized and converted as in the model's
    /// training; without resizing there, an image of another size is refused.
    Predict(predict::PredictOptions),
    /// Write a trained model for other programs, as ONNX or safetensors
    ///
    /// An ONNX model prepares the pixels itself: it reads images and returns probabilities and logits. It is compared with the network before it
    /// is written.
    Export(export::ExportOptions),
    /// Check the card of a model against the files that it describes
    ///
    /// Compares every field that public files determine, and computes the epsilon again from the config of the run or from
    /// the file and the result of the round.
    Verify(verify::VerifyOptions),
    /// Check, fetch or make datasets
    #[command(subcommand)]
    Data(data::DataCommand),
    /// The student of a labelling round: keys, terms, labels, training
    #[command(subcommand)]
    Student(student::StudentCommand),
    /// A teacher of a labelling round: training, votes, messages
    #[command(subcommand)]
    Teacher(teacher::TeacherCommand),
    /// The server of a labelling round
    #[command(subcommand)]
    Server(server::ServerCommand),
    /// Check a round's file and print its parties, terms and privacy cost, for a party that decides whether to take
    /// part
    Round(round::ShowRoundOptions),
    /// Forecast right labels, epsilon and cost of a labelling round, before anything is spent
    ///
    /// The labels are forecast with the noise of all teachers, from an expected agreement or the votes of a public pilot
    /// (docs/privacy.md, "Forecast"). Nothing is charged.
    Plan(forecast::PlanOptions),
    /// Compute the privacy cost of answered queries, with the claim in words
    Account(privacy::AccountOptions),
    /// Find the noise for a target epsilon, or the number of queries for a budget
    Calibrate(privacy::CalibrateOptions),
    /// Run the mechanism on neighbouring votes to find a lower bound on epsilon, which no valid claim is below
    Audit(privacy::AuditOptions),
    /// Keep a record of answered queries with a budget
    #[command(subcommand)]
    Ledger(privacy::LedgerCommand),
    /// Draw the paper's figures of epsilon, as SVG and CSV
    #[command(subcommand)]
    Figure(privacy::FigureCommand),
    /// Generate shell completions: speed completions bash > FILE
    Completions(shell::CompletionsOptions),
    /// Print the manual page, or write a page for every command into a folder
    Manual(shell::ManualOptions),
}

/// Executes a command. `command_line` returns the whole command line, which completions and manual pages describe.
pub(crate) fn execute(command: Command, command_line: fn() -> clap::Command) -> Result<(), Failure> {
    if matches!(command, Command::Student(_) | Command::Teacher(_) | Command::Server(_)) {
        process::hide_memory();
    }
    match command {
        Command::Run(options) => run::run(&options),
        Command::List(options) => runs::list(&options),
        Command::Show(options) => show::show(&options),
        Command::Submit(options) => submit::submit(&options),
        Command::Compare(options) => compare::compare(&options),
        Command::Predict(options) => predict::predict(&options),
        Command::Export(options) => export::export(&options),
        Command::Verify(options) => verify::verify(&options),
        Command::Data(command) => data::execute(command),
        Command::Student(command) => student::execute(command),
        Command::Teacher(command) => teacher::execute(command),
        Command::Server(command) => server::execute(command),
        Command::Round(options) => round::show(&options),
        Command::Plan(options) => forecast::plan(&options),
        Command::Account(options) => privacy::account(&options),
        Command::Calibrate(options) => privacy::calibrate(&options),
        Command::Audit(options) => privacy::audit(&options),
        Command::Ledger(command) => privacy::ledger(&command),
        Command::Figure(command) => privacy::figure(&command),
        Command::Completions(options) => shell::completions(options, command_line()),
        Command::Manual(options) => shell::manual(options, command_line()),
    }
}
