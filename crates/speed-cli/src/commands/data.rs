//! `speed data check`, `fetch` and `example`

use std::path::{Path, PathBuf};

use clap::Subcommand;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use speed_core::{ExitCode, printable_path};
use speed_data::{CheckReport, FetchEvent, FetchProgress, check as check_files, fetch as fetch_files, locate};
use speed_experiment::ExperimentError;
use speed_experiment::report::Table;
use speed_experiment::training::{
    ExampleOptions, ORGANISATIONS, OWN_IMAGES, PUBLIC_IMAGES, TEST_IMAGES, write_example,
};

use super::{Failure, print, print_report};
use crate::bar;
use crate::options::MAX_SEED;
use crate::terminal;

#[derive(Debug, Subcommand)]
pub(crate) enum DataCommand {
    /// Check the files of a dataset: presence, checksums, headers
    Check {
        /// Name of the dataset: mnist, fashion-mnist, kmnist, emnist-digits, emnist-letters, emnist-balanced, svhn or cifar-10
        name: String,
        /// Folder of datasets [default: SPEED_DATASETS, or ./datasets if it is not set]
        #[arg(long, value_name = "DIR")]
        datasets: Option<PathBuf>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Download a dataset and check it; an interrupted download resumes
    Fetch {
        /// Name of the dataset: mnist, fashion-mnist, kmnist, emnist-digits, emnist-letters, emnist-balanced, svhn or cifar-10
        name: String,
        /// Folder of datasets; the files go into a subfolder with the dataset's name
        #[arg(long, value_name = "DIR", default_value = "datasets")]
        datasets: PathBuf,
        /// Base address to download from instead of the known mirrors; may be given several times
        #[arg(long, value_name = "URL")]
        mirror: Vec<String>,
    },
    /// Write example pictures for a first model (docs/first-model.md)
    ///
    /// Built-in digits, 24 x 24: 600 labelled pictures for each of three organisations, 400 public pictures without labels
    /// and 1000 test pictures.
    Example {
        /// The new folder
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
        /// Seed of the digits
        #[arg(long, value_name = "SEED", default_value_t = 1, value_parser = clap::value_parser!(u64).range(..=MAX_SEED))]
        seed: u64,
        /// Unequal organisations: divide each class among them by a Dirichlet distribution with this parameter, from 0.01 to
        /// 1000. With 0.2 most classes are in one of them [default: the same mixture in all]
        #[arg(long, value_name = "ALPHA")]
        skew: Option<f64>,
        /// Two classes, negative and positive, with this share of positive pictures everywhere: above 0, at most 0.5
        /// [default: ten digits]
        #[arg(long, value_name = "SHARE")]
        rare: Option<f64>,
    },
}

pub(super) fn execute(command: DataCommand) -> Result<(), Failure> {
    match command {
        DataCommand::Check { name, datasets, json } => check(&name, datasets.as_deref(), json),
        DataCommand::Example { out, seed, skew, rare } => example(&out, ExampleOptions { seed, skew, rare }),
        DataCommand::Fetch { name, datasets, mirror } => fetch(&name, &datasets, &mirror),
    }
}

fn example(out: &Path, options: ExampleOptions) -> Result<(), Failure> {
    let report = write_example(out, options)?;
    let own = if options.skew.is_none() {
        format!("{OWN_IMAGES} labelled pictures each in {}", ORGANISATIONS.join(", "))
    } else {
        let counts = ORGANISATIONS.iter().zip(report.images).zip(report.classes);
        let of = |((name, images), classes)| format!("{images} labelled pictures of {classes} classes in {name}");
        counts.map(of).collect::<Vec<_>>().join(", ")
    };
    print(&format!(
        "wrote {own}, {PUBLIC_IMAGES} pictures in public, and {TEST_IMAGES} labelled pictures in test: {}\n",
        printable_path(out)
    ))
}

fn check(name: &str, datasets: Option<&Path>, json: bool) -> Result<(), Failure> {
    let folder = locate(name, datasets)?;
    let report = check_files(name, &folder)?;
    print_report(json, &check_json(&report), || check_text(&report))?;
    let faults = report.files.into_iter().filter_map(|file| file.outcome.err()).map(|fault| fault.to_string());
    let faults = faults.collect::<Vec<_>>().join("\n       ");
    if faults.is_empty() { Ok(()) } else { Err(ExperimentError::new(ExitCode::Input, faults).into()) }
}

fn check_text(report: &CheckReport) -> String {
    let mut table = Table::new(["file", "state", "bytes", "images", "labels"]);
    for file in &report.files {
        table.push(match &file.outcome {
            Ok(good) => vec![
                file.name.to_owned(),
                "good".to_owned(),
                good.content_bytes.to_string(),
                good.images.to_string(),
                good.labels.to_string(),
            ],
            Err(_) => vec![file.name.to_owned(), "BAD".to_owned()],
        });
    }
    terminal::table(&table)
}

fn check_json(report: &CheckReport) -> serde_json::Value {
    let files: Vec<serde_json::Value> = report
        .files
        .iter()
        .map(|file| match &file.outcome {
            Ok(good) => json!({
                "file": file.name, "good": true, "path": good.path, "sha256": file.checksum.sha256(),
                "content_bytes": good.content_bytes, "images": good.images, "labels": good.labels,
            }),
            Err(error) => {
                json!({ "file": file.name, "good": false, "sha256": file.checksum.sha256(), "error": error.to_string() })
            }
        })
        .collect();
    json!({ "dataset": report.name, "good": report.is_ok(), "files": files })
}

fn fetch(name: &str, datasets: &Path, mirrors: &[String]) -> Result<(), Failure> {
    let bytes = if bar::is_quiet() { ProgressBar::hidden() } else { ProgressBar::no_length() };
    let style = "{prefix:>26} {bar:28} {bytes}/{total_bytes} {bytes_per_sec} left {eta}";
    bytes.set_style(ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar()));
    let report = fetch_files(name, datasets, mirrors, &mut |progress| show(&bytes, &progress));
    bytes.finish_and_clear();
    let report = report?;
    let mut text = String::new();
    for (files, state) in [(&report.kept, "kept"), (&report.downloaded, "downloaded")] {
        for path in files {
            text.push_str(&format!("{state} {}\n", printable_path(path)));
        }
    }
    print(&text)
}

fn show(bytes: &ProgressBar, progress: &FetchProgress) {
    match &progress.event {
        FetchEvent::Request { url, from } => {
            bytes.set_prefix(progress.file);
            bytes.set_position(*from);
            bar::note(&format!(
                "request {url}{}",
                if *from > 0 { format!(" from byte {from}") } else { String::new() }
            ));
        }
        FetchEvent::Received { bytes: received, total } => {
            if let Some(total) = total {
                bytes.set_length(*total);
            }
            bytes.set_position(*received);
        }
        FetchEvent::Failed { url, reason } => bar::line(&format!("{url}: {reason}")),
        _ => {}
    }
}
