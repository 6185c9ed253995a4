//! Commands of the clients of a round's server.

use std::path::Path;
use std::time::Duration;

use speed_core::printable_path;

use super::{Failure, print, print_json};
use crate::bar::Waiting;
use crate::options::ClientOptions;

fn client(options: &ClientOptions) -> speed_round::network::ClientOptions {
    speed_round::network::ClientOptions {
        signing_key: options.signing_key.clone(),
        round: options.round.clone(),
        server: options.server.clone(),
        patience: Duration::from_secs(options.patience),
    }
}

pub(super) fn send(options: &ClientOptions, message: &Path, receipt: &Path) -> Result<(), Failure> {
    let report = Waiting::during("sending", || speed_round::network::send(&client(options), message, receipt))?;
    if options.json {
        return print_json(&report);
    }
    print(&format!(
        "sent {} bytes, which the server stored; wrote the receipt to {}\n",
        report.bytes,
        printable_path(&report.receipt)
    ))
}

pub(super) fn fetch(options: &ClientOptions, out: &Path) -> Result<(), Failure> {
    fetched(options, Waiting::during("waiting for the result", || speed_round::network::fetch(&client(options), out))?)
}

pub(super) fn log(options: &ClientOptions, out: &Path) -> Result<(), Failure> {
    fetched(options, speed_round::network::fetch_log(&client(options), out)?)
}

fn fetched(options: &ClientOptions, report: speed_round::network::FetchReport) -> Result<(), Failure> {
    if options.json {
        return print_json(&report);
    }
    print(&format!("{} ({} bytes)\n", printable_path(&report.out), report.bytes))
}
