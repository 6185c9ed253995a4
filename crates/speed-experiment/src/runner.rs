//! A run from config to table.

use std::path::PathBuf;

use serde::Serialize;
use serde_json::json;
use speed_accountant::ledger::{Ledger, least_budget};
use speed_accountant::{Accountant, Delta};
use speed_random::Streams;
use speed_teacher::Votes;

use crate::ExperimentError;
use crate::config::{AggregationKind, Config, DataSource, VotesSource};
use crate::device::Device;
use crate::environment::Environment;
use crate::progress::Progress;
use crate::report::{Report, ReportRow, StageTime};
use crate::stages::{
    Accounts, Aggregate, AggregateTimes, Context, Course, Images, Keys, LEDGER, account, aggregate, check_forced,
    check_ledger, collect_votes, event, ledger_statement, load_images, select_queries, stage_of_row, train_students,
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
}

/// Runs `config`, going on from whatever an earlier, interrupted run left.
///
/// # Errors
/// See [`ExperimentError`]; finished work stays.
pub fn run(config: &Config, options: &Options, progress: &dyn Progress) -> Result<Report, ExperimentError> {
    let device = Device::open(config.device)?;
    let environment = Environment::current(device.name());
    let mut store = RunStore::open(&options.results, config, &environment)?;
    progress.note(&format!("run folder {}", store.folder().display()));
    check_ledger(&store, config, progress)?;
    check_forced(&store, config, &options.force)?;
    force(&mut store, config, &options.force)?;
    let streams = Streams::new(config.seed);
    let context =
        Context { config, store: &store, streams, threads: options.threads.max(1), device: &device, progress };

    let images = load_images(&context, options.datasets.as_deref())?;
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
        environment,
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

fn force(store: &mut RunStore, config: &Config, stages: &[String]) -> Result<(), ExperimentError> {
    let known = stage_names(config);
    for stage in stages {
        if !known.iter().any(|name| is_called(name, stage)) {
            return Err(ExperimentError::Mismatch(format!(
                "--force {stage}: no such stage; this config has {}",
                known.join(", ")
            )));
        }
    }
    // Nothing is set aside for a command that is refused.
    stages.iter().try_for_each(|stage| store.force(stage))
}

/// Stages of a config in order. Students are one stage for each distinct set of labels and repeat, named by the labels'
/// hash, so only their common name is known before labels are.
fn stage_names(config: &Config) -> Vec<String> {
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

/// What a run would do.
#[derive(Clone, Debug, Serialize)]
pub struct Plan {
    /// Where its results would go.
    pub folder: PathBuf,
    /// Its stages, and whether an earlier run left them finished.
    pub stages: Vec<(String, bool)>,
    /// Rows with noise.
    pub rows: Vec<PlannedRow>,
    /// The least privacy budget that allows all rows that are to be done, what the ledger holds included; none for a
    /// simulation.
    pub budget_needed: Option<f64>,
    /// The resolved config.
    pub config: Config,
}

/// A row with noise, and what is known before any vote.
#[derive(Clone, Debug, Serialize)]
pub struct PlannedRow {
    /// Its name.
    pub name: String,
    /// How many queries it answers.
    pub queries: usize,
    /// Whether its answers are there.
    pub done: bool,
    /// Epsilon of its answers whatever the votes are.
    pub epsilon_any_votes: Option<f64>,
    /// Why there is none.
    pub without_value: Option<String>,
}

/// Says what [`run`] would do and what it would cost, and does nothing.
///
/// # Errors
/// If votes or ledger cannot be read, or the noise cannot be accounted for.
pub fn plan(config: &Config, options: &Options) -> Result<Plan, ExperimentError> {
    let folder = RunStore::folder_of(&options.results, config);
    let is_done = |name: &str| folder.join("stages").join(name).join("stage.json").exists();
    let stages = stage_names(config).into_iter().map(|name| (is_done(&name), name)).map(|(done, name)| (name, done));
    let classes = planned_classes(config)?;
    let delta = Delta::new(config.privacy.delta)?;
    let (mut rows, mut to_charge) = (Vec::new(), Vec::new());
    for (index, row) in config.row.iter().enumerate() {
        if row.aggregation == AggregationKind::NonPrivate || config.labels_of(index) != index {
            continue;
        }
        let queries = row.query_count(config.queries.count);
        let event = event(config, row, queries, classes)?;
        let done = is_done(&stage_of_row("aggregate", config, row));
        let account = Accountant::new(event, delta).account_queries(queries);
        if !done {
            to_charge.push((event, classes, queries));
        }
        rows.push(PlannedRow {
            name: row.name.clone(),
            queries,
            done,
            epsilon_any_votes: account.as_ref().ok().map(|account| account.epsilon),
            without_value: account.err().map(|error| error.to_string()),
        });
    }
    let budget_needed = if config.is_simulation() {
        None
    } else {
        let ledger = folder.parent().unwrap_or(&folder).join(LEDGER);
        Some(if ledger.exists() {
            Ledger::open(&ledger)?.spent_with(&to_charge)?.1
        } else {
            least_budget(delta, &to_charge)?
        })
    };
    Ok(Plan { stages: stages.collect(), rows, budget_needed, config: config.clone(), folder })
}

/// Between how many classes votes will be: those of the images, or of the file.
fn planned_classes(config: &Config) -> Result<usize, ExperimentError> {
    const CLASSES: usize = 10;
    if config.votes.source != VotesSource::File || config.data.source != DataSource::None {
        return Ok(CLASSES);
    }
    let path = std::path::Path::new(&config.votes.file);
    Ok(crate::npy::read_votes(path, config.ensemble.teachers, config.data.pool_images, None)?.classes())
}
