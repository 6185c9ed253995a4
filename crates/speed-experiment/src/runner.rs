//! A run from config to table.

use speed_accountant::QueryBatch;
use speed_core::{Votes, printable_path};
use speed_random::Streams;

use crate::config::Config;
use crate::device::Device;
use crate::environment::Environment;
use crate::error::ExperimentError;
use crate::ledger::{LedgerFiles, check, check_forced, planned_charge};
use crate::options::RunOptions;
use crate::picture;
use crate::progress::{Progress, Recorder};
use crate::publish::{Asked, publish};
use crate::report::{AskedQueries, Report, ReportRow, RowResult, StageTime};
use crate::stages::{
    AccountStage, CollectedVotes, Context, Course, DataStage, Images, Keys, Labelled, LabellingStage, QueriesStage,
    Question, RowStages, StageNames, Students, TeachersStage, Truth, VotesStage, complete, kinds_of_machine,
    planned_classes, select_queries,
};
use crate::store::{RunStore, is_called, progress_path};

/// Runs `config`, going on from whatever an earlier, interrupted run left.
///
/// # Errors
/// See [`ExperimentError`]; finished work stays.
pub fn run(config: &Config, options: &RunOptions, progress: &dyn Progress) -> Result<Report, ExperimentError> {
    let names = StageNames::of(config);
    names.check(&options.force)?;
    let _arithmetic = config.arithmetic.hold()?;
    let device = Device::open(config.device)?;
    let environment = Environment::current(&device.name);
    let mut store = RunStore::open(&options.results, config, &environment)?;
    let recorder = Recorder::new(progress, progress_path(store.folder()));
    let progress: &dyn Progress = &recorder;
    progress.note(&format!("run folder {}", printable_path(store.folder())));
    progress.planned(&names.all().map(ToString::to_string).collect::<Vec<_>>());
    check(&store, config, progress)?;
    let streams = Streams::new(config.seed);
    // What is set aside is set aside for work that can begin.
    let images = Images::load(config, &streams, options.datasets.as_deref())?;
    let classes = images.as_ref().map(|images| images.pool.classes());
    if let Some(name) = images.as_ref().and_then(|images| images.handwriting.as_ref()) {
        progress.note(&format!("street digits of the handwriting in dataset {name}"));
    }
    check_forced(&store, config, &forced_charges(config, &names, &options.force, classes)?)?;
    options.force.iter().try_for_each(|stage| store.force(stage))?;
    let context = Context {
        config,
        store: &store,
        streams,
        threads: options.threads,
        device: &device,
        arithmetic: &environment.arithmetic,
        mix_machines: options.mix_machines,
        progress,
    };
    let (report, asked) = report(&context, &names, images.as_ref(), environment.clone())?;
    publish(&store, &report, &asked)?;
    Ok(report)
}

/// Completes all stages and collects their results.
fn report(
    context: &Context<'_>,
    names: &StageNames,
    images: Option<&Images>,
    environment: Environment,
) -> Result<(Report, Asked), ExperimentError> {
    let (config, store) = (context.config, context.store);
    if let (Some(name), Some(images)) = (&names.data, images) {
        complete(context, &DataStage { name, images })?;
    }
    let truth = Truth::of(config, images)?;
    let collected = collect_votes(context, names, images, truth.as_ref())?;
    let queries = select_queries(context, images)?;
    complete(context, &QueriesStage { name: &names.queries, queries: &queries })?;
    let mut results = label_rows(context, names, &collected, &queries, truth.as_ref())?;
    train_students(context, names, images, &queries, &mut results)?;

    let asked = Asked {
        queries: asked_queries(config, &collected.votes, &queries, truth.as_ref(), &results),
        pictures: images.map(|images| picture::of_queries(&images.pool, &queries)).transpose()?,
    };
    let rows = results.into_iter().enumerate().map(|(row, result)| ReportRow::new(config, row, result)).collect();
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
        environment,
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

fn collect_votes(
    context: &Context<'_>,
    names: &StageNames,
    images: Option<&Images>,
    truth: Option<&Truth<'_>>,
) -> Result<CollectedVotes, ExperimentError> {
    let teachers = match (&names.teachers, images) {
        (Some(name), Some(images)) => Some(complete(context, &TeachersStage { name, images })?),
        _ => None,
    };
    complete(context, &VotesStage::new(&names.votes, context, images, truth, teachers.as_ref())?)
}

/// Labels the queries for every row, and accounts for the answers. Keys serve all rows and end here.
fn label_rows(
    context: &Context<'_>,
    names: &StageNames,
    collected: &CollectedVotes,
    queries: &[usize],
    truth: Option<&Truth<'_>>,
) -> Result<Vec<RowResult>, ExperimentError> {
    let config = context.config;
    let keys = Keys::default();
    let mut results: Vec<RowResult> = Vec::new();
    for (index, row) in config.rows.iter().enumerate() {
        let Some(stages) = names.rows.iter().find(|stages| stages.row == index) else {
            // Nothing is labelled again, so nothing is paid again.
            results.push(results[config.labels_of(index)].clone());
            continue;
        };
        let queries = &queries[..row.query_count(queries.len())];
        let CollectedVotes { votes, hash, .. } = collected;
        let question = Question { row, votes, votes_hash: *hash, queries, truth };
        results.push(label_row(context, stages, question, &keys)?);
    }
    Ok(results)
}

fn label_row(
    context: &Context<'_>,
    stages: &RowStages,
    question: Question<'_>,
    keys: &Keys,
) -> Result<RowResult, ExperimentError> {
    let (labels, times) = complete(context, &LabellingStage::new(&stages.labelling, question, keys))?;
    let bounds = match &stages.account {
        Some(name) => {
            let counts = counts(question.votes, question.queries);
            Some(complete(context, &AccountStage { name, row: question.row, counts: &counts })?)
        }
        None => None,
    };
    Ok(RowResult { labels, times, bounds, students: Vec::new() })
}

fn counts(votes: &Votes, queries: &[usize]) -> Vec<Vec<u32>> {
    queries.iter().map(|&image| votes.counts(image)).collect()
}

/// Trains the students of every row on its labels.
fn train_students(
    context: &Context<'_>,
    names: &StageNames,
    images: Option<&Images>,
    queries: &[usize],
    results: &mut [RowResult],
) -> Result<(), ExperimentError> {
    let (Some(names), Some(images), config) = (&names.students, images, context.config) else { return Ok(()) };
    let courses = config.rows.iter().zip(results.iter()).map(|(row, result)| {
        let (queries, labels) = result.labels.labelled(queries);
        Course { labelled: Labelled { row: &row.name, queries, labels }, method: config.method_of(row) }
    });
    let courses: Vec<Course<'_>> = courses.collect();
    for course in courses.iter().filter(|course| course.is_empty()) {
        context.progress.note(&format!("{}: no query has an answer, so no student learns", course.labelled.row));
    }
    let students = Students::train(context, names, images, &courses)?;
    for (result, course) in results.iter_mut().zip(&courses) {
        result.students = students.of(names, course, config.table.repeats);
    }
    Ok(())
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
