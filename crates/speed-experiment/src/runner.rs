//! A run from config to table.

use std::path::PathBuf;

use serde_json::json;
use speed_core::Votes;
use speed_random::Streams;

use crate::ExperimentError;
use crate::config::{AggregationKind, Config, ConfigError, VotesSource};
use crate::device::Device;
use crate::environment::Environment;
use crate::progress::Progress;
use crate::report::{Report, ReportRow, StageTime};
use crate::stages::{
    Accounts, Aggregate, AggregateTimes, Context, Course, Images, Keys, account, aggregate, check_forced, check_ledger,
    collect_votes, kinds_of_machine, ledger_statement, load_images, record_images, select_queries, stage_of_row,
    train_students,
};
use crate::store::{RunStore, Stage, StageRecord, is_called};

/// What a run needs beside its config; none of it changes results.
#[derive(Clone, Debug)]
pub struct Options {
    /// Folder of all results.
    pub results: PathBuf,
    /// Folder of datasets, looked at first.
    pub datasets: Option<PathBuf>,
    /// Threads to use.
    pub threads: usize,
    /// Stages to do again although they are done; what they left is set aside.
    pub force: Vec<String>,
    /// Go on with trainings that another kind of machine began; the report names both.
    pub mix_machines: bool,
}

/// Runs `config`, going on from whatever an earlier, interrupted run left.
///
/// # Errors
/// See [`ExperimentError`]; finished work stays.
pub fn run(config: &Config, options: &Options, progress: &dyn Progress) -> Result<Report, ExperimentError> {
    let _arithmetic = config.arithmetic.hold()?;
    let device = Device::open(config.device)?;
    let environment = Environment::current(device.name());
    let mut store = RunStore::open(&options.results, config, &environment)?;
    progress.note(&format!("run folder {}", store.folder().display()));
    check_ledger(&store, config, progress)?;
    check_names(config, &options.force)?;
    let streams = Streams::new(config.seed);
    // What is set aside is set aside for work that can begin.
    let images = load_images(config, &streams, options.datasets.as_deref())?;
    check_forced(&store, config, &options.force)?;
    options.force.iter().try_for_each(|stage| store.force(stage))?;
    let context = Context {
        config,
        store: &store,
        streams,
        threads: options.threads.max(1),
        device: &device,
        arithmetic: &environment.arithmetic,
        mix_machines: options.mix_machines,
        progress,
    };

    record_images(&context, images.as_ref())?;
    let (votes, ensemble, votes_stage) = collect_votes(&context, images.as_ref())?;
    let queries = select_queries(&context, images.as_ref())?;
    let (aggregates, accounts) = release_labels(&context, &votes, &votes_stage, &queries, images.as_ref())?;
    let courses: Vec<Course<'_>> = config
        .row
        .iter()
        .zip(&aggregates)
        .map(|(row, (aggregate, _))| Course {
            labelling: aggregate.labelling(&row.name, &queries),
            method: config.method_of(row),
        })
        .collect();
    let students = match &images {
        Some(images) => train_students(&context, images, &courses)?,
        None => vec![Vec::new(); courses.len()],
    };

    let rows = (0..config.row.len())
        .zip(&aggregates)
        .zip(accounts)
        .zip(students)
        .map(|(((row, (aggregate, _)), accounts), students)| ReportRow::new(config, row, aggregate, accounts, students))
        .collect();
    let report = Report {
        experiment: config.name.clone(),
        run: store.folder().file_name().unwrap_or_default().to_string_lossy().into_owned(),
        simulation: config.is_simulation(),
        config: config.clone(),
        ensemble,
        rows,
        kinds_of_machine: kinds_of_machine(&store),
        environment: environment.clone(),
        encrypted_times: aggregates.into_iter().map(|(_, times)| times).collect(),
        stage_times: stage_times(&store),
        ledger: ledger_statement(&store, config)?,
    };
    publish(&store, &report)?;
    Ok(report)
}

/// What a row's labels are, what computing them took, and what they cost; the last two where that applies.
type Released = (Vec<(Aggregate, Option<AggregateTimes>)>, Vec<Option<Accounts>>);

/// Labels the queries for every row, and accounts for the answers. Keys serve all rows and end here.
fn release_labels(
    context: &Context<'_>,
    votes: &Votes,
    votes_stage: &Stage,
    queries: &[usize],
    images: Option<&Images>,
) -> Result<Released, ExperimentError> {
    let config = context.config;
    let counts: Vec<Vec<u32>> = queries.iter().map(|&image| votes.counts(image)).collect();
    let keys = Keys::default();
    let (mut aggregates, mut accounts): Released = (Vec::new(), Vec::new());
    for (index, row) in config.row.iter().enumerate() {
        let source = config.labels_of(index);
        if source < index {
            // Nothing is released again, so nothing is paid again.
            aggregates.push(aggregates[source].clone());
            accounts.push(accounts[source].clone());
            continue;
        }
        let asked = row.query_count(queries.len());
        aggregates.push(aggregate(context, &keys, row, votes, votes_stage, &queries[..asked], images)?);
        accounts.push(account(context, row, &counts[..asked])?);
    }
    Ok((aggregates, accounts))
}

/// Writes the tables: `table.*` holds what config and seed determine, `report.*` times and machine as well.
fn publish(store: &RunStore, report: &Report) -> Result<(), ExperimentError> {
    let table = report.table();
    store.write("tables/table.md", table.to_markdown().as_bytes())?;
    store.write("tables/table.csv", table.to_csv().as_bytes())?;
    store.write("tables/students.csv", report.students().to_csv().as_bytes())?;
    if let Some(plot) = report.strip_plot() {
        store.write("tables/students.svg", plot.as_bytes())?;
    }
    store.write("tables/epochs.csv", report.students_by_epoch().to_csv().as_bytes())?;
    if let Some(plot) = report.epochs_plot() {
        store.write("tables/epochs.svg", plot.as_bytes())?;
    }
    let rows = json!({ "simulation": report.simulation, "ensemble": report.ensemble, "rows": report.rows });
    store.write("tables/table.json", format!("{rows:#}\n").as_bytes())?;
    store.write("tables/report.md", report.to_markdown().as_bytes())?;
    store.write("tables/report.csv", report.table_with_times().to_csv().as_bytes())?;
    store.write("tables/report.json", format!("{:#}\n", json!(report)).as_bytes())
}

fn stage_times(store: &RunStore) -> Vec<StageTime> {
    let mut records: Vec<StageRecord> = store
        .stage_names()
        .iter()
        .filter_map(|name| {
            let bytes = std::fs::read(store.folder().join("stages").join(name).join("stage.json")).ok()?;
            serde_json::from_slice(&bytes).ok()
        })
        .collect();
    records.sort_by_key(|record| record.finished_at);
    records
        .into_iter()
        .map(|record| StageTime { stage: record.stage, seconds: record.seconds, resumed_units: record.resumed_units })
        .collect()
}

/// Whether every stage that is forced is one.
pub(crate) fn check_names(config: &Config, stages: &[String]) -> Result<(), ExperimentError> {
    let known = stage_names(config);
    for stage in stages {
        if !known.iter().any(|name| is_called(name, stage)) {
            return Err(ConfigError::Key {
                place: "command line".into(),
                key: format!("--force {stage}"),
                message: format!("no such stage; this config has {}", known.join(", ")),
            }
            .into());
        }
    }
    Ok(())
}

/// Stages of a config in order. Students are one stage for each distinct set of labels and repeat, named by the labels'
/// hash, so only their common name is known before labels are.
pub(crate) fn stage_names(config: &Config) -> Vec<String> {
    let mut names = vec!["data".to_owned()];
    if config.votes.source == VotesSource::Teachers {
        names.push("teachers".into());
    }
    names.extend(["votes".into(), "queries".into()]);
    let own = |index: &usize| config.labels_of(*index) == *index;
    for row in (0..config.row.len()).filter(own).map(|index| &config.row[index]) {
        names.push(stage_of_row("aggregate", config, row));
        if row.aggregation != AggregationKind::NonPrivate {
            names.push(stage_of_row("account", config, row));
        }
    }
    if config.table.repeats > 0 {
        names.push("student".into());
    }
    names
}
