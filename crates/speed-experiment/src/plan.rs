//! The plan of a run: its stages and its cost, before any work.

use std::path::PathBuf;

use serde::Serialize;
use speed_accountant::ledger::{LedgerError, would_allow};
use speed_accountant::{Price as AnswerPrice, PrivacyFilter, QueryBatch};
use speed_data::locate;

use crate::config::Config;
use crate::cost::{Cost, Meter, StageCost};
use crate::device::Device;
use crate::error::ExperimentError;
use crate::ledger::{LedgerFiles, limit};
use crate::options::RunOptions;
use crate::stages::{Graph, ImageFacts, KINDS, Truth, data_independent, data_independent_party, planned_classes};
use crate::store::RunStore;

/// The stages and the cost of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Plan {
    /// The directory of its results.
    pub folder: PathBuf,
    /// Its stages.
    pub stages: Vec<PlannedStage>,
    /// Rows with noise.
    pub rows: Vec<PlannedRow>,
    /// The length of the training of a student of each method.
    pub students: Vec<PlannedTraining>,
    /// The smallest privacy budget that allows the ledger's charges and all unfinished rows; `None` for a simulation. The run
    /// spends at most this budget, because answers that another row or run gave cost nothing.
    pub budget_needed: Option<f64>,
    /// The delta of this budget: the ledger's, or the config's if there is no ledger yet.
    pub budget_delta: f64,
    /// Whether delta includes the errors of all noise samplers; otherwise `budget_needed` assumes exact noise. `None` for a
    /// simulation.
    pub samplers_included: Option<bool>,
    /// The reason why the config's budget would refuse one of these rows, if it would.
    pub refused: Option<String>,
    /// The reason why the cost of these rows exceeds a limit or requires `--max-epsilon`, if it does.
    pub questioned: Option<String>,
    /// Time and memory of all stages, including finished ones. In a sweep, only the first setting is measured.
    pub cost: Option<Cost>,
    /// The reason why the images cannot be loaded, if so; the run would stop.
    pub missing: Option<String>,
    /// Remarks for the user: on the images and the noise.
    pub notes: Vec<String>,
    /// The resolved config.
    pub config: Config,
}

/// A stage of a run.
#[derive(Clone, Debug, Serialize)]
pub struct PlannedStage {
    /// Its name.
    pub name: String,
    /// Whether an earlier run finished it.
    pub done: bool,
}

/// A row with noise, before any vote.
#[derive(Clone, Debug, Serialize)]
pub struct PlannedRow {
    /// Its name.
    pub name: String,
    /// Number of queries that it answers.
    pub queries: usize,
    /// Whether its answers exist.
    pub done: bool,
    /// Data-independent epsilon of its answers.
    pub data_independent: Option<f64>,
    /// The same epsilon for all votes of the largest party, if teachers are grouped into parties and it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_independent_party: Option<f64>,
    /// The reason why there is none.
    pub without_value: Option<String>,
}

/// The length of a student's training.
#[derive(Clone, Debug, Serialize)]
pub struct PlannedTraining {
    /// The method's name.
    pub method: String,
    /// Epochs.
    pub epochs: u32,
    /// Steps of an epoch.
    pub steps_an_epoch: usize,
}

/// Plans a [`run`](crate::run), and changes nothing.
///
/// # Errors
/// If votes or ledger cannot be read, or the noise cannot be accounted for.
pub fn plan(config: &Config, options: &RunOptions) -> Result<Plan, ExperimentError> {
    plan_with(config, options, true)
}

/// Plans a run; the cost in time and memory is optional.
pub(crate) fn plan_with(config: &Config, options: &RunOptions, with_cost: bool) -> Result<Plan, ExperimentError> {
    let graph = Graph::for_config(config);
    graph.check(&options.force)?;
    let folder = RunStore::folder_of(&options.results, config);
    let stages = graph.done_in(&folder, config).map(|(name, done)| PlannedStage { name: name.to_owned(), done });
    let stages = stages.collect();
    let ImageFacts { facts, mut notes, encoder } = ImageFacts::find(config, options.datasets.as_deref())?;
    if facts.is_none() {
        Truth::for_run(config, None)?;
    }
    let missing = config.data.source.published().and_then(|name| locate(name, options.datasets.as_deref()).err());
    let classes = planned_classes(config, facts.map(|facts| facts.classes))?;
    notes.extend(config.unanimity_notes(classes)?);
    let (rows, to_charge) = planned_rows(config, options, &graph, classes)?;
    let questioned = price_refusal(config, options, &to_charge);
    let files = LedgerFiles::in_experiment(folder.parent().unwrap_or(&folder));
    let (budget_needed, budget_delta, samplers_included, refused) = budget_need(config, &files, &to_charge)?;
    // A missing device ends the dry run as it would end the run.
    drop(Device::open(config.device)?);
    let _arithmetic = config.arithmetic.hold()?;
    let cost = with_cost.then(|| cost(config, Meter::new(facts, encoder, options.threads))).transpose()?;
    Ok(Plan {
        cost,
        budget_needed,
        budget_delta,
        samplers_included,
        refused,
        questioned,
        stages,
        rows,
        students: planned_trainings(config),
        missing: missing.map(|error| error.to_string()),
        notes,
        config: config.clone(),
        folder,
    })
}

fn cost(config: &Config, meter: Meter) -> Result<Cost, ExperimentError> {
    let stages: Vec<Vec<StageCost>> = KINDS.iter().map(|kind| (kind.cost)(config, &meter)).collect::<Result<_, _>>()?;
    Ok(Cost::new(config, &meter, stages.concat()))
}

/// Returns why the cost of a run's answers is refused, by the rule of rounds. Answers of a simulation cost nothing.
fn price_refusal(config: &Config, options: &RunOptions, to_charge: &[QueryBatch]) -> Option<String> {
    if config.is_simulation() {
        return None;
    }
    let price = AnswerPrice::for_batches(to_charge, config.delta).transpose()?;
    options.limit.check("the run", price, config.delta).err().map(|refusal| refusal.to_string())
}

pub(crate) fn check_setting_price(config: &Config, options: &RunOptions) -> Result<(), ExperimentError> {
    if config.is_simulation() {
        return Ok(());
    }
    let facts = ImageFacts::find(config, options.datasets.as_deref())?.facts;
    let classes = planned_classes(config, facts.map(|facts| facts.classes))?;
    check_run_price(config, options, &Graph::for_config(config), classes)
}

/// Checks the cost of all answers that a run would charge now.
pub(crate) fn check_run_price(
    config: &Config,
    options: &RunOptions,
    graph: &Graph,
    classes: usize,
) -> Result<(), ExperimentError> {
    if config.is_simulation() {
        return Ok(());
    }
    let charges = charges(config, options, graph, classes)?;
    let to_charge: Vec<QueryBatch> =
        charges.into_iter().filter_map(|(_, charge, done)| (!done).then_some(charge)).collect();
    let refusal = price_refusal(config, options, &to_charge);
    refusal.map_or(Ok(()), |refusal| Err(ExperimentError::option("--max-epsilon", refusal)))
}

/// Returns the charges of every row with noise and its own answers, for its checks and its answers, with the row's
/// index and whether the answers, or the checks, exist.
fn charges(
    config: &Config,
    options: &RunOptions,
    graph: &Graph,
    classes: usize,
) -> Result<Vec<(usize, QueryBatch, bool)>, ExperimentError> {
    let folder = RunStore::folder_of(&options.results, config);
    let mut charges: Vec<(usize, QueryBatch, bool)> = Vec::new();
    for (node, row, batch) in graph.charged(config, classes)? {
        let is_forced = options.force.iter().any(|name| node.is_called(name));
        // Answers depend on checks.
        let has_earlier = charges.iter().all(|(other, _, done)| *other != row || *done);
        charges.push((row, batch, RunStore::is_finished(&folder, &node.name) && !is_forced && has_earlier));
    }
    Ok(charges)
}

fn planned_trainings(config: &Config) -> Vec<PlannedTraining> {
    let mut trainings: Vec<PlannedTraining> = Vec::new();
    for method in config.rows.iter().filter(|_| config.table.repeats > 0).map(|row| config.method_of(row)) {
        if trainings.iter().all(|training| training.method != method.name()) {
            let passes = method.passes(&config.student);
            let steps_an_epoch = passes.steps(config.data.pool_images);
            trainings.push(PlannedTraining { method: method.name().to_owned(), epochs: passes.epochs, steps_an_epoch });
        }
    }
    trainings
}

fn planned_rows(
    config: &Config,
    options: &RunOptions,
    graph: &Graph,
    classes: usize,
) -> Result<(Vec<PlannedRow>, Vec<QueryBatch>), ExperimentError> {
    let mut charges = charges(config, options, graph, classes)?;
    let to_charge = charges.iter().filter_map(|(_, charge, done)| (!done).then_some(*charge)).collect();
    charges.sort_by_key(|(row, ..)| *row);
    let mut rows = Vec::new();
    for of_row in charges.chunk_by(|(one, ..), (next, ..)| one == next) {
        let row = &config.rows[of_row[0].0];
        let queries = row.query_count(config.queries.count);
        let account = data_independent(config, row, queries, classes)?;
        let party = data_independent_party(config, row, queries, classes)?;
        rows.push(PlannedRow {
            name: row.name.clone(),
            queries,
            done: of_row.iter().all(|(.., done)| *done),
            data_independent: account.as_ref().ok().map(|account| account.epsilon),
            data_independent_party: party.and_then(|account| account.ok()).map(|account| account.epsilon),
            without_value: account.err().map(|error| error.to_string()),
        });
    }
    Ok((rows, to_charge))
}

/// The budget that charges need, its delta, whether delta includes the samplers' errors, and a refusal, as in a [`Plan`].
type Need = (Option<f64>, f64, Option<bool>, Option<String>);

fn budget_need(config: &Config, files: &LedgerFiles, to_charge: &[QueryBatch]) -> Result<Need, ExperimentError> {
    let delta = config.delta;
    if config.is_simulation() {
        return Ok((None, delta.get(), None, None));
    }
    let ledger = files.open()?;
    let (needed, delta) = match &ledger {
        Some(ledger) => (ledger.spent_with(to_charge)?.1, ledger.statement()?.budget.delta),
        None => (PrivacyFilter::least_budget(delta, to_charge)?, delta),
    };
    let allowed = match (&ledger, limit(config)) {
        (Some(ledger), limit) => ledger.would_allow(to_charge, limit),
        (None, Some(limit)) => would_allow(limit, to_charge),
        (None, None) => Ok(()),
    };
    let refused = match allowed {
        Err(error @ LedgerError::OverBudget { .. }) => Some(error.to_string()),
        other => other.map(|()| None)?,
    };
    Ok((Some(needed.epsilon), delta.get(), Some(needed.samplers.are_included()), refused))
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;
    use std::time::Duration;

    use speed_accountant::PriceLimit;

    use super::*;
    use crate::config::Source;

    #[test]
    fn every_preset_has_a_plan_with_an_epsilon_or_a_reason() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../configs");
        // A package of this crate alone has no presets.
        let Ok(presets) = std::fs::read_dir(folder) else { return };
        let place = tempfile::tempdir().expect("a temporary folder");
        let path = |name: &str| place.path().join(name).display().to_string();
        std::fs::write(path("votes.csv"), "250,0,0,0,0,0,0,0,0,0\n".repeat(10_000)).expect("votes");
        std::fs::write(path("labels.csv"), "0\n".repeat(26_032)).expect("labels");
        std::fs::write(path("encoder.onnx"), speed_nn::onnx::small_encoder()).expect("an encoder");
        let options = RunOptions {
            results: place.path().join("results"),
            datasets: None,
            threads: NonZeroUsize::MIN,
            force: Vec::new(),
            limit: PriceLimit::default(),
            mix_machines: false,
            latency_wait: Duration::ZERO,
        };
        for preset in presets.map(|entry| entry.expect("an entry").path()) {
            let source = Source::read(&preset).expect("readable");
            let mut overrides = Vec::new();
            if source.text().contains("[votes]\nsource = \"file\"") {
                overrides.push(format!("votes.file={}", path("votes.csv")));
            }
            if source.text().contains("labels = \"svhn_test_labels.npy\"") {
                overrides.push(format!("data.labels={}", path("labels.csv")));
            }
            if source.text().contains("source = \"pictures\"") {
                overrides.extend(["data.source=digits", "data.folder=", "data.size="].map(str::to_owned));
            }
            if source.text().contains("encoder = \"encoder.onnx\"") {
                let encoder = format!("features.encoder={}", path("encoder.onnx"));
                let built_in =
                    ["data.pool=test", "data.train_images=60000", "data.test_images=20000"].map(str::to_owned);
                overrides.extend([vec![encoder], built_in.to_vec()].concat());
            }
            let config = source.with_overrides(&overrides).and_then(|source| Config::load(&source)).expect("a config");
            let plan = plan_with(&config, &options, false).unwrap_or_else(|error| panic!("{preset:?}: {error}"));
            for row in plan.rows {
                assert!(row.data_independent.is_some() || row.without_value.is_some(), "{preset:?}: {row:?}");
            }
        }
        assert!(!options.results.exists(), "a plan wrote something");
    }
}
