//! `speed server keygen`, `aggregate`, `serve`, `reveal` and `verify`

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Subcommand};
use speed_core::{Circuit, ExitCode, printable_path};
use speed_experiment::Progress as _;
use speed_round::network::{Limits, ServeProgress, ServeReport};
use speed_round::server::{self, Progress, Refusal, ServerOptions, ServerReport, VerifyReport};
use speed_round::{Role, RoundRandomness, default_registry};
use tracing_subscriber::EnvFilter;

use super::identity::IdentityOptions;
use super::{Failure, WITHOUT_PROOFS, identity, influence, mark, print_report, threads};
use crate::bar;
use crate::options::RecordOptions;
use crate::progress::{LogFormat, Reporter};

#[derive(Debug, Subcommand)]
pub(crate) enum ServerCommand {
    /// Generate the server's signing key, and its card for the student's roster
    Keygen(IdentityOptions),
    /// Sum the teachers' messages and compute the encrypted winners; resumes after an interruption
    Aggregate(Box<AggregateOptions>),
    /// Serve a round over a network: receive messages and send the result to the student; resumes after an interruption
    Serve(Box<ServeOptions>),
    /// Sign and write the seed of a result for a verifier, from which the verifier computes the same answers. It must
    /// stay secret from the student
    Reveal(RevealOptions),
    /// Compute sum and answers of a round again and compare them with the server's result: for a teacher, or for any
    /// other party except the student
    Verify(Box<ServerVerifyOptions>),
}

#[derive(Debug, Args)]
pub(crate) struct RevealOptions {
    /// The server's signing key
    #[arg(long, value_name = "FILE")]
    signing_key: PathBuf,
    /// The server's registry, which has the result [default: beside the signing key]
    #[arg(long, value_name = "FILE")]
    registry: Option<PathBuf>,
    /// The round's file
    #[arg(long, value_name = "FILE")]
    round: PathBuf,
    /// The revealed seed to write (mode 0600)
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ServerVerifyOptions {
    /// The student's evaluation.key
    #[arg(long, value_name = "FILE")]
    evaluation_key: PathBuf,
    /// The round's proof key, if the round requires proofs
    #[arg(long, value_name = "FILE")]
    proof_key: Option<PathBuf>,
    /// The round's file
    #[arg(long, value_name = "FILE")]
    round: PathBuf,
    /// The server's result
    #[arg(long, value_name = "FILE")]
    result: PathBuf,
    /// The round's log
    #[arg(long, value_name = "FILE")]
    log: PathBuf,
    /// The seed that the server revealed
    #[arg(long, value_name = "FILE")]
    seed: PathBuf,
    /// Folder with the counted messages, from the server's --copy-messages or from the teachers; other files are ignored
    #[arg(long, value_name = "DIR")]
    messages: PathBuf,
    /// Number of threads; the outcome does not depend on it [default: all processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// A teacher's signing key, which signs the verification
    #[arg(long, value_name = "FILE", requires = "out")]
    signing_key: Option<PathBuf>,
    /// The verification to write for the student, if the server did not lie
    #[arg(long, value_name = "FILE", requires = "signing_key")]
    out: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Options of a server of a round, whatever brings the messages.
#[derive(Debug, Args)]
pub(crate) struct ServerArguments {
    /// The server's signing key
    #[arg(long, value_name = "FILE")]
    signing_key: PathBuf,
    /// The student's evaluation.key
    #[arg(long, value_name = "FILE")]
    evaluation_key: PathBuf,
    /// The round's file
    #[arg(long, value_name = "FILE")]
    round: PathBuf,
    /// The round's proof key, if the round requires proofs
    #[arg(long, value_name = "FILE")]
    proof_key: Option<PathBuf>,
    /// Number of teachers that must answer, if more than the round requires
    #[arg(long, value_name = "M")]
    min_teachers: Option<usize>,
    #[command(flatten)]
    records: RecordOptions,
    /// Folder to which the counted messages are copied for verifiers (speed server verify), because the registry deletes
    /// them when the result exists
    #[arg(long, value_name = "DIR")]
    copy_messages: Option<PathBuf>,
    /// Number of threads; results do not depend on it [default: all processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Seed for all randomness, only in a simulation round
    #[arg(long, value_name = "SEED")]
    simulation: Option<u64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct AggregateOptions {
    #[command(flatten)]
    server: ServerArguments,
    /// Folder of the teachers' messages
    #[arg(long, value_name = "DIR")]
    answers: PathBuf,
    /// The result to write; the round's log gets the same name followed by .log
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct ServeOptions {
    #[command(flatten)]
    server: ServerArguments,
    /// Address for the round's parties; TLS rejects all others
    #[arg(long, value_name = "HOST:PORT")]
    listen: String,
    /// Address of /health and /metrics for monitoring, without TLS: do not expose it to the internet
    #[arg(long, value_name = "HOST:PORT")]
    watch: Option<String>,
    /// Address of a proxy in front of the server; its connections must begin with a header of the PROXY protocol, version 2,
    /// whose address counts as the client's, so only the proxy may be able to connect from it
    #[arg(long, value_name = "IP")]
    proxy: Option<IpAddr>,
    /// Minutes after the first start of this round's server until the sum closes if enough teachers have answered;
    /// without it, the server waits for all teachers
    #[arg(long, value_name = "MINUTES")]
    wait: Option<u32>,
    /// Exit after the student has fetched the result
    #[arg(long)]
    until_fetched: bool,
}

pub(super) fn execute(command: ServerCommand) -> Result<(), Failure> {
    match command {
        ServerCommand::Keygen(options) => identity::generate(Role::Server, &options, (1, None)),
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
        self.0.begin("argmax", "queries", queries as u64, done as u64);
    }

    fn advance(&self, queries: usize) {
        self.0.advance(queries as u64, "");
    }
}

fn aggregate(options: AggregateOptions) -> Result<(), Failure> {
    let (shown, json) = (RoundProgress(Reporter::new(LogFormat::Text)), options.server.json);
    let report = server::aggregate(&server_options(options.server), &options.answers, &options.out, &shown)?;
    shown.0.end(&format!("{} queries answered", report.queries));
    print_report(json, &report, || text(&report))
}

fn server_options(options: ServerArguments) -> ServerOptions {
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
    shown.0.end("computed again");
    print_report(options.json, &report, || verified(&report))?;
    // The report has the reasons.
    if report.honest { Ok(()) } else { Err(Failure::reported(ExitCode::Input)) }
}

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
