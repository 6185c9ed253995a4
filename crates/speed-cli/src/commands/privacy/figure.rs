//! `speed figure`: the paper's two figures with the paper's curve and the tight valid one, epsilon of the same votes as a
//! function of gamma, and of tau.

use std::ops::Range;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use rayon::prelude::*;
use serde_json::json;
use speed_accountant::{AccountError, Accountant, Adversary, Bound, Delta, NeighbouringRelation, PrivacyEvent};
use speed_core::printable_path;
use speed_core::vote_files::Known;
use speed_experiment::report::Table;
use speed_experiment::report::plot::{Axis, Chart, Line, Point, Series};
use speed_experiment::training::check_new;
use speed_experiment::{ExperimentError, write_atomic};
use speed_mechanism::{HonestRatio, InverseScale, Mechanism, MechanismKind};

use super::votes::{self, GIVE_TEACHERS, ReadVotes, WithVotes};
use crate::bar::Bar;
use crate::commands::{Failure, print_report, usage};
use crate::options::{FormOption, delta, ratio, rows};

/// Number of points of each curve.
const POINTS: usize = 60;
/// The names of the curves in files and in JSON.
const CURVES: [&str; 2] = ["paper", "tight"];

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
        return Err(usage("assume", "the figures need dropout or collusion"));
    }
    // Before anything is computed.
    let files = Files::from_options(options, name)?;
    let QueryOptions { votes: path, form, teachers, classes, queries, rows } = &options.queries;
    let known = Known { teachers: *teachers, queries: None, classes: *classes };
    let file = votes::read(path, form.form, &known, GIVE_TEACHERS)?;
    let (counts, read) = votes::counts(path, &file, queries.as_deref(), rows.as_ref())?;
    let figure = Figure { counts: &counts, teachers: read.teachers, options };
    let chart = match command {
        FigureCommand::Gamma { honest_ratio, .. } => Bar::during("drawing", || figure.over_gamma(*honest_ratio)),
        FigureCommand::Tau { gamma, .. } => {
            let gamma = InverseScale::new(*gamma).map_err(|error| usage("gamma", &error))?;
            Bar::during("drawing", || figure.over_tau(gamma))
        }
    };
    let chart = chart.map_err(|error| Failure::from(ExperimentError::input(path, error)))?;
    write(&files, name, &chart, read, options.json)
}

/// The votes of a figure.
struct Figure<'a> {
    /// A row for each query.
    counts: &'a [Vec<u32>],
    /// Number of teachers; the votes that a row lacks are empty.
    teachers: usize,
    options: &'a FigureOptions,
}

impl Figure<'_> {
    /// Computes the paper's Figure 2: epsilon for gamma from 0.01 to 100 at one `tau`, with the limit of the paper's curve as
    /// gamma goes to infinity: only ties cost anything, and the best order is the largest one at which the votes still help.
    fn over_gamma(&self, tau: HonestRatio) -> Result<Chart, AccountError> {
        let gammas = (0..POINTS).map(|i| 0.01 * 10f64.powf(4.0 * i as f64 / (POINTS - 1) as f64));
        let series = self.curves(gammas, |gamma| Ok((InverseScale::new(gamma)?, tau)))?;
        let limit = self.paper(InverseScale::new(1e5)?, HonestRatio::new(0.9)?)?;
        let x = Axis::new("inverse scale of the noise gamma (per vote)").logarithmic();
        let asymptote = Some((limit, format!("limit of the paper's curve, {limit:.3}")));
        Ok(self.chart(format!("tau = {}", tau.get()), x, series, asymptote))
    }

    /// Computes the paper's Figure 3: epsilon for tau from 0.1 to 1 at one `gamma`.
    fn over_tau(&self, gamma: InverseScale) -> Result<Chart, AccountError> {
        let taus = (0..POINTS).map(|i| 0.1 + 0.9 * i as f64 / (POINTS - 1) as f64);
        let series = self.curves(taus, |tau| Ok((gamma, HonestRatio::new(tau.min(1.0))?)))?;
        let x = Axis::new("ratio tau of the teachers whose noise is present and secret");
        Ok(self.chart(format!("gamma = {}", gamma.get()), x, series, None))
    }

    fn chart(&self, fixed: String, x: Axis, series: Vec<Series>, asymptote: Option<(f64, String)>) -> Chart {
        let (queries, delta) = (self.counts.len(), self.options.delta.get());
        let title = format!("Epsilon of {queries} queries, {fixed}, delta = {delta:e}");
        Chart { title, x, y: Axis::new("epsilon of all queries"), series, asymptote }
    }

    /// Computes epsilon by the paper's formulas.
    fn paper(&self, gamma: InverseScale, tau: HonestRatio) -> Result<f64, AccountError> {
        let event = PrivacyEvent::new(Mechanism::laplace(gamma), tau);
        Ok(Accountant::paper(event, self.options.delta).account(self.counts, self.teachers)?.epsilon)
    }

    fn curves(
        &self,
        xs: impl Iterator<Item = f64>,
        noise: impl Fn(f64) -> Result<(InverseScale, HonestRatio), AccountError> + Sync,
    ) -> Result<Vec<Series>, AccountError> {
        let FigureOptions { mechanism: kind, delta, assume: adversary, bound, .. } = *self.options;
        let is_integer = kind == MechanismKind::DiscreteLaplace;
        let point = |x, y| Point { x, y, spread: None };
        let at = |x: f64| -> Result<_, AccountError> {
            let (gamma, tau) = noise(x)?;
            let paper = self.paper(gamma, tau)?;
            let noise = if is_integer { Mechanism::discrete_laplace(gamma) } else { Mechanism::laplace(gamma) };
            let accountant = Accountant::new(PrivacyEvent::new(noise, tau), delta)
                .with_bound(bound)
                .with_integrals(bound == Bound::Tight)
                .with_relation(NeighbouringRelation::BothWays)
                .with_adversary(adversary);
            let tight = accountant.account(self.counts, self.teachers)?.epsilon;
            Ok((point(x, paper), point(x, tight)))
        };
        let points: Result<Vec<_>, AccountError> = xs.collect::<Vec<_>>().into_par_iter().map(at).collect();
        let (paper, tight) = points?.into_iter().unzip();
        let integer = if is_integer { "integer" } else { "continuous" };
        let name = format!("tight and valid ({integer} noise, {adversary}, both directions)");
        let paper_name = "paper (continuous noise, dropout, one direction)".to_owned();
        let series = |name, points| Series { name, points, line: Line::Plain };
        Ok(vec![series(paper_name, paper), series(name, tight)])
    }
}

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

/// Writes a chart as SVG, and as comma-separated values that are not rounded. The first column is `x`.
///
/// # Panics
/// Never: every curve has points.
fn write(Files { svg, csv }: &Files, x: &str, chart: &Chart, read: ReadVotes, json: bool) -> Result<(), Failure> {
    write_atomic(svg, chart.to_svg().expect("curves of points").as_bytes())?;
    let mut table = Table::new([x].into_iter().chain(CURVES));
    for row in 0..POINTS {
        let values = chart.series.iter().map(|curve| curve.points[row].y);
        table.push([chart.series[0].points[row].x].into_iter().chain(values).map(|value| value.to_string()).collect());
    }
    write_atomic(csv, table.to_csv().as_bytes())?;
    let points = |curve: &Series| curve.points.iter().map(|point| [point.x, point.y]).collect::<Vec<_>>();
    let curves: serde_json::Map<String, serde_json::Value> =
        CURVES.into_iter().zip(&chart.series).map(|(name, curve)| (name.to_owned(), json!(points(curve)))).collect();
    let asymptote = chart.asymptote.as_ref().map(|(value, _)| *value);
    let value = json!({ "svg": svg, "csv": csv, "curves": curves, "asymptote": asymptote });
    print_report(json, &WithVotes { value: &value, votes_file: Some(read) }, || {
        format!("{}\n{}\n{}", printable_path(svg), printable_path(csv), read.line())
    })
}
