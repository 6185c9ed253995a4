//! The commands: parse, call, print. Results go to standard output, everything else to standard error.

mod client;
mod compare;
mod data;
mod failure;
mod identity;
mod part;
mod price;
mod privacy;
mod round;
mod run;
mod runs;
mod server;
mod shell;
mod status;
mod student;
mod submit;
mod sweep;
mod teacher;
mod watch;

use std::io::Write;

use serde::Serialize;
use speed_experiment::{ConfigError, ExperimentError};

pub(crate) use failure::{Failure, kind, report};
use runs::ReportFormat;

use crate::options::Command;

pub(crate) fn execute(command: Command) -> Result<(), Failure> {
    match command {
        Command::Run(options) => run::run(&options),
        Command::List { results, json } => runs::list(&results, json),
        Command::Show { run, results, legend, json, html } => {
            let form = match (json, html) {
                (true, _) => ReportFormat::Json,
                (_, true) => ReportFormat::Page,
                _ => ReportFormat::Text { legend },
            };
            runs::show(&run, &results, &form)
        }
        Command::Submit(options) => submit::submit(&options),
        Command::Status(options) => status::status(&options),
        Command::Compare(options) => compare::compare(&options),
        Command::Watch { run, results, once, json } => watch::watch(&run, &results, once, json),
        Command::Data(command) => data::execute(command),
        Command::Student(command) => student::execute(command),
        Command::Teacher(command) => teacher::execute(command),
        Command::Server(command) => server::execute(command),
        Command::Round(options) => round::show(&options),
        Command::Account(options) => privacy::account(&options),
        Command::Calibrate(options) => privacy::calibrate(&options),
        Command::Audit(options) => privacy::audit(&options),
        Command::Ledger(command) => privacy::ledger(&command),
        Command::Figure(command) => privacy::figure(&command),
        Command::Completions { shell } => shell::completions(shell),
        Command::Manual { folder } => shell::manual(folder.as_deref()),
    }
}

/// Returns the failure for an invalid value of the command line.
fn usage(name: &str, message: String) -> Failure {
    ConfigError::Key { place: "command line".into(), key: format!("--{name}"), message }.into()
}

/// The line above the text of every simulated output.
const SIMULATION: &str = "SIMULATION: keys or noise come from a seed, no privacy\n";

/// The warning for a round without proofs.
const WITHOUT_PROOFS: &str =
    "without proofs: a teacher that sees the labels can read the secret key out of them (docs/threat-models.md)\n";

/// Returns the mark of a simulation, or an empty text.
fn mark(simulation: bool) -> &'static str {
    if simulation { SIMULATION } else { "" }
}

/// Version of the JSON output (docs/json.md). It changes if a field changes its meaning or is removed.
const SCHEMA: u32 = 1;

/// A value with the version of its format before it.
#[derive(Serialize)]
struct Versioned<'a, T> {
    schema: u32,
    #[serde(flatten)]
    value: &'a T,
}

/// Returns an object in one line, with the version of its format.
pub(crate) fn versioned_line(value: &serde_json::Value) -> String {
    // An object of texts and numbers can always be written as JSON.
    serde_json::to_string(&Versioned { schema: SCHEMA, value }).unwrap_or_default()
}

/// Writes a result to standard output.
fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| match error.kind() {
        std::io::ErrorKind::BrokenPipe => Failure::OutputClosed,
        _ => ExperimentError::Io { action: "write", path: "standard output".into(), source: error }.into(),
    })
}

/// Writes one of several results as JSON, in one line.
fn print_json_line(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string(&Versioned { schema: SCHEMA, value }).map_err(unwritten)?;
    print(&format!("{text}\n"))
}

/// Writes a result as JSON: an object of these fields and the version of its format.
fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(&Versioned { schema: SCHEMA, value }).map_err(unwritten)?;
    print(&format!("{text}\n"))
}

fn unwritten(error: serde_json::Error) -> Failure {
    ExperimentError::Io { action: "write", path: "standard output".into(), source: error.into() }.into()
}
