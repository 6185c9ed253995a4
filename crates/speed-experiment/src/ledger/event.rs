//! The price of a row's answers, and the limits of a config.

use speed_accountant::ledger::Budget;
use speed_accountant::{Noise, PrivacyEvent};
use speed_mechanism::NoiseShare;

use crate::config::{Config, RowConfig};
use crate::error::ExperimentError;

/// Returns the noise of a row's queries, sampler included.
///
/// # Errors
/// If the noise cannot be drawn or accounted for.
pub(crate) fn event(
    config: &Config,
    row: &RowConfig,
    queries: usize,
    classes: usize,
) -> Result<PrivacyEvent, ExperimentError> {
    let (teachers, gamma, ratio) = (config.ensemble.teachers, config.noise.gamma, row.honest_ratio);
    let draws = (ratio.noisy_teachers(teachers)? * queries * classes) as u64;
    let sampling = NoiseShare::new(gamma, teachers)?.distance_of_draws(draws);
    let event = PrivacyEvent::new(Noise::discrete_laplace(gamma), ratio.effective(teachers)?);
    Ok(event.with_sampling_distance(sampling)?)
}

/// A charge that may come: the event, the number of classes, and that of queries.
pub(crate) type PlannedCharge = (PrivacyEvent, usize, usize);

/// Returns the charge for a row's answers between `classes` classes.
///
/// # Errors
/// If the noise cannot be drawn or accounted for.
pub(crate) fn planned_charge(
    config: &Config,
    row: &RowConfig,
    classes: usize,
) -> Result<PlannedCharge, ExperimentError> {
    let queries = row.query_count(config.queries.count);
    Ok((event(config, row, queries, classes)?, classes, queries))
}

/// Returns the budget of the ledger itself, which has no limit: that is the config's, which may change.
pub(super) fn record(config: &Config) -> Budget {
    Budget { epsilon: None, delta: config.privacy.delta }
}

/// Returns the config's limit for everything that the ledger holds.
pub(crate) fn limit(config: &Config) -> Option<Budget> {
    config.privacy.budget.map(|epsilon| Budget { epsilon: Some(epsilon), ..record(config) })
}
