//! `speed teacher keygen`, `train`, `vote`, `answer`, `send`, `log`, `check` and `part`

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::json;
use speed_accountant::PriceLimit;
use speed_aggregation::PrivacyNoise;
use speed_core::printable_path;
use speed_core::vote_files::VotesForm;
use speed_round::opener::{self, ShareState};
use speed_round::teacher::{self, TeacherOptions};
use speed_round::{LogCheckOptions, Role, RoundFile, RoundPrice, RoundRandomness, check_log, default_registry};

use super::client::ClientOptions;
use super::identity::IdentityOptions;
use super::round::class_names as names_of_classes;
use super::round_noise::AgreedNoiseOptions;
use super::training::{TeacherTrainOptions, TeacherVoteOptions};
use super::{Failure, WITHOUT_PROOFS, client, identity, mark, print_report, round_noise, training};
use crate::options::{ClassNames, PriceOptions, RecordOptions, class_names};

#[derive(Debug, Subcommand)]
pub(crate) enum TeacherCommand {
    /// Generate this teacher's signing key, and its card for the student's roster
    Keygen {
        #[command(flatten)]
        identity: IdentityOptions,
        /// Number of teachers of this party, which its card states: models trained on disjoint parts of its records
        #[arg(long, value_name = "N", default_value_t = 1)]
        teachers: u64,
        /// The names of the classes of this party's records, separated by commas, if its card shall state them: they are public, and show
        /// how many parties can vote for each class of a round
        #[arg(long, value_name = "NAMES", value_parser = class_names)]
        classes: Option<ClassNames>,
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
    signing_key: PathBuf,
    /// The opener's share of the secret key, from the student (speed student keygen --joint)
    #[arg(long, value_name = "FILE")]
    opener_share: PathBuf,
    /// The round's file
    #[arg(long, value_name = "FILE")]
    round: PathBuf,
    /// The server's result
    #[arg(long, value_name = "FILE")]
    result: PathBuf,
    /// This teacher's own verification of the result (speed server verify)
    #[arg(long, value_name = "FILE")]
    verification: PathBuf,
    /// Registry of this teacher's rounds, which prevents parts of two results [default: beside the signing key]
    #[arg(long, value_name = "FILE")]
    registry: Option<PathBuf>,
    /// Keep the share, which is otherwise destroyed after the part is written
    #[arg(long)]
    keep_share: bool,
    /// Make the part although this teacher answered another round of the same keys (student round --reuse-keys)
    #[arg(long)]
    reuse_keys: bool,
    /// The part to write, for the student
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct AnswerOptions {
    /// This teacher's signing key, which identifies the teacher in the round's file
    #[arg(long, value_name = "FILE")]
    signing_key: PathBuf,
    /// The student's public.key
    #[arg(long, value_name = "FILE")]
    public_key: PathBuf,
    /// The round's file
    #[arg(long, value_name = "FILE")]
    round: PathBuf,
    /// This teacher's votes, .npy or CSV: a label for each query, in order; `query,label` lines in any order, with query
    /// numbers or, with --query-list, names; or one-hot histograms, queries x classes. For several teachers: a folder with
    /// such a file for each, or one table: labels, teachers x queries, or counts, queries x classes. A teacher that does not
    /// know a label leaves its vote empty: -1, NA or an empty cell
    #[arg(long, value_name = "FILE")]
    votes: PathBuf,
    /// Form of the votes, if the file is ambiguous: labels or histograms
    #[arg(long, value_name = "FORM")]
    form: Option<VotesForm>,
    /// The round's proof key, if the round requires proofs
    #[arg(long, value_name = "FILE")]
    proof_key: Option<PathBuf>,
    /// The list of queries that this teacher voted on, whose names the votes may use; a round with another list, or
    /// without one, is refused
    #[arg(long, value_name = "FILE")]
    query_list: Option<PathBuf>,
    #[command(flatten)]
    mechanism: AgreedNoiseOptions,
    #[command(flatten)]
    records: RecordOptions,
    #[command(flatten)]
    price: PriceOptions,
    /// Answer although this teacher answered another round of the same keys (student round --reuse-keys): a student
    /// that was corrupted in between could read this teacher's votes of the first round
    #[arg(long)]
    reuse_keys: bool,
    /// Seed for noise and encryption, only in a simulation round
    #[arg(long, value_name = "SEED")]
    simulation: Option<u64>,
    /// The message to write; the file name is arbitrary
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn execute(command: TeacherCommand) -> Result<(), Failure> {
    match command {
        TeacherCommand::Keygen { identity: options, teachers, classes } => {
            let classes = classes.as_ref().map(|classes| classes.0.as_slice());
            identity::generate(Role::Teacher, &options, (teachers, classes))
        }
        TeacherCommand::Train(options) => training::train_teachers(*options),
        TeacherCommand::Vote(options) => training::vote(options),
        TeacherCommand::Answer(options) => answer(*options),
        TeacherCommand::Send { client, message, receipt } => client::send(&client, &message, &receipt),
        TeacherCommand::Log { client, out } => client::log(&client, &out),
        TeacherCommand::Check { round, message, receipt, log, verification, json } => {
            check(&LogCheckOptions { round, message, receipt, log, verification }, json)
        }
        TeacherCommand::Part(options) => open_part(options),
    }
}

fn check(options: &LogCheckOptions, json: bool) -> Result<(), Failure> {
    let report = check_log(options)?;
    print_report(json, &report, || {
        let became = match (report.closed, report.received) {
            (true, _) => format!("is in the sum of {} messages", report.teachers_counted),
            (false, true) => "was received, and the sum is open".to_owned(),
            (false, false) => "has not arrived over the network, and the sum is open".to_owned(),
        };
        let log = format!("according to the server's signed log of {} entries", report.entries);
        format!("the message of teacher {} {became}, {log}\n", report.teacher)
    })
}

fn open_part(options: OpenPartOptions) -> Result<(), Failure> {
    let share = printable_path(&options.opener_share);
    let report = opener::part(&opener::OpenerOptions {
        registry: options.registry.unwrap_or_else(|| default_registry(&options.signing_key)),
        signing_key: options.signing_key,
        share: options.opener_share,
        round: options.round,
        result: options.result,
        verification: options.verification,
        keep_share: options.keep_share,
        reuse_keys: options.reuse_keys,
        out: options.out,
    })?;
    print_report(options.json, &report, || part_text(&report, &share))
}

fn part_text(report: &opener::OpenerReport, share: &str) -> String {
    let repeated =
        if report.repeated { "the part of this result was made before: the same part is written again\n" } else { "" };
    let share = match report.share {
        ShareState::Destroyed => "the share was destroyed".to_owned(),
        ShareState::Missing => format!("there is no share at {share}: destroy every copy of it"),
        _ => "the share was not destroyed: destroy it when the last round of its key is open".to_owned(),
    };
    format!(
        "{}{repeated}teacher {} opens {} queries of round {:?} with the student: {} ({} bytes)\n{share}\n",
        mark(report.simulation),
        report.opener,
        report.queries,
        report.name,
        printable_path(&report.out),
        report.bytes,
    )
}

fn answer(options: AnswerOptions) -> Result<(), Failure> {
    let file = RoundFile::read(&options.round)?;
    let agreed = round_noise::agreed(&options.mechanism, file.roster().teacher_count())?;
    let price = RoundPrice::for_round(&file, None, options.price.delta)?;
    // A file that declares a simulation has no price. The program enforces the declaration.
    options.price.limit.check(&price, options.simulation.is_some())?;
    let report = teacher::answer(&TeacherOptions {
        registry: options.records.registry(&options.signing_key),
        new_registry: options.records.new_registry,
        ledger: options.records.ledger(&options.signing_key),
        signing_key: options.signing_key,
        public_key: options.public_key,
        proof_key: options.proof_key,
        round: options.round,
        votes: options.votes,
        form: options.form,
        out: options.out,
        query_list: options.query_list,
        mechanism: agreed.map(PrivacyNoise::mechanism),
        // Checked above: with wide noise an account takes long.
        limit: PriceLimit::UNLIMITED,
        reuse_keys: options.reuse_keys,
        randomness: RoundRandomness::from_seed(options.simulation),
    })?;
    let mut value = json!(report);
    value["price"] = json!(price);
    value["class_names"] = json!(file.classes().all_names());
    print_report(options.json, &value, || answer_text(&report, &file, &price))
}

fn answer_text(report: &teacher::TeacherReport, file: &RoundFile, price: &RoundPrice) -> String {
    let noise = report.noise.as_ref().map_or("no noise of its own: the server adds it".to_owned(), |mechanism| {
        match report.teachers {
            1 => format!("its share of {mechanism}"),
            teachers => format!("the votes and the shares of {mechanism} of its {teachers} teachers"),
        }
    });
    let repeated =
        if report.repeated { "this round was answered before: the same message is written again\n" } else { "" };
    format!(
        "{}{repeated}teacher {} answered {} queries of round {:?} with {noise}: {} ({} bytes)\nclasses in the order of their numbers: {}\n{}{}",
        mark(report.simulation),
        report.teacher,
        report.queries,
        report.name,
        printable_path(&report.out),
        report.bytes,
        names_of_classes(file),
        if report.proven { "" } else { WITHOUT_PROOFS },
        price.to_text(),
    )
}
