//! `speed figure`

use std::ops::Range;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::json;
use speed_accountant::{AccountError, Adversary, Bound, Delta};
use speed_core::printable_path;
use speed_core::vote_files::Known;
use speed_experiment::training::check_new;
use speed_experiment::{ExperimentError, write_atomic};
use speed_mechanism::{HonestRatio, InverseScale, MechanismKind};

use super::votes::{self, GIVE_TEACHERS, ReadVotes, WithVotes};
use crate::bar::Waiting;
use crate::commands::{Failure, flag, print_report, usage};
use crate::figure::{Figure, FigureRequest};
use crate::options::{FormOption, delta, ratio, rows};

/// A file of votes and a selection of its queries.
#[derive(Debug, Args)]
pub(crate) struct QueryOptions {
    /// Votes, .npy or CSV: labels (teachers x queries) or histograms (queries x classes)
    #[arg(long, value_name = "FILE")]
    votes: PathBuf,
    #[command(flatten)]
    form: FormOption,
    /// Number of teachers, which must match the votes
    #[arg(long, value_name = "N")]
    teachers: Option<usize>,
    /// Number of classes, which a file of labels does not contain
    #[arg(long, value_name = "K")]
    classes: Option<usize>,
    /// Only these queries: an .npy or CSV file of indices
    #[arg(long, value_name = "IDX", conflicts_with = "rows")]
    queries: Option<PathBuf>,
    /// Only queries A to B - 1
    #[arg(long, value_name = "A..B", value_parser = rows)]
    rows: Option<Range<usize>>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum FigureCommand {
    /// Plot epsilon over gamma at one tau, with the limit (the paper's Figure 2)
    Gamma {
        /// Fraction of the teachers whose noise is present and secret (tau)
        #[arg(long, value_name = "TAU", default_value = "0.9", value_parser = ratio)]
        honest_ratio: HonestRatio,
        #[command(flatten)]
        figure: FigureOptions,
    },
    /// Plot epsilon over tau at one gamma (the paper's Figure 3)
    Tau {
        /// Inverse scale of the noise, per vote
        #[arg(long, value_name = "G", default_value = "0.1")]
        gamma: f64,
        #[command(flatten)]
        figure: FigureOptions,
    },
}

#[derive(Debug, Args)]
pub(crate) struct FigureOptions {
    #[command(flatten)]
    queries: QueryOptions,
    /// Noise of the tight curve: laplace or discrete-laplace
    #[arg(long, value_name = "KIND", default_value = "discrete-laplace")]
    mechanism: MechanismKind,
    /// Delta of all values
    #[arg(long, value_name = "D", default_value = "1e-5", value_parser = delta)]
    delta: Delta,
    /// Assumption of the tight curve: dropout or collusion
    #[arg(long, value_name = "WHAT", default_value = "dropout")]
    assume: Adversary,
    /// Formulas of the tight curve: outcome (takes a second) or tight (takes a minute)
    #[arg(long, value_name = "WHICH", default_value = "outcome")]
    bound: Bound,
    /// Write PREFIX.svg and PREFIX.csv [default: figure-gamma, figure-tau]
    #[arg(long, value_name = "PREFIX")]
    out: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(in crate::commands) fn figure(command: &FigureCommand) -> Result<(), Failure> {
    let (options, name) = match command {
        FigureCommand::Gamma { figure, .. } => (figure, "gamma"),
        FigureCommand::Tau { figure, .. } => (figure, "tau"),
    };
    if !options.mechanism.is_inverse() {
        return Err(usage("mechanism", format!("the figures are of Laplace noise, found {}", options.mechanism)));
    }
    if options.assume == Adversary::ExternalWithCentral {
        return Err(usage("assume", "the figures need dropout or collusion".into()));
    }
    // Before anything is computed.
    let files = Files::from_options(options, name)?;
    let QueryOptions { votes: path, form, teachers, classes, queries, rows } = &options.queries;
    let known = Known { teachers: *teachers, queries: None, classes: *classes };
    let file = votes::read(path, form.form, &known, GIVE_TEACHERS)?;
    let (counts, read) = votes::counts(path, &file, queries.as_deref(), rows.as_ref())?;
    let request = FigureRequest {
        counts: &counts,
        teachers: read.teachers,
        kind: options.mechanism,
        delta: options.delta,
        adversary: options.assume,
        bound: options.bound,
    };
    let drawn = match command {
        FigureCommand::Gamma { honest_ratio, .. } => Waiting::during("drawing", || request.over_gamma(*honest_ratio)),
        FigureCommand::Tau { gamma, .. } => {
            let gamma = InverseScale::new(*gamma).map_err(|error| flag("gamma", &error))?;
            Waiting::during("drawing", || request.over_tau(gamma))
        }
    };
    let drawn =
        drawn.map_err(|error: AccountError| Failure::from(ExperimentError::input(&options.queries.votes, error)))?;
    write(&files, &drawn, read, options.json)
}

/// The files of a figure.
struct Files {
    svg: PathBuf,
    csv: PathBuf,
}

impl Files {
    /// Derives the paths from `--out`, which may have either extension or none. Refuses existing files.
    fn from_options(options: &FigureOptions, name: &str) -> Result<Self, Failure> {
        let out = options.out.clone().unwrap_or_else(|| PathBuf::from(format!("figure-{name}")));
        let has_extension = out.extension().is_some_and(|extension| extension == "svg" || extension == "csv");
        let prefix = if has_extension { out.with_extension("") } else { out };
        let path = |extension: &str| PathBuf::from(format!("{}.{extension}", prefix.display()));
        let files = Self { svg: path("svg"), csv: path("csv") };
        [&files.svg, &files.csv].into_iter().try_for_each(|path| check_new(path))?;
        Ok(files)
    }
}

fn write(Files { svg, csv }: &Files, figure: &Figure, read: ReadVotes, json: bool) -> Result<(), Failure> {
    write_atomic(svg, figure.to_svg().as_bytes())?;
    write_atomic(csv, figure.to_csv().as_bytes())?;
    let curves: serde_json::Map<String, serde_json::Value> =
        figure.curves().into_iter().map(|(name, points)| (name.to_owned(), json!(points))).collect();
    let value = json!({ "svg": svg, "csv": csv, "curves": curves, "asymptote": figure.asymptote() });
    print_report(json, &WithVotes { value: &value, votes_file: Some(read) }, || {
        format!("{}\n{}\n{}", printable_path(svg), printable_path(csv), read.line())
    })
}
