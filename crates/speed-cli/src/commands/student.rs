//! `speed student identity`, `keygen`, `queries`, `mix`, `round`, `fetch`, `open`, `train` and `plurality`

use std::path::{Path, PathBuf};

use clap::Subcommand;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde_json::json;
use speed_accountant::Delta;
use speed_aggregation::Parameters;
use speed_core::printable_path;
use speed_round::bundle::MAX_KEY_SETS;
use speed_round::student::{self, KeygenReport};
use speed_round::{Role, RoundFile, RoundPrice, RoundRandomness, bundle};

use super::client::ClientOptions;
use super::identity::IdentityOptions;
use super::new_round::RoundOptions;
use super::training::{PluralityOptions, StudentQueriesOptions, StudentTrainOptions};
use super::{Failure, client, identity, mark, new_round, print_report, training};
use crate::bar::Bar;
use crate::options::delta;

/// A choice of parameter set by the range of noisy counts.
fn key_range() -> impl TypedValueParser<Value = Parameters> {
    PossibleValuesParser::new(["narrow", "wide"])
        .map(|range| if range == "wide" { Parameters::WIDE_128 } else { Parameters::TOURNAMENT_128 })
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

pub(super) fn execute(command: StudentCommand) -> Result<(), Failure> {
    match command {
        StudentCommand::Keygen { out, sets, joint, range, simulation, json } => {
            let randomness = RoundRandomness::from_seed(simulation);
            match sets {
                Some(sets) => key_sets(&out, sets, &range, simulation, json),
                None if joint => print_keys(&student::keygen_joint(&out, &range, randomness)?, json),
                None => print_keys(&student::keygen(&out, &range, randomness)?, json),
            }
        }
        StudentCommand::Identity(options) => identity::generate(Role::Student, &options, (1, None)),
        StudentCommand::Queries(options) => training::queries(options),
        StudentCommand::Train(options) => training::train_student(*options),
        StudentCommand::Plurality(options) => training::plurality(options),
        StudentCommand::Round(options) => new_round::create(&options),
        StudentCommand::Fetch { client, out } => client::fetch(&client, &out),
        StudentCommand::Mix { query_list, known, out, json } => {
            mix(&student::MixOptions { query_list, known, out }, json)
        }
        StudentCommand::Open {
            secret_key,
            part,
            result,
            round,
            verification: verifications,
            known,
            known_wrong: wrong,
            query_list,
            unverified,
            keep_keys,
            delta,
            out,
            json,
        } => {
            let known = known.map(|answers| student::KnownOptions { answers, query_list, wrong });
            let options = student::OpenOptions {
                secret_key,
                part,
                result,
                round,
                verifications,
                unverified,
                known,
                keep_keys,
                out,
            };
            open(&options, delta, json)
        }
    }
}

fn print_keys(report: &KeygenReport, json: bool) -> Result<(), Failure> {
    print_report(json, report, || keys(report))
}

fn key_sets(
    out: &Path,
    sets: u16,
    parameters: &Parameters,
    simulation: Option<u64>,
    json: bool,
) -> Result<(), Failure> {
    let reports = Bar::during("keys", || bundle::keygen(out, usize::from(sets), parameters, simulation))?;
    print_report(json, &json!({ "sets": reports }), || reports.iter().map(keys).collect::<String>())
}

fn keys(report: &KeygenReport) -> String {
    let mut text = format!("{}key {} ({})\n", mark(report.simulation), report.key, report.parameters);
    let [student, teachers, server] = ["stays with the student", "goes to every teacher", "goes to the server"];
    let opener = "goes to the opener over a confidential channel: then destroy it here, with every copy";
    let is_joint = report.files.len() == student::JOINT_KEY_FILES.len();
    let destinations = if is_joint { vec![student, opener, teachers, server] } else { vec![student, teachers, server] };
    for ((path, bytes), destination) in report.files.iter().zip(destinations) {
        text.push_str(&format!("{} ({bytes} bytes) {destination}\n", printable_path(path)));
    }
    text
}

fn mix(options: &student::MixOptions, json: bool) -> Result<(), Failure> {
    let report = student::mix(options)?;
    print_report(json, &report, || {
        format!(
            "{} queries in {}, {} of them with known answers: the order is secret\n",
            report.queries,
            printable_path(&report.out),
            report.known
        )
    })
}

/// Returns the line about the teachers that verified a result.
fn verified(teachers: &[usize]) -> String {
    if teachers.is_empty() {
        return "verified by no teacher: only the server's signature vouches for the answers\n".to_owned();
    }
    let teachers: Vec<String> = teachers.iter().map(ToString::to_string).collect();
    format!("verified by teacher {}, which computed the answers again\n", teachers.join(" and teacher "))
}

/// Returns the number of parties in words, if some have several teachers.
fn of_parties(teachers: usize, parties: usize) -> String {
    if teachers == parties { String::new() } else { format!(" of {parties} parties") }
}

/// Returns the price of the round for the teachers that the result counts; `None` if round or result cannot be read, whose
/// fault [`student::open`] names.
fn price_of_result(options: &student::OpenOptions, delta: Delta) -> Result<Option<RoundPrice>, Failure> {
    let Ok(file) = RoundFile::read(&options.round) else { return Ok(None) };
    let Ok(result) = student::read_result(&options.result, &file) else { return Ok(None) };
    let counted = file.round().teachers_counted(result.list().statuses());
    Ok(Some(RoundPrice::for_round(&file, Some(counted), delta)?))
}

fn open(options: &student::OpenOptions, delta: Delta, json: bool) -> Result<(), Failure> {
    // Before the secret key is destroyed, so that a failure loses nothing.
    let price = price_of_result(options, delta)?;
    let report = student::open(options)?;
    let price = match price {
        Some(price) => price,
        None => RoundPrice::for_round(&RoundFile::read(&options.round)?, Some(report.counted), delta)?,
    };
    let mut value = json!(report);
    value["price"] = json!(price);
    print_report(json, &value, || opened(&report, &price))
}

fn opened(report: &student::OpenReport, price: &RoundPrice) -> String {
    let mut text = format!(
        "{}{} of {} queries labelled in {}\n{} of {} teachers{} counted\n",
        mark(report.simulation),
        report.labelled,
        report.queries,
        printable_path(&report.out),
        report.counted,
        report.teachers,
        of_parties(report.teachers, report.parties),
    );
    text.push_str(&match (report.key_destroyed, report.other_rounds) {
        (true, _) if report.opener.is_some() => "the student's share of the secret key was destroyed\n".to_owned(),
        (true, _) => "the secret key was destroyed\n".to_owned(),
        (false, None) => {
            "the secret key was not destroyed: public.rounds, the list of its rounds, is not beside it or lacks this round. Destroy the key when no round needs it\n".to_owned()
        }
        (false, Some(0)) => {
            "the secret key was not destroyed: anyone who obtains it can read this round's messages. Destroy it when the round is over\n".to_owned()
        }
        (false, Some(others)) => format!(
            "the secret key was not destroyed: {others} other round{} it. Anyone who obtains it can read the messages of all these rounds; destroy it when they are over\n",
            if others == 1 { " has" } else { "s have" }
        ),
    });
    text.push_str(&verified(&report.verified_by));
    if let Some(opener) = report.opener {
        text.push_str(&format!("opened together with teacher {opener}\n"));
    }
    if let Some(known) = &report.known_answers {
        let (wrong, known, allowed) = (known.wrong, known.known, known.allowed);
        text.push_str(&format!("{wrong} of {known} known answers are wrong, at most {allowed} may be\n"));
    }
    for (teacher, why) in &report.excluded {
        text.push_str(&format!("teacher {teacher} not counted: {why}\n"));
    }
    text.push_str(&if report.noise_by_server {
        "honest ratio for the accountant: 1, for everyone but the server, which knows the noise\n".to_owned()
    } else {
        format!(
            "honest ratio for the accountant: {}, minus 1/{} for each counted teacher whose noise may not be secret\n",
            report.honest_ratio, report.teachers
        )
    });
    text + &price.to_text()
}
