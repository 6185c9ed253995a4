//! A run from config to table.

mod shard;
mod steps;
mod units;

use std::path::{Path, PathBuf};

use speed_accountant::QueryBatch;
use speed_core::{Votes, printable_path};
use speed_random::Streams;

pub use self::shard::{Shard, ShardReport, run_shard};
pub(crate) use self::shard::{folder_of, open_shards};
pub use self::units::StageUnits;

use self::shard::leave_word;
use self::steps::{Results, counts, results};
use crate::config::{Config, ConfigError};
use crate::device::Device;
use crate::environment::Environment;
use crate::error::ExperimentError;
use crate::ledger::{LedgerFiles, check, check_forced, planned_charge};
use crate::options::RunOptions;
use crate::picture;
use crate::plan::check_run_price;
use crate::progress::{Progress, Recorder};
use crate::publish::{PublishedQueries, publish};
use crate::report::{AskedQueries, Report, ReportRow, RowResult, StageTime};
use crate::stages::{Context, Images, RowStages, StageNames, Truth, kinds_of_machine, planned_classes, select_queries};
use crate::store::{RunStore, is_called, progress_path};

/// Runs `config`, going on from whatever an earlier, interrupted run left.
///
/// # Errors
/// See [`ExperimentError`]; finished work stays.
pub fn run(config: &Config, options: &RunOptions, progress: &dyn Progress) -> Result<Report, ExperimentError> {
    let names = StageNames::of(config);
    in_run(config, options, &names, progress, |context, images, environment| {
        let results = results(context, &names, images, None)?.expect("no stage ends it");
        let (report, asked) = report(context, images, results, environment)?;
        publish(context.store, &report, &asked)?;
        leave_word(context.store, &names, None)?;
        Ok(report)
    })
}

/// Completes the stages of `config` up to `stage`, a name or a kind as `--force` takes it, and returns the run's folder: no table is
/// made.
///
/// # Errors
/// Those of [`run`], and if there is no such stage.
pub fn run_until(
    config: &Config,
    options: &RunOptions,
    stage: &str,
    progress: &dyn Progress,
) -> Result<PathBuf, ExperimentError> {
    let names = StageNames::of(config);
    let last = names.last_called(stage)?;
    in_run(config, options, &names, progress, |context, images, _| {
        results(context, &names, images, Some(last))?;
        leave_word(context.store, &names, Some(last))?;
        Ok(context.store.folder().to_path_buf())
    })
}

/// Returns the id of the run of `config`, which is its folder's name.
#[must_use]
pub fn run_id(config: &Config) -> String {
    RunStore::id_of(config)
}

/// Returns whether the run of `config` below `results` has begun a stage.
#[must_use]
pub fn has_begun(config: &Config, results: &Path) -> bool {
    RunStore::has_stages(results, config)
}

/// Makes the folder of the run of `config` below `results`, with the resolved config in it, for processes that are to work there later.
///
/// # Errors
/// If the folder belongs to another config, or cannot be written.
pub fn begin_run(config: &Config, results: &Path) -> Result<PathBuf, ExperimentError> {
    RunStore::begin(results, config)
}

/// Checks that `id` is that of the run of `config`, below a folder of results.
///
/// # Errors
/// If it is another's: both are named, and, where that run is there, the keys in which the configs differ.
pub fn check_run_id(id: &str, config: &Config, results: &Path) -> Result<(), ConfigError> {
    let own = run_id(config);
    if id == own {
        return Ok(());
    }
    let differs = RunStore::differences(results, config, id);
    let differs = differs.map_or_else(String::new, |keys| format!("; these keys differ: {}", keys.join(", ")));
    let message = format!("this config's run is {own}{differs}");
    Err(ConfigError::Key { place: "command line".into(), key: format!("--run {id}"), message })
}

/// Works in the folder of a run, under its lock, after everything that can refuse.
fn in_run<T>(
    config: &Config,
    options: &RunOptions,
    names: &StageNames,
    progress: &dyn Progress,
    work: impl FnOnce(&Context<'_>, Option<&Images>, &Environment) -> Result<T, ExperimentError>,
) -> Result<T, ExperimentError> {
    names.check(&options.force)?;
    let _arithmetic = config.arithmetic.hold()?;
    let device = Device::open(config.device)?;
    RunStore::expect_free(&options.results, config)?;
    let streams = Streams::new(config.seed);
    // What cannot begin leaves no folder, and what is set aside is set aside for work that can.
    let images = Images::load(config, &streams, options.datasets.as_deref())?;
    let classes = check_inputs(config, &streams, images.as_ref())?;
    check_run_price(config, options, names, classes)?;
    let environment = Environment::current(&device.name);
    let mut store = RunStore::open(&options.results, config, &environment)?;
    let inputs = Inputs { images: images.as_ref(), streams, device: &device, environment: &environment };
    let done = in_store(config, options, names, progress, &mut store, &inputs, work);
    if done.is_err() {
        store.remove_if_unused();
    }
    done
}

/// Reads and checks the files that a config names beside its images, and returns the number of classes.
fn check_inputs(config: &Config, streams: &Streams, images: Option<&Images>) -> Result<usize, ExperimentError> {
    let classes = planned_classes(config, images.map(|images| images.pool.classes()))?;
    Truth::of(config, images)?.map(|truth| truth.check(classes)).transpose()?;
    select_queries(config, streams, images)?;
    Ok(classes)
}

/// Everything that a run reads before it begins.
struct Inputs<'a> {
    images: Option<&'a Images>,
    streams: Streams,
    device: &'a Device,
    environment: &'a Environment,
}

/// Works in the folder of a run that is open.
fn in_store<T>(
    config: &Config,
    options: &RunOptions,
    names: &StageNames,
    progress: &dyn Progress,
    store: &mut RunStore,
    inputs: &Inputs<'_>,
    work: impl FnOnce(&Context<'_>, Option<&Images>, &Environment) -> Result<T, ExperimentError>,
) -> Result<T, ExperimentError> {
    let Inputs { images, streams, device, environment } = inputs;
    let recorder = Recorder::new(progress, progress_path(store.folder()));
    let progress: &dyn Progress = &recorder;
    progress.note(&format!("run folder {}", printable_path(store.folder())));
    progress.planned(&names.all().map(ToString::to_string).collect::<Vec<_>>());
    check(store, config, progress)?;
    let classes = images.map(|images| images.pool.classes());
    if let Some(name) = images.and_then(|images| images.handwriting.as_ref()) {
        progress.note(&format!("street digits of the handwriting in dataset {name}"));
    }
    images.iter().flat_map(|images| &images.notes).for_each(|note| progress.note(note));
    check_forced(store, config, &forced_charges(config, names, &options.force, classes)?)?;
    options.force.iter().try_for_each(|stage| store.force(stage))?;
    let context = Context {
        config,
        store,
        streams: streams.clone(),
        threads: options.threads,
        device,
        arithmetic: &environment.arithmetic,
        mix_machines: options.mix_machines,
        latency_wait: options.latency_wait,
        progress,
    };
    work(&context, *images, environment)
}

/// Makes the report of all stages' results.
fn report(
    context: &Context<'_>,
    images: Option<&Images>,
    results: Results<'_>,
    environment: &Environment,
) -> Result<(Report, PublishedQueries), ExperimentError> {
    let (config, store) = (context.config, context.store);
    let Results { asked: steps::Asked { truth, collected, queries }, rows } = results;
    let asked = PublishedQueries {
        queries: asked_queries(config, &collected.votes, &queries, truth.as_ref(), &rows),
        pictures: images.map(|images| picture::of_queries(&images.pool, &queries)).transpose()?,
    };
    let rows = rows.into_iter().enumerate().map(|(row, result)| ReportRow::new(config, row, result)).collect();
    let ledger = if config.is_simulation() { None } else { LedgerFiles::of(store.experiment()).statement()? };
    let stage_times = store.records().into_iter().map(|record| StageTime {
        stage: record.stage,
        seconds: record.seconds,
        resumed_units: record.resumed_units,
    });
    let report = Report {
        experiment: config.name.clone(),
        run: store.id(),
        simulation: config.is_simulation(),
        config: config.to_raw(),
        handwriting: images.and_then(|images| images.handwriting.clone()),
        ensemble: collected.quality,
        rows,
        environment: environment.clone(),
        kinds_of_machine: kinds_of_machine(store),
        stage_times: stage_times.collect(),
        ledger,
    };
    Ok((report, asked))
}

/// Returns the queries with their answers, as far as anyone may see them.
fn asked_queries(
    config: &Config,
    votes: &Votes,
    queries: &[usize],
    truth: Option<&Truth<'_>>,
    results: &[RowResult],
) -> AskedQueries {
    let is_covered =
        |result: &RowResult| result.bounds.as_ref().is_some_and(|bounds| bounds.data_independent.is_some());
    let answers = results.iter().enumerate().map(|(row, result)| (row, is_covered(result), &*result.labels.labels));
    AskedQueries {
        pool_images: queries.to_vec(),
        truth: truth.map(|truth| queries.iter().map(|&image| truth.labels()[image]).collect()),
        votes: (!config.protects_answers()).then(|| counts(votes, queries)),
        rows: Vec::new(),
    }
    .with_answers(config, answers)
}

/// Returns the charges for answers that are forced, where a budget may refuse them.
fn forced_charges(
    config: &Config,
    names: &StageNames,
    forced: &[String],
    classes: Option<usize>,
) -> Result<Vec<QueryBatch>, ExperimentError> {
    if config.is_simulation() || config.privacy.budget.is_none() {
        return Ok(Vec::new());
    }
    let is_forced =
        |stages: &&RowStages| stages.account.is_some() && forced.iter().any(|name| is_called(&stages.labelling, name));
    let mut rows = names.rows.iter().filter(is_forced).peekable();
    if rows.peek().is_none() {
        return Ok(Vec::new());
    }
    let classes = planned_classes(config, classes)?;
    rows.map(|stages| planned_charge(config, &config.rows[stages.row], classes)).collect()
}
