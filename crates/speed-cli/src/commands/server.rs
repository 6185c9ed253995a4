//! `speed server keygen` and `speed server aggregate`

use std::num::NonZeroUsize;

use speed_core::printable_path;
use speed_experiment::Progress as _;
use speed_roles::server::{self, Progress, Refusal, ServerOptions, ServerReport};
use speed_roles::{Role, RoundRandomness};

use super::{Failure, WITHOUT_PROOFS, identity, mark, print, print_json};
use crate::bar::{self, Bar};
use crate::options::{AggregateOptions, ServerCommand};

pub(super) fn execute(command: ServerCommand) -> Result<(), Failure> {
    match command {
        ServerCommand::Keygen(options) => identity::generate(Role::Server, &options),
        ServerCommand::Aggregate(options) => aggregate(options),
    }
}

struct Shown(Bar);

impl Progress for Shown {
    fn refused(&self, refusal: &Refusal) {
        bar::line(&refusal.to_string());
    }

    fn begin(&self, queries: usize, done: usize) {
        self.0.begin("argmax", "queries", queries as u64, done as u64);
    }

    fn advance(&self, queries: usize) {
        self.0.advance(queries as u64, "");
    }
}

fn aggregate(options: AggregateOptions) -> Result<(), Failure> {
    let threads = options.threads.map_or_else(
        || std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
        |threads| NonZeroUsize::new(threads.into()).unwrap_or(NonZeroUsize::MIN),
    );
    let shown = Shown(Bar::new());
    let report = server::aggregate(
        &ServerOptions {
            signing_key: options.signing_key,
            evaluation_key: options.evaluation_key,
            proof_key: options.proof_key,
            round: options.round,
            answers: options.answers,
            out: options.out,
            min_teachers: options.min_teachers,
            state: options.state,
            circuit: options.circuit,
            threads,
            randomness: RoundRandomness::from_seed(options.simulation),
        },
        &shown,
    )?;
    shown.0.end(&format!("{} queries answered", report.queries));
    if options.json { print_json(&report) } else { print(&text(&report)) }
}

fn text(report: &ServerReport) -> String {
    let mut text = format!(
        "{}round {:?}: {} of {} teachers counted, at least {} had to answer\n",
        mark(report.simulation),
        report.name,
        report.counted,
        report.teachers,
        report.minimum,
    );
    if !report.missing.is_empty() {
        let missing: Vec<String> = report.missing.iter().map(ToString::to_string).collect();
        text.push_str(&format!("missing: teachers {}\n", missing.join(", ")));
    }
    if !report.proven {
        text.push_str(WITHOUT_PROOFS);
    }
    text.push_str(&if report.noise_by_server {
        "honest ratio for the accountant: 1, against everyone but this server\n".to_owned()
    } else {
        format!("honest ratio for the accountant: at most {}\n", report.honest_ratio)
    });
    text.push_str(&format!("{} queries in {} ({} bytes)\n", report.queries, printable_path(&report.out), report.bytes));
    text
}
