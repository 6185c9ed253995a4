//! `speed teacher keygen` and `speed teacher answer`

use serde_json::json;
use speed_aggregation::PrivacyNoise;
use speed_core::printable_path;
use speed_roles::teacher::{self, TeacherOptions};
use speed_roles::{Role, RolesError, RoundFile, RoundRandomness};

use super::price::Price;
use super::{Failure, WITHOUT_PROOFS, identity, mark, print, print_json};
use crate::options::{AnswerOptions, TeacherCommand};

pub(super) fn execute(command: TeacherCommand) -> Result<(), Failure> {
    match command {
        TeacherCommand::Keygen(options) => identity::generate(Role::Teacher, &options),
        TeacherCommand::Answer(options) => answer(options),
    }
}

fn answer(options: AnswerOptions) -> Result<(), Failure> {
    let mechanism = match (&options.mechanism, options.gamma) {
        (Some(name), Some(gamma)) => Some(PrivacyNoise::named(name, gamma).map_err(RolesError::from)?.mechanism()),
        _ => None,
    };
    let price = Price::of(&RoundFile::read(&options.round)?, None, options.price.delta)?;
    // A file that says of itself that it is a simulation has no price; the program holds it to that.
    price.check(&options.price, options.simulation.is_some())?;
    let report = teacher::answer(&TeacherOptions {
        signing_key: options.signing_key,
        public_key: options.public_key,
        proof_key: options.proof_key,
        round: options.round,
        votes: options.votes,
        out: options.out,
        query_list: options.query_list,
        mechanism,
        randomness: RoundRandomness::from_seed(options.simulation),
    })?;
    if options.json {
        let mut value = json!(report);
        value["price"] = json!(price);
        return print_json(&value);
    }
    let noise = report
        .noise
        .as_ref()
        .map_or("no noise of its own: the server adds it".to_owned(), |mechanism| format!("its share of {mechanism}"));
    print(&format!(
        "{}teacher {} answered {} queries of round {:?} with {noise}: {} ({} bytes)\n{}{}",
        mark(report.simulation),
        report.teacher,
        report.queries,
        report.name,
        printable_path(&report.out),
        report.bytes,
        if report.proven { "" } else { WITHOUT_PROOFS },
        price.to_text(),
    ))
}
