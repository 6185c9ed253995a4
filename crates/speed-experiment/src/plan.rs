//! What a run would do and cost, before it does anything.

use std::path::PathBuf;

use serde::Serialize;
use speed_accountant::{Accountant, Delta, PrivacyFilter, QueryBatch};
use speed_ledger::{Ledger, LedgerError, would_allow};

use crate::Cost;
use crate::ExperimentError;
use crate::config::{AggregationKind, Config, DataSource, VotesSource};
use crate::device::Device;
use crate::runner::{Options, check_names, stage_names};
use crate::stages::{LEDGER, budget, event, stage_of_row};
use crate::store::{RunStore, is_called};

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
    /// simulation. At most that is spent: answers that another row or run gave cost nothing.
    pub budget_needed: Option<f64>,
    /// The delta at which that is: the ledger's, or the config's where there is none yet.
    pub budget_delta: f64,
    /// Why the config's budget would refuse one of these rows, if it would.
    pub refused: Option<String>,
    /// What all stages together take; those that are done take nothing more.
    pub cost: Cost,
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

/// Says what [`run`](crate::run) would do and what it would cost, and does nothing.
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
        let stage = stage_of_row("aggregate", config, row);
        let done = is_done(&stage) && !options.force.iter().any(|name| is_called(&stage, name));
        let account = Accountant::new(event, delta).account_queries(queries);
        if !done {
            to_charge.push(QueryBatch::new(event, classes, queries));
        }
        rows.push(PlannedRow {
            name: row.name.clone(),
            queries,
            done,
            epsilon_any_votes: account.as_ref().ok().map(|account| account.epsilon),
            without_value: account.err().map(|error| error.to_string()),
        });
    }
    check_names(config, &options.force)?;
    let path = folder.parent().unwrap_or(&folder).join(LEDGER);
    let ledger = if path.exists() && !config.is_simulation() { Some(Ledger::open(&path)?) } else { None };
    let (budget_needed, budget_delta) = match &ledger {
        _ if config.is_simulation() => (None, delta.get()),
        Some(ledger) => (Some(ledger.spent_with(&to_charge)?.1), ledger.statement()?.budget.delta.get()),
        None => (Some(PrivacyFilter::least_budget(delta, &to_charge)?), delta.get()),
    };
    let limit = budget(config)?.filter(|_| !config.is_simulation());
    let allowed = match (&ledger, limit) {
        (Some(ledger), limit) => ledger.would_allow(&to_charge, limit),
        (None, Some(limit)) => would_allow(limit, &to_charge),
        (None, None) => Ok(()),
    };
    let refused = match allowed {
        Err(error @ LedgerError::OverBudget { .. }) => Some(error.to_string()),
        other => other.map(|()| None)?,
    };
    // One that is not there ends the dry run as it would the run.
    drop(Device::open(config.device)?);
    let _arithmetic = config.arithmetic.hold()?;
    let cost = Cost::of(config, options.threads)?;
    Ok(Plan {
        cost,
        budget_delta,
        refused,
        stages: stages.collect(),
        rows,
        budget_needed,
        config: config.clone(),
        folder,
    })
}

/// Between how many classes votes will be: those of the images, or of the file.
pub(crate) fn planned_classes(config: &Config) -> Result<usize, ExperimentError> {
    const CLASSES: usize = 10;
    if config.votes.source != VotesSource::File || config.data.source != DataSource::None {
        return Ok(CLASSES);
    }
    let path = std::path::Path::new(&config.votes.file);
    Ok(crate::npy::read_votes(path, config.ensemble.teachers, config.data.pool_images, None)?.shape().classes())
}
