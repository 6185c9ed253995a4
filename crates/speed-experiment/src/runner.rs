//! A run from config to table.

mod shard;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use speed_accountant::QueryBatch;
use speed_core::printable_path;
use speed_core::random::Streams;

pub use self::shard::{ShardReport, run_shard};
use crate::config::Config;
use crate::device::Device;
use crate::encoder::PictureEncoder;
use crate::environment::current_environment;
use crate::error::ExperimentError;
use crate::ledger::{LedgerFiles, check, check_forced};
use crate::options::RunOptions;
use crate::picture;
use crate::plan::check_run_price;
use crate::progress::{Progress, Recorder};
use crate::report::{AskedQueries, EnsembleQuality, Environment, Report, ReportRow, RowAnswers, StageTime};
use crate::results::{publish, report_row, write_models};
use crate::stages::{
    CollectedVotes, Context, Graph, Images, Node, Outputs, Queries, RowLabellings, TeacherAnswers, TeachersOnTest,
    Truth, kinds_of_machine, planned_classes, select_queries,
};
use crate::store::{RunStore, progress_path};

/// Runs `config`, and resumes an earlier, interrupted run.
///
/// # Errors
/// See [`ExperimentError`]; finished work is kept.
pub fn run(config: &Config, options: &RunOptions, progress: &dyn Progress) -> Result<Report, ExperimentError> {
    let graph = Graph::for_config(config);
    in_run(config, options, &graph, progress, |context, environment| {
        let outputs = complete(context, graph.nodes())?;
        let (report, asked, pictures) = report(context, &outputs, environment)?;
        write_models(context, &report)?;
        publish(context.store.folder(), &report, &asked, pictures.as_deref())?;
        Ok(report)
    })
}

/// Completes the stages of `config` up to `stage`, a name or a kind as in `--force`, without tables.
pub(crate) fn complete_until(
    config: &Config,
    options: &RunOptions,
    stage: &str,
    progress: &dyn Progress,
) -> Result<(), ExperimentError> {
    let graph = Graph::for_config(config);
    let nodes = graph.up_to(stage)?;
    in_run(config, options, &graph, progress, |context, _| complete(context, nodes).map(drop))
}

fn complete(context: &Context<'_>, nodes: &[Node]) -> Result<Outputs, ExperimentError> {
    let mut outputs = Outputs::default();
    nodes.iter().try_for_each(|node| (node.kind.complete)(context, node, &mut outputs))?;
    Ok(outputs)
}

/// Returns whether the run of `config` in `results` has begun a stage.
pub fn has_begun(config: &Config, results: &Path) -> bool {
    RunStore::has_stages(results, config)
}

/// Creates the directory of the run of `config` in `results`, with the resolved config, for processes that work there
/// later.
///
/// # Errors
/// If the directory belongs to another config, or cannot be written.
pub fn begin_run(config: &Config, results: &Path) -> Result<PathBuf, ExperimentError> {
    RunStore::begin(results, config)
}

/// Checks that `id` is the id of the run of `config` in a directory of results.
///
/// # Errors
/// If it is the id of another run. The error names both runs, and if the other run exists, the keys that differ.
pub fn check_run_id(id: &str, config: &Config, results: &Path) -> Result<(), ExperimentError> {
    let own = RunStore::id_of(config);
    if id == own {
        return Ok(());
    }
    let differs = RunStore::differences(results, config, id);
    let differs = differs.map_or_else(String::new, |keys| format!("; these keys differ: {}", keys.join(", ")));
    let message = format!("this config's run is {own}{differs}");
    Err(ExperimentError::option(format_args!("--run {id}"), message))
}

/// Works in the directory of a run, under its lock, after all checks that can refuse the run.
fn in_run<T>(
    config: &Config,
    options: &RunOptions,
    graph: &Graph,
    progress: &dyn Progress,
    work: impl FnOnce(&Context<'_>, &Environment) -> Result<T, ExperimentError>,
) -> Result<T, ExperimentError> {
    graph.check(&options.force)?;
    let _arithmetic = config.arithmetic.hold()?;
    let device = Device::open(config.device)?;
    RunStore::expect_free(&options.results, config)?;
    let streams = Streams::new(config.seed);
    // A run that is refused creates no directory and sets no earlier work aside.
    let images = Images::load(config, &streams, options.datasets.as_deref())?;
    let classes = check_inputs(config, &streams, images.as_ref())?;
    check_run_price(config, options, graph, classes)?;
    let environment = current_environment(&device.name);
    let mut store = RunStore::open(&options.results, config, &environment)?;
    let work_here = |store: &mut RunStore| {
        let recorder = Recorder::new(progress, progress_path(store.folder()));
        let progress: &dyn Progress = &recorder;
        progress.note(&format!("run folder {}", printable_path(store.folder())));
        progress.planned(&graph.names().map(ToString::to_string).collect::<Vec<_>>());
        check(store, config, progress)?;
        if let Some(name) = images.as_ref().and_then(|images| images.handwriting.as_ref()) {
            progress.note(&format!("street digits of the handwriting in dataset {name}"));
        }
        let notes = images.iter().flat_map(|images| &images.notes);
        notes.for_each(|note| progress.warn(note.trim_start_matches("warning: ")));
        check_forced(store, config, &forced_charges(config, graph, &options.force, classes)?)?;
        options.force.iter().try_for_each(|stage| store.force(stage))?;
        let truth = Truth::for_run(config, images.as_ref())?;
        let context = Context {
            config,
            store,
            pictures: images.as_ref(),
            vectors: OnceLock::new(),
            truth: truth.as_ref(),
            streams: streams.clone(),
            threads: options.threads,
            device: &device,
            arithmetic: &environment.arithmetic,
            mix_machines: options.mix_machines,
            latency_wait: options.latency_wait,
            progress,
        };
        work(&context, &environment)
    };
    let done = work_here(&mut store);
    if done.is_err() {
        store.remove_if_unused();
    }
    done
}

fn check_inputs(config: &Config, streams: &Streams, images: Option<&Images>) -> Result<usize, ExperimentError> {
    let classes = planned_classes(config, images.map(|images| images.pool.classes()))?;
    Truth::for_run(config, images)?.map(|truth| truth.check(classes)).transpose()?;
    select_queries(config, streams)?;
    Ok(classes)
}

fn report(
    context: &Context<'_>,
    outputs: &Outputs,
    environment: &Environment,
) -> Result<(Report, AskedQueries, Option<Vec<u8>>), ExperimentError> {
    let (config, store, images) = (context.config, context.store, context.pictures);
    let collected = outputs.get::<CollectedVotes>();
    let rows: Vec<ReportRow> = (0..config.rows.len()).map(|row| report_row(config, outputs, row)).collect();
    let asked = asked_queries(context, outputs, &rows);
    let pictures = images.map(|images| picture::of_queries(&images.pool, &asked.pool_images)).transpose()?;
    let ledger =
        if config.is_simulation() { None } else { LedgerFiles::in_experiment(store.experiment()).statement()? };
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
        encoder: images.and_then(|images| images.encoder.as_ref()).map(PictureEncoder::facts),
        classes: images.map_or_else(Vec::new, |images| images.class_names.clone()),
        parties_by_class: images.and_then(|images| images.parties_by_class.clone()).unwrap_or_default(),
        ensemble: EnsembleQuality {
            test_accuracy: outputs.find::<TeachersOnTest>().map(|found| found.0),
            ..collected.quality.clone()
        },
        rows,
        environment: environment.clone(),
        kinds_of_machine: kinds_of_machine(store),
        stage_times: stage_times.collect(),
        ledger,
    };
    Ok((report, asked, pictures))
}

/// Returns the queries with their answers, without everything that is not public.
fn asked_queries(context: &Context<'_>, outputs: &Outputs, rows: &[ReportRow]) -> AskedQueries {
    let (config, truth) = (context.config, context.truth);
    let (votes, queries) = (outputs.get::<TeacherAnswers>(), outputs.get::<Queries>().all());
    // If the noise is real, answers without a finite claim are left out.
    let is_public = |row: usize| !config.protects_answers() || rows[row].data_independent.is_some();
    let public = outputs.get::<RowLabellings>().0.iter().filter(|(row, _)| is_public(**row));
    let rows = public
        .map(|(row, (labels, _))| RowAnswers { row: config.rows[*row].name.clone(), labels: labels.labels.clone() });
    AskedQueries {
        pool_images: queries.images().to_vec(),
        group_sizes: queries.groups().map(|groups| groups.iter().map(Vec::len).collect()),
        truth: truth.map(|truth| queries.truth(truth.labels())),
        votes: (!config.protects_answers()).then(|| votes.counts(queries.len())),
        rows: rows.collect(),
    }
}

/// Returns the charges for forced answers, if there is a budget that may refuse them.
fn forced_charges(
    config: &Config,
    graph: &Graph,
    forced: &[String],
    classes: usize,
) -> Result<Vec<QueryBatch>, ExperimentError> {
    if config.is_simulation() || config.budget().is_none() {
        return Ok(Vec::new());
    }
    let is_forced = |node: &Node| forced.iter().any(|name| node.is_called(name));
    let charged = graph.charged(config, classes)?.into_iter();
    Ok(charged.filter_map(|(node, _, batch)| is_forced(node).then_some(batch)).collect())
}
