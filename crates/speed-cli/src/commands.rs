//! The commands: parse, call, print. Results go to standard output, everything else to standard error.

mod client;
mod compare;
mod data;
mod identity;
mod price;
mod privacy;
mod round;
mod run;
mod runs;
mod server;
mod student;
mod sweep;
mod teacher;

use std::io::Write;

use clap::CommandFactory;
use serde::Serialize;
use serde_json::json;
use speed_core::{ExitCode, printable};
use speed_experiment::{ConfigError, ExperimentError};

use crate::bar;
use crate::options::{Command, CommandLine};

/// The reason for which a command stopped.
#[derive(Debug)]
pub(crate) enum Failure {
    /// With a message and the exit code of its kind.
    Experiment(ExperimentError),
    /// A role's program, likewise.
    Roles(speed_roles::RolesError),
    /// A round over a network, likewise.
    Network(speed_network::NetworkError),
    /// The reader of standard output went away, as `| head` does: no failure of ours.
    OutputClosed,
}

impl Failure {
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Experiment(error) => error.exit_code(),
            Self::Roles(error) => error.exit_code(),
            Self::Network(error) => error.exit_code(),
            Self::OutputClosed => ExitCode::Done,
        }
    }

    /// Writes it to standard error: a line, or an object for a program.
    pub(crate) fn report(&self, json: bool) {
        let message = match self {
            Self::Experiment(error) => shown(error),
            Self::Roles(error) => shown(error),
            Self::Network(error) => shown(error),
            Self::OutputClosed => return,
        };
        if json {
            let error =
                json!({ "code": self.exit_code().code(), "meaning": self.exit_code().meaning(), "message": message });
            bar::line(&json!({ "schema": SCHEMA, "error": error }).to_string());
        } else {
            bar::line(&format!("error: {message}"));
        }
    }
}

/// Returns the text of an error without what would move a terminal's cursor, whoever chose it; lines stay lines.
fn shown(error: &impl std::fmt::Display) -> String {
    error.to_string().split('\n').map(printable).collect::<Vec<_>>().join("\n")
}

impl From<ExperimentError> for Failure {
    fn from(error: ExperimentError) -> Self {
        Self::Experiment(error)
    }
}

impl From<speed_roles::RolesError> for Failure {
    fn from(error: speed_roles::RolesError) -> Self {
        Self::Roles(error)
    }
}

impl From<speed_network::NetworkError> for Failure {
    fn from(error: speed_network::NetworkError) -> Self {
        Self::Network(error)
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self::Experiment(error.into())
    }
}

impl From<speed_data::DataError> for Failure {
    fn from(error: speed_data::DataError) -> Self {
        Self::Experiment(error.into())
    }
}

pub(crate) fn execute(command: Command) -> Result<(), Failure> {
    match command {
        Command::Run(options) => run::run(&options),
        Command::List { results, json } => runs::list(&results, json),
        Command::Show { run, results, legend, json } => runs::show(&run, &results, legend, json),
        Command::Compare(options) => compare::compare(&options),
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
        Command::Completions { shell } => completions(shell),
        Command::Manual => manual(),
    }
}

/// Prints a shell's completions of the command line.
fn completions(shell: clap_complete::Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut CommandLine::command(), "speed", &mut script);
    print(&String::from_utf8_lossy(&script))
}

/// Prints the manual page, with every command's options, for `man -l -`.
fn manual() -> Result<(), Failure> {
    let mut page = Vec::new();
    let rendered = clap_mangen::Man::new(CommandLine::command().flatten_help(true)).render(&mut page);
    rendered.map_err(|source| ExperimentError::Io { action: "write", path: "the manual".into(), source })?;
    print(&String::from_utf8_lossy(&page))
}

/// The version of the JSON that commands print.
const SCHEMA: u32 = 1;

/// A value of the command line that is refused.
fn usage(name: &str, message: String) -> Failure {
    ConfigError::Key { place: "command line".into(), key: format!("--{name}"), message }.into()
}

/// The line above the text of every simulated output.
const SIMULATION: &str = "SIMULATION: keys or noise come from a seed, no privacy\n";

/// What a round without proofs gives up.
const WITHOUT_PROOFS: &str =
    "without proofs: a teacher that sees the labels can read the secret key out of them (docs/threat-models.md)\n";

/// The mark of a simulation, or nothing.
fn mark(simulation: bool) -> &'static str {
    if simulation { SIMULATION } else { "" }
}

/// Writes a result to standard output.
fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| match error.kind() {
        std::io::ErrorKind::BrokenPipe => Failure::OutputClosed,
        _ => ExperimentError::Io { action: "write", path: "standard output".into(), source: error }.into(),
    })
}

/// Writes a result as a JSON object, the version of its form first (docs/json.md).
fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    #[derive(Serialize)]
    struct Versioned<'a, T> {
        schema: u32,
        #[serde(flatten)]
        value: &'a T,
    }
    let text = serde_json::to_string_pretty(&Versioned { schema: SCHEMA, value }).map_err(|error| {
        Failure::from(ExperimentError::Io { action: "write", path: "standard output".into(), source: error.into() })
    })?;
    print(&format!("{text}\n"))
}
