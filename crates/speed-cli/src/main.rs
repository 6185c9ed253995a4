//! `speed`: private collaborative deep learning from the command line.

mod bar;
mod commands;
mod figure;
mod options;
mod processor;

use std::io::Write;

use clap::Parser;
use speed_core::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    if processor::lacks_basics() {
        let _ = std::io::stderr().write_all(processor::LACKS_BASICS);
        return ExitCode::Processor.into();
    }
    run()
}

// Not in `main`, which must end before any vector instruction.
#[inline(never)]
fn run() -> std::process::ExitCode {
    if let Err(message) = processor::check() {
        bar::line(&format!("error: {message}"));
        return ExitCode::Processor.into();
    }
    let command = options::CommandLine::parse().command;
    match commands::execute(command) {
        Ok(()) => ExitCode::Done.into(),
        Err(failure) => {
            failure.report();
            failure.exit_code().into()
        }
    }
}
