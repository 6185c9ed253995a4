//! `speed figure`

use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::json;
use speed_accountant::figure::{Figure, FigureRequest};
use speed_accountant::{AccountError, Assume};
use speed_experiment::ExperimentError;
use speed_mechanism::InverseScale;

use super::{counts, flag, usage};
use crate::commands::{Failure, print, print_json};
use crate::options::{FigureCommand, FigureOptions};

pub(in crate::commands) fn figure(command: &FigureCommand) -> Result<(), Failure> {
    let (options, name) = match command {
        FigureCommand::Gamma { figure, .. } => (figure, "gamma"),
        FigureCommand::Tau { figure, .. } => (figure, "tau"),
    };
    if !options.mechanism.is_inverse() {
        return Err(usage("mechanism", format!("the figures are of Laplace noise, found {}", options.mechanism)));
    }
    if options.assume == Assume::Central {
        return Err(usage("assume", "the figures need dropout or collusion".into()));
    }
    let counts = counts(&options.queries)?;
    let request = FigureRequest {
        counts: &counts,
        kind: options.mechanism,
        delta: options.delta,
        assume: options.assume,
        bound: options.bound,
    };
    let drawn = match command {
        FigureCommand::Gamma { honest_ratio, .. } => request.over_gamma(*honest_ratio),
        FigureCommand::Tau { gamma, .. } => {
            request.over_tau(InverseScale::new(*gamma).map_err(|error| flag("gamma", &error))?)
        }
    };
    let drawn = drawn.map_err(|error: AccountError| {
        Failure::from(ExperimentError::Input { path: options.queries.votes.clone(), message: error.to_string() })
    })?;
    write(options, name, &drawn)
}

fn write(options: &FigureOptions, name: &str, figure: &Figure) -> Result<(), Failure> {
    let prefix = options.out.clone().unwrap_or_else(|| PathBuf::from(format!("figure-{name}")));
    let path = |extension: &str| PathBuf::from(format!("{}.{extension}", prefix.display()));
    let (svg, csv) = (path("svg"), path("csv"));
    if !options.force
        && let Some(there) = [&svg, &csv].into_iter().find(|path| path.exists())
    {
        return Err(usage("out", format!("{} exists; choose another name or give --force", there.display())));
    }
    write_whole(&svg, &figure.to_svg())?;
    write_whole(&csv, &figure.to_csv())?;
    if options.json {
        let curves: serde_json::Map<String, serde_json::Value> =
            figure.curves().into_iter().map(|(name, points)| (name.to_owned(), json!(points))).collect();
        return print_json(&json!({ "svg": svg, "csv": csv, "curves": curves, "asymptote": figure.asymptote() }));
    }
    print(&format!("{}\n{}\n", svg.display(), csv.display()))
}

/// Under a temporary name first, so that nobody sees half a file.
fn write_whole(path: &Path, text: &str) -> Result<(), Failure> {
    let failed = |source| ExperimentError::Io { action: "write", path: path.to_path_buf(), source };
    let temporary = PathBuf::from(format!("{}.tmp", path.display()));
    std::fs::File::create(&temporary)
        .and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()))
        .and_then(|()| std::fs::rename(&temporary, path))
        .map_err(failed)?;
    Ok(())
}
