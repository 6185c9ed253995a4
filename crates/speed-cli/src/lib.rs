//! The command `speed`, for programs that have networks of their own: they give them names and call [`main_with`]
//! (examples/own-network).

mod bar;
mod commands;
mod figure;
mod options;
mod processor;
mod terminal;

use std::io::Write;

use clap::Parser;
use speed_core::ExitCode;

/// Does what the command line says, and returns the process's exit code.
#[must_use]
pub fn main() -> std::process::ExitCode {
    main_with(|| ())
}

/// Does the same after `prepare`, which gives networks their names, on a processor that the program was built for.
#[must_use]
pub fn main_with(prepare: impl FnOnce()) -> std::process::ExitCode {
    if processor::lacks_basics() {
        let _ = std::io::stderr().write_all(processor::LACKS_BASICS);
        return ExitCode::Processor.into();
    }
    run(prepare)
}

// Not in `main_with`, which must end before any vector instruction.
#[inline(never)]
fn run(prepare: impl FnOnce()) -> std::process::ExitCode {
    if let Err(message) = processor::check() {
        bar::line(&format!("error: {message}"));
        return ExitCode::Processor.into();
    }
    prepare();
    // Clap knows it only inside a command; a failure is told in the form that was asked for.
    let json = std::env::args_os().any(|argument| argument == "--json");
    let command = options::CommandLine::parse().command;
    match commands::execute(command) {
        Ok(()) => ExitCode::Done.into(),
        Err(failure) => {
            failure.report(json);
            failure.exit_code().into()
        }
    }
}
