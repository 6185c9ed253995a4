//! `speed server keygen`, `aggregate`, `serve`, `reveal` and `verify`

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use speed_core::{Circuit, ExitCode, printable_path};
use speed_round::network::{Limits, ServeProgress, ServeReport};
use speed_round::server::{self, Progress, Refusal, ServerOptions, ServerReport, VerifyReport};
use speed_round::{Role, RoundRandomness, default_registry};
use tracing_subscriber::EnvFilter;

use super::{Failure, WITHOUT_PROOFS, identity, influence, mark, print_report, threads};
use crate::bar;
use crate::options::{
    AggregateOptions, LogFormat, RevealOptions, ServeOptions, ServerCommand, ServerOptions as CommandOptions,
    ServerVerifyOptions,
};
use crate::progress::Reporter;

pub(super) fn execute(command: ServerCommand) -> Result<(), Failure> {
    match command {
        ServerCommand::Keygen(options) => identity::generate(Role::Server, &options, 1),
        ServerCommand::Aggregate(options) => aggregate(*options),
        ServerCommand::Serve(options) => serve(*options),
        ServerCommand::Reveal(options) => reveal(&options),
        ServerCommand::Verify(options) => verify(*options),
    }
}

struct RoundProgress(Reporter);

impl Progress for RoundProgress {
    fn refused(&self, refusal: &Refusal) {
        bar::line(&refusal.to_string());
    }

    fn begin(&self, queries: usize, done: usize) {
        self.0.progress().begin("argmax", "queries", queries as u64, done as u64);
    }

    fn advance(&self, queries: usize) {
        self.0.progress().advance(queries as u64, "");
    }
}

fn aggregate(options: AggregateOptions) -> Result<(), Failure> {
    let (shown, json) = (RoundProgress(Reporter::new(LogFormat::Text)), options.server.json);
    let report = server::aggregate(&server_options(options.server), &options.answers, &options.out, &shown)?;
    shown.0.progress().end(&format!("{} queries answered", report.queries));
    print_report(json, &report, || text(&report))
}

fn server_options(options: CommandOptions) -> ServerOptions {
    ServerOptions {
        registry: options.records.registry(&options.signing_key),
        new_registry: options.records.new_registry,
        ledger: options.records.ledger(&options.signing_key),
        signing_key: options.signing_key,
        evaluation_key: options.evaluation_key,
        proof_key: options.proof_key,
        round: options.round,
        min_teachers: options.min_teachers,
        circuit: Circuit::Tournament,
        threads: threads(options.threads),
        randomness: RoundRandomness::from_seed(options.simulation),
        copies: options.copy_messages,
    }
}

fn reveal(options: &RevealOptions) -> Result<(), Failure> {
    let report = server::reveal(&server::RevealOptions {
        signing_key: options.signing_key.clone(),
        registry: options.registry.clone().unwrap_or_else(|| default_registry(&options.signing_key)),
        round: options.round.clone(),
        out: options.out.clone(),
    })?;
    print_report(options.json, &report, || {
        format!(
            "{}the seed of the result of round {:?} is in {}, for a verifier: never give it to the student\n",
            mark(report.simulation),
            report.name,
            printable_path(&report.out)
        )
    })
}

fn verify(options: ServerVerifyOptions) -> Result<(), Failure> {
    let shown = RoundProgress(Reporter::new(LogFormat::Text));
    let report = server::verify(
        &server::VerifyOptions {
            evaluation_key: options.evaluation_key,
            proof_key: options.proof_key,
            round: options.round,
            result: options.result,
            log: options.log,
            seed: options.seed,
            messages: options.messages,
            threads: threads(options.threads),
            sign: options.signing_key.zip(options.out),
        },
        &shown,
    )?;
    shown.0.progress().end("computed again");
    print_report(options.json, &report, || verified(&report))?;
    // The report has the reasons.
    if report.honest { Ok(()) } else { Err(Failure::reported(ExitCode::Input)) }
}

/// Returns the report of a verification as text.
fn verified(report: &VerifyReport) -> String {
    let mut text = format!(
        "{}round {:?}: {} of {} teachers counted, {} queries\n",
        mark(report.simulation),
        report.name,
        report.counted,
        report.teachers,
        report.queries
    );
    match &report.log_fault {
        Some(fault) => text.push_str(&format!("the server signed a false log: {fault}\n")),
        None if report.log_differs => {
            text.push_str("the server signed a log and a result that contradict each other\n");
        }
        None => {}
    }
    for refusal in &report.refused {
        text.push_str(&format!("the server counted a message that it had to refuse: {refusal}\n"));
    }
    if report.sum_differs {
        text.push_str("the sum that the server signed is not the sum of the counted messages\n");
    }
    if !report.answers_differ.is_empty() {
        let queries: Vec<String> = report.answers_differ.iter().map(ToString::to_string).collect();
        text.push_str(&format!(
            "{} of {} answers do not follow from the sum and the seed that the server signed: queries {}\n",
            queries.len(),
            report.queries,
            queries.join(", ")
        ));
    }
    text.push_str(if report.honest {
        "the server computed everything that it signed\n"
    } else {
        "THE SERVER LIED: the student must not open this result. Keep result, log, seed and messages, because together \
         they prove it. If a version or a machine of another kind made the result, repeat the verification there first\n"
    });
    if let Some(out) = &report.verification {
        text.push_str(&format!("the signed verification is in {}, for the student\n", printable_path(out)));
    }
    text
}

/// The server's output for operators: log lines, which systemd and containers record.
struct Logged;

impl Progress for Logged {
    fn refused(&self, refusal: &Refusal) {
        tracing::warn!(%refusal);
    }

    fn begin(&self, queries: usize, done: usize) {
        tracing::info!(queries, done, "argmax");
    }

    fn advance(&self, queries: usize) {
        tracing::info!(queries, "answered");
    }
}

impl ServeProgress for Logged {
    fn listens(&self, parties: SocketAddr, watchers: Option<SocketAddr>) {
        let watchers = watchers.map_or_else(|| "nowhere".to_owned(), |address| address.to_string());
        tracing::info!(%parties, watchers, "listening");
    }

    fn received(&self, count: usize, teachers: usize) {
        tracing::info!(teachers_received = count, teachers, "messages kept");
    }
}

fn serve(options: ServeOptions) -> Result<(), Failure> {
    let json = options.server.json;
    logging();
    let mut limits = Limits::default();
    limits.connections.proxy = options.proxy;
    let report = speed_round::network::serve(
        &speed_round::network::ServeOptions {
            server: server_options(options.server),
            listen: options.listen,
            watch: options.watch,
            wait: options.wait.map(|minutes| Duration::from_secs(60 * u64::from(minutes))),
            until_fetched: options.until_fetched,
            limits,
        },
        Arc::new(Logged),
    )?;
    print_report(json, &report, || served(&report))
}

/// Returns the report of a server that stopped as text.
fn served(report: &ServeReport) -> String {
    let state = match (report.done, report.fetched) {
        (_, true) => "the student has the result",
        (true, false) => "the result is ready; the student has not fetched it",
        (false, _) => "stopped before the result; repeat the command to resume",
    };
    let ServeReport { received, teachers, .. } = report;
    format!("{}messages of {received} of {teachers} teachers kept; {state}\n", mark(report.simulation))
}

/// Logs events to standard error, one JSON object a line. `SPEED_LOG` sets the level (`debug`, or
/// `speed_round=debug`).
fn logging() {
    let filter = EnvFilter::try_from_env("SPEED_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let _ = tracing_subscriber::fmt().json().with_env_filter(filter).with_writer(std::io::stderr).try_init();
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
    text.push_str(&influence(report.one_teacher));
    if !report.proven {
        text.push_str(WITHOUT_PROOFS);
    }
    text.push_str(&if report.noise_by_server {
        "honest ratio for the accountant: 1, for everyone but this server\n".to_owned()
    } else {
        format!("honest ratio for the accountant: at most {}\n", report.honest_ratio)
    });
    text.push_str(&format!("{} queries in {} ({} bytes)\n", report.queries, printable_path(&report.out), report.bytes));
    text
}
