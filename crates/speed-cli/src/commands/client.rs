//! Commands of the clients of a round's server.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use speed_core::printable_path;

use super::{Failure, print_report};
use crate::bar::Bar;

/// Options of a party that asks a server.
#[derive(Debug, Args)]
pub(crate) struct ClientOptions {
    /// This party's signing key
    #[arg(long, value_name = "FILE")]
    signing_key: PathBuf,
    /// The round's file, which contains the server's key
    #[arg(long, value_name = "FILE")]
    round: PathBuf,
    /// The server's address
    #[arg(long, value_name = "HOST:PORT")]
    server: String,
    /// How long to retry an unavailable, busy or unfinished server, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    patience: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn client(options: &ClientOptions) -> speed_round::network::ClientOptions {
    speed_round::network::ClientOptions {
        signing_key: options.signing_key.clone(),
        round: options.round.clone(),
        server: options.server.clone(),
        patience: Duration::from_secs(options.patience),
    }
}

pub(super) fn send(options: &ClientOptions, message: &Path, receipt: &Path) -> Result<(), Failure> {
    let report = Bar::during("sending", || speed_round::network::send(&client(options), message, receipt))?;
    print_report(options.json, &report, || {
        format!(
            "sent {} bytes, which the server stored; wrote the receipt to {}\n",
            report.bytes,
            printable_path(&report.receipt)
        )
    })
}

pub(super) fn fetch(options: &ClientOptions, out: &Path) -> Result<(), Failure> {
    fetched(options, Bar::during("waiting for the result", || speed_round::network::fetch(&client(options), out))?)
}

pub(super) fn log(options: &ClientOptions, out: &Path) -> Result<(), Failure> {
    fetched(options, speed_round::network::fetch_log(&client(options), out)?)
}

fn fetched(options: &ClientOptions, report: speed_round::network::FetchReport) -> Result<(), Failure> {
    print_report(options.json, &report, || format!("{} ({} bytes)\n", printable_path(&report.out), report.bytes))
}
