//! The experiment's ledger: every set of answers with real noise is charged before it is given.
//!
//! It lies beside the runs, `RESULTS/EXPERIMENT/ledger`, because the answers of all runs of an experiment are about the
//! same teachers. A set of answers that another run gave is copied and not charged again.

use std::path::PathBuf;

use speed_accountant::ledger::{Budget, Ledger, Statement};
use speed_accountant::{Delta, Noise, PrivacyEvent};
use speed_mechanism::{HonestRatio, InverseScale, NoiseShare};

use super::{Context, slug};
use crate::ExperimentError;
use crate::config::{AggregationKind, Config, RowConfig};
use crate::store::{RunStore, is_called};

/// The name of the file.
const FILE: &str = "ledger";

/// The noise of a row's queries, sampler included.
pub(super) fn event(
    config: &Config,
    row: &RowConfig,
    queries: usize,
    classes: usize,
) -> Result<PrivacyEvent, ExperimentError> {
    let (teachers, gamma) = (config.ensemble.teachers, InverseScale::new(config.noise.gamma)?);
    let ratio = HonestRatio::new(row.honest_ratio)?;
    let draws = (ratio.noisy_teachers(teachers)? * queries * classes) as u64;
    let sampling = NoiseShare::new(gamma, teachers)?.distance_of_draws(draws);
    let event = PrivacyEvent::new(Noise::discrete_laplace(gamma), ratio.effective(teachers)?);
    Ok(event.with_sampling_distance(sampling)?)
}

/// Charges a row's answers before they are given; nothing where no noise is added or a seed makes it.
pub(super) fn charge(
    context: &Context<'_>,
    row: &RowConfig,
    queries: usize,
    classes: usize,
) -> Result<(), ExperimentError> {
    let config = context.config;
    if config.is_simulation() || row.aggregation == AggregationKind::NonPrivate {
        return Ok(());
    }
    let run = context.store.folder().file_name().unwrap_or_default().to_string_lossy().into_owned();
    let label = format!("{run}: {}", row.name);
    let event = event(config, row, queries, classes)?;
    let ledger = Ledger::open_or_create(&path(context.store), record(config)?)?;
    let statement = ledger.charge_within(&label, &event, classes, queries, limit(config)?)?;
    let spent = speed_accountant::round_up(statement.spent_epsilon, 2);
    context.progress.note(&format!("ledger: {queries} answers charged, epsilon {spent} in all"));
    Ok(())
}

/// Refuses forced stages whose answers would pass the budget, before what they left is set aside.
pub(crate) fn check_forced(store: &RunStore, config: &Config, forced: &[String]) -> Result<(), ExperimentError> {
    let path = path(store);
    if config.is_simulation() || config.privacy.budget == 0.0 || !path.exists() {
        return Ok(());
    }
    // How many classes there are is not known before the votes: more than two cost the same each.
    const CLASSES: usize = 10;
    let rows = config.row.iter().filter(|row| row.aggregation != AggregationKind::NonPrivate);
    let again = rows.filter(|row| forced.iter().any(|name| is_called(&format!("aggregate-{}", slug(&row.name)), name)));
    let queries: Result<Vec<_>, ExperimentError> = again
        .map(|row| {
            let queries = row.query_count(config.queries.count);
            Ok((event(config, row, queries, CLASSES)?, CLASSES, queries))
        })
        .collect();
    Ok(Ledger::open(&path)?.would_allow(&queries?, limit(config)?)?)
}

/// What the ledger says; none where nothing was charged.
pub(crate) fn statement(store: &RunStore, config: &Config) -> Result<Option<Statement>, ExperimentError> {
    let path = path(store);
    if config.is_simulation() || !path.exists() {
        return Ok(None);
    }
    Ok(Some(Ledger::open(&path)?.statement()?))
}

fn path(store: &RunStore) -> PathBuf {
    store.folder().parent().unwrap_or(store.folder()).join(FILE)
}

/// The ledger itself has no limit: that is the config's, which may change.
fn record(config: &Config) -> Result<Budget, ExperimentError> {
    Ok(Budget { epsilon: None, delta: Delta::new(config.privacy.delta)? })
}

fn limit(config: &Config) -> Result<Option<Budget>, ExperimentError> {
    if config.privacy.budget == 0.0 {
        return Ok(None);
    }
    Ok(Some(Budget { epsilon: Some(config.privacy.budget), ..record(config)? }))
}
