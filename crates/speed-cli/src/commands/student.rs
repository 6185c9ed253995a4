//! `speed student identity`, `keygen`, `queries`, `mix`, `round`, `fetch`, `open`, `train` and `plurality`

use std::path::Path;

use serde_json::json;
use speed_accountant::Delta;
use speed_aggregation::Parameters;
use speed_core::printable_path;
use speed_round::student::{self, KeygenReport};
use speed_round::{Role, RoundFile, RoundRandomness, bundle};

use super::price::RoundPrice;
use super::{Failure, client, identity, mark, new_round, print, print_json, training};
use crate::bar::Waiting;
use crate::options::StudentCommand;

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
        StudentCommand::Identity(options) => identity::generate(Role::Student, &options, 1),
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
    if json { print_json(report) } else { print(&keys(report)) }
}

fn key_sets(
    out: &Path,
    sets: u16,
    parameters: &Parameters,
    simulation: Option<u64>,
    json: bool,
) -> Result<(), Failure> {
    let reports = Waiting::during("keys", || bundle::keygen(out, usize::from(sets), parameters, simulation))?;
    if json { print_json(&json!({ "sets": reports })) } else { print(&reports.iter().map(keys).collect::<String>()) }
}

/// Returns the lines about a key set.
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
    if json {
        return print_json(&report);
    }
    print(&format!(
        "{} queries in {}, {} of them with known answers: the order is secret\n",
        report.queries,
        printable_path(&report.out),
        report.known
    ))
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
    RoundPrice::for_round(&file, Some(counted), delta).map(Some)
}

fn open(options: &student::OpenOptions, delta: Delta, json: bool) -> Result<(), Failure> {
    // Before the secret key is destroyed, so that a failure loses nothing.
    let price = price_of_result(options, delta)?;
    let report = student::open(options)?;
    let price = match price {
        Some(price) => price,
        None => RoundPrice::for_round(&RoundFile::read(&options.round)?, Some(report.counted), delta)?,
    };
    if json {
        let mut value = json!(report);
        value["price"] = json!(price);
        return print_json(&value);
    }
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
    if let Some(known) = report.known_answers {
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
    text.push_str(&price.to_text());
    print(&text)
}
