//! `speed`: private collaborative deep learning from the command line.

mod bar;
mod commands;
mod options;
mod processor;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Exit code of a binary that was built for another processor.
const OTHER_PROCESSOR: u8 = speed_core::ExitCode::Processor.code();

fn main() -> ExitCode {
    if processor::lacks_basics() {
        let _ = std::io::stderr().write_all(processor::LACKS_BASICS);
        return ExitCode::from(OTHER_PROCESSOR);
    }
    run()
}

// Not in `main`, which must end before any vector instruction.
#[inline(never)]
fn run() -> ExitCode {
    if let Err(message) = processor::check() {
        bar::line(&format!("error: {message}"));
        return ExitCode::from(OTHER_PROCESSOR);
    }
    let command = options::CommandLine::parse().command;
    match commands::execute(command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.report();
            ExitCode::from(failure.exit_code())
        }
    }
}
