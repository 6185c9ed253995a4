//! The command `speed`: experiments, the three roles of a labelling round, and the privacy accountant.
//!
//! A program with its own networks registers them by name and calls [`main_with`] (examples/own-network).

mod arguments;
mod bar;
mod command_line;
mod commands;
mod failure;
mod options;
mod output;
mod process;
mod processor;
mod progress;
mod slurm;
mod terminal;

use std::io::Write;

use clap::{CommandFactory as _, Parser as _};
use speed_core::ExitCode;

/// Executes the command line and returns the process's exit code.
pub fn main() -> std::process::ExitCode {
    main_with(|| ())
}

/// Checks that the program was built for this processor, calls `prepare`, which registers networks by name, and
/// executes the command line.
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
    let json = asks_for_json(std::env::args_os().skip(1));
    if let Err(message) = processor::check() {
        output::report(ExitCode::Processor, &message, json);
        return ExitCode::Processor.into();
    }
    process::begin();
    prepare();
    let arguments = arguments::with_negative_numbers(std::env::args_os());
    let command = match command_line::CommandLine::try_parse_from(arguments) {
        Ok(line) => {
            bar::set_quiet(line.quiet);
            line.command
        }
        Err(error) if json && error.use_stderr() => {
            let text = error.to_string();
            output::report(ExitCode::Usage, text.trim().trim_start_matches("error: "), json);
            return ExitCode::Usage.into();
        }
        Err(error) => error.exit(),
    };
    match commands::execute(command, command_line::CommandLine::command) {
        Ok(()) => ExitCode::Done.into(),
        Err(failure) => {
            if let Some(message) = &failure.message {
                output::report(failure.code, message, json);
            }
            failure.code.into()
        }
    }
}

/// Returns whether a command line asks for JSON, even if the rest of it is invalid.
fn asks_for_json(arguments: impl Iterator<Item = std::ffi::OsString>) -> bool {
    let mut before = std::ffi::OsString::new();
    arguments.take_while(|argument| argument != "--").any(|argument| {
        let is_json = argument == "--json" || argument == "--format=json" || before == "--format" && argument == "json";
        before = argument;
        is_json
    })
}

/// The README's examples, compiled and run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
