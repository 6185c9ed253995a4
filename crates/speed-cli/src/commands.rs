//! The commands: parse, call, print. Results go to standard output, everything else to standard error.

mod card;
mod client;
mod compare;
mod data;
mod export;
mod forecast;
mod identity;
mod new_round;
mod part;
mod plan;
mod predict;
mod price;
mod privacy;
mod round;
mod round_noise;
mod run;
mod runs;
mod server;
mod shell;
mod show;
mod student;
mod submit;
mod sweep;
mod teacher;
mod threads;
mod training;
mod verify;

use threads::threads;

use crate::failure::{Failure, flag, usage};
use crate::options::Command;
use crate::output::{WITHOUT_PROOFS, influence, mark, print, print_report};
use crate::process;

pub(crate) fn execute(command: Command) -> Result<(), Failure> {
    if matches!(command, Command::Student(_) | Command::Teacher(_) | Command::Server(_)) {
        process::hide_memory();
    }
    match command {
        Command::Run(options) => run::run(&options),
        Command::List { results, json } => runs::list(&results, json),
        Command::Show(options) => show::show(&options),
        Command::Submit(options) => submit::submit(&options),
        Command::Compare(options) => compare::compare(&options),
        Command::Predict(options) => predict::predict(&options),
        Command::Export(options) => export::export(&options),
        Command::Verify(options) => verify::verify(&options),
        Command::Data(command) => data::execute(command),
        Command::Student(command) => student::execute(command),
        Command::Teacher(command) => teacher::execute(command),
        Command::Server(command) => server::execute(command),
        Command::Round(options) => round::show(&options),
        Command::Plan(options) => forecast::plan(&options),
        Command::Account(options) => privacy::account(&options),
        Command::Calibrate(options) => privacy::calibrate(&options),
        Command::Audit(options) => privacy::audit(&options),
        Command::Ledger(command) => privacy::ledger(&command),
        Command::Figure(command) => privacy::figure(&command),
        Command::Completions { shell } => shell::completions(shell),
        Command::Manual { folder } => shell::manual(folder.as_deref()),
    }
}
