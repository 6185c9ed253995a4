//! `speed teacher answer`

use speed_roles::{Mechanism, Simulation, teacher};

use super::{Failure, mark, print, print_json};
use crate::options::{AnswerOptions, TeacherCommand};

pub(super) fn execute(command: TeacherCommand) -> Result<(), Failure> {
    let TeacherCommand::Answer(options) = command;
    answer(options)
}

fn answer(options: AnswerOptions) -> Result<(), Failure> {
    let mechanism = match (&options.mechanism, options.gamma) {
        (Some(name), Some(gamma)) => Some(Mechanism::new(name, gamma)?),
        _ => None,
    };
    let report = teacher::answer(&teacher::Options {
        public_key: options.public_key,
        round: options.round,
        votes: options.votes,
        teacher: options.teacher,
        out: options.out,
        mechanism,
        simulation: options.simulation.map(Simulation::new),
    })?;
    if options.json {
        return print_json(&report);
    }
    let noise = report
        .noise
        .as_ref()
        .map_or("no noise of its own: the server adds it".to_owned(), |mechanism| format!("its share of {mechanism}"));
    print(&format!(
        "{}teacher {} answered {} queries of round {:?} with {noise}: {} ({} bytes)\n",
        mark(report.simulation),
        report.teacher,
        report.queries,
        report.name,
        report.out.display(),
        report.bytes,
    ))
}
