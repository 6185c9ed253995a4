//! `speed student identity`, `keygen`, `queries`, `mix`, `round`, `fetch`, `open`, `train` and `plurality`

use std::path::{Path, PathBuf};

use serde_json::json;
use speed_accountant::forecast::{Agreement, AgreementForecast, Forecast};
use speed_accountant::{AccountError, Delta, HonestRatio, PrivacyEvent};
use speed_aggregation::Parameters;
use speed_core::{RandomnessKind, printable_path};
use speed_roles::{Influence, Role, RolesError, Roster, RoundFile, RoundRandomness, Terms, hash_query_list, student};

use super::price::RoundPrice;
use super::{
    Failure, WITHOUT_PROOFS, client, flag, identity, influence, mark, print, print_json, round_noise, training, usage,
};
use crate::bar::Waiting;
use crate::options::{RoundOptions, StudentCommand};

pub(super) fn execute(command: StudentCommand) -> Result<(), Failure> {
    match command {
        StudentCommand::Keygen { out, range, joint, simulation, json } => {
            keygen(&out, &range, joint, RoundRandomness::from_seed(simulation), json)
        }
        StudentCommand::Identity(options) => identity::generate(Role::Student, &options, 1),
        StudentCommand::Queries(options) => training::queries(options),
        StudentCommand::Train(options) => training::train_student(*options),
        StudentCommand::Plurality(options) => training::plurality(options),
        StudentCommand::Round(options) => round(&options),
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

fn keygen(
    out: &Path,
    parameters: &Parameters,
    joint: bool,
    randomness: RoundRandomness,
    json: bool,
) -> Result<(), Failure> {
    let report = if joint {
        student::keygen_joint(out, parameters, randomness)?
    } else {
        student::keygen(out, parameters, randomness)?
    };
    if json {
        return print_json(&report);
    }
    let mut text = format!("{}key {} ({})\n", mark(report.simulation), report.key, report.parameters);
    let [student, teachers, server] = ["stays with the student", "goes to every teacher", "goes to the server"];
    let opener = "goes to the opener over a confidential channel: then destroy it here, with every copy";
    let destinations = if joint { vec![student, opener, teachers, server] } else { vec![student, teachers, server] };
    for ((path, bytes), destination) in report.files.iter().zip(destinations) {
        text.push_str(&format!("{} ({bytes} bytes) {destination}\n", printable_path(path)));
    }
    print(&text)
}

fn round(options: &RoundOptions) -> Result<(), Failure> {
    let terms = terms(options)?;
    let price =
        RoundPrice::for_round(&student::terms(&terms, &options.public_key, &options.out)?, None, options.price.delta)?;
    price.check(&options.price, options.simulation)?;
    let unanimous = unanimous(&terms)?;
    if unanimous.loses_unanimity() && !options.accept_wrong_labels && !options.simulation {
        return Err(wrong_labels(&terms, &unanimous));
    }
    let forecast = options.agreement.map(|agreement| forecast(&terms, agreement)).transpose()?;
    let proof_key = options.proofs.then(|| proof_key(options));
    let round = student::RoundOptions {
        public_key: options.public_key.clone(),
        proof_key: proof_key.clone(),
        reuse_keys: options.reuse_keys,
        out: options.out.clone(),
        // A simulation hides nothing, and the seed makes its rounds reproducible.
        randomness: RoundRandomness::from_seed(options.simulation.then_some(0)),
    };
    let file = if options.proofs {
        Waiting::during("proof key", || student::round(&terms, &round))?
    } else {
        student::round(&terms, &round)?
    };
    if options.json {
        return print_json(&json!({
            "round": file.id().to_hex(), "name": file.name(), "key": file.key().to_hex(),
            "simulation": options.simulation, "noise": file.noise().mechanism().identifier(),
            "noise_bound": file.round().range().noise_bound(), "one_teacher": Influence::of(&file), "price": price,
            "teachers": file.round().shape().teachers(), "parties": file.round().parties(),
            "opener": file.opener().map(|(_, party)| party.name()),
            "proof_key": proof_key, "out": options.out,
            "unanimous": unanimous, "forecast": forecast,
        }));
    }
    let (mark, id) = (mark(options.simulation), file.id().to_hex());
    let proofs = match &proof_key {
        Some(path) => {
            format!(
                "proof key in {}, for teachers and server\n{}",
                printable_path(path),
                influence(Influence::of(&file))
            )
        }
        None => WITHOUT_PROOFS.to_owned(),
    };
    let forecast = forecast.map_or_else(String::new, |forecast| format!("{forecast}\n"));
    print(&format!(
        "{mark}round {id} in {}\n{proofs}forecast of a unanimous vote: {unanimous}\n{}{forecast}",
        printable_path(&options.out),
        price.to_text()
    ))
}

/// Returns the noise of a query of a round in which all teachers answer.
fn whole_event(terms: &Terms) -> Result<PrivacyEvent, AccountError> {
    let event = PrivacyEvent::new(terms.noise.mechanism(), HonestRatio::ALL);
    #[expect(clippy::cast_precision_loss, reason = "the event refuses inexact values")]
    terms.threshold.map_or(Ok(event), |votes| event.with_threshold(votes as f64))
}

/// Forecasts the labels of a round in which all teachers answer.
fn forecast(terms: &Terms, agreement: Agreement) -> Result<AgreementForecast, Failure> {
    let teachers = terms.roster.teacher_count();
    let forecast = whole_event(terms)
        .and_then(|event| AgreementForecast::new(&event, (agreement, terms.classes), teachers, terms.queries));
    forecast.map_err(|error| flag("agreement", &error))
}

/// Forecasts the labels of a round in which all teachers answer and agree.
fn unanimous(terms: &Terms) -> Result<Forecast, Failure> {
    let teachers = terms.roster.teacher_count();
    let forecast =
        whole_event(terms).and_then(|event| Forecast::unanimous(&event, terms.classes, teachers, terms.queries));
    forecast.map_err(|error| flag("queries", &error))
}

/// Returns the refusal of a round whose noise outweighs all votes.
fn wrong_labels(terms: &Terms, unanimous: &Forecast) -> Failure {
    let teachers = terms.roster.teacher_count();
    usage(
        "accept-wrong-labels",
        format!(
            "the noise is too wide for {teachers} teachers: even a unanimous vote gives only {unanimous}; use less noise, or more teachers \
             (`speed teacher keygen --teachers`); if that is meant, allow it with --accept-wrong-labels"
        ),
    )
}

/// Returns the path of the proof key.
fn proof_key(options: &RoundOptions) -> PathBuf {
    options.proof_key.clone().unwrap_or_else(|| options.out.with_file_name("proof.key"))
}

/// Returns the path of the evaluation key.
fn evaluation_key(options: &RoundOptions) -> PathBuf {
    options.evaluation_key.clone().unwrap_or_else(|| options.public_key.with_file_name("evaluation.key"))
}

/// Returns the terms from the options.
fn terms(options: &RoundOptions) -> Result<Terms, Failure> {
    let roster = Roster::read(&options.roster)?;
    if let Some(parties) = options.parties {
        let expected = roster.expect(parties, options.teachers.unwrap_or(parties));
        expected.map_err(|error| RolesError::input(&options.roster)(error))?;
    }
    let noise = round_noise::of_round(&options.mechanism, roster.teacher_count(), options.threshold.is_some())?;
    Ok(Terms {
        name: options.name.clone(),
        query_list: options.query_list.as_deref().map(|list| hash_query_list(list, options.queries)).transpose()?,
        min_teachers: options.min_teachers.unwrap_or(roster.teacher_count()),
        roster,
        queries: options.queries,
        classes: options.classes,
        noise,
        placement: options.noise,
        threshold: options.threshold,
        proofs: None,
        evaluation_key: Some(student::evaluation_key_digest(&evaluation_key(options), &options.public_key)?),
        opener: options.opener.clone(),
        randomness: if options.simulation { RandomnessKind::Simulation } else { RandomnessKind::OperatingSystem },
    })
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

fn open(options: &student::OpenOptions, delta: Delta, json: bool) -> Result<(), Failure> {
    let report = student::open(options)?;
    let price = RoundPrice::for_round(&RoundFile::read(&options.round)?, Some(report.counted), delta)?;
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
