//! `speed teacher keygen`, `train`, `vote`, `answer`, `send`, `log`, `check` and `part`

use serde_json::json;
use speed_accountant::PriceLimit;
use speed_aggregation::PrivacyNoise;
use speed_core::printable_path;
use speed_round::opener::{self, ShareState};
use speed_round::teacher::{self, TeacherOptions};
use speed_round::{LogCheckOptions, Role, RoundFile, RoundPrice, RoundRandomness, check_log, default_registry};

use super::round::class_names;
use super::{Failure, WITHOUT_PROOFS, client, identity, mark, price, print_report, round_noise, training};
use crate::options::{AnswerOptions, OpenPartOptions, TeacherCommand};

pub(super) fn execute(command: TeacherCommand) -> Result<(), Failure> {
    match command {
        TeacherCommand::Keygen { identity: options, teachers } => identity::generate(Role::Teacher, &options, teachers),
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
    price::check(&price, options.price.limit, options.simulation.is_some())?;
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
        class_names(file),
        if report.proven { "" } else { WITHOUT_PROOFS },
        price.to_text(),
    )
}
