//! The price of a row's answers, and the limits of a config.

use speed_accountant::{Budget, PrivacyEvent, QueryBatch};

use crate::config::{Config, RowConfig};
use crate::error::ExperimentError;

/// Returns the noise of a row's queries, including the sampler.
///
/// # Errors
/// If the noise cannot be drawn or accounted for.
pub(crate) fn event(
    config: &Config,
    row: &RowConfig,
    queries: usize,
    classes: usize,
) -> Result<PrivacyEvent, ExperimentError> {
    let (teachers, ratio, noise) = (config.ensemble.teachers, row.honest_ratio, row.noise);
    // The server draws all noise at once; each teacher draws a share.
    let (sharers, drawing) = if noise.is_central() { (1, 1) } else { (teachers, ratio.noisy_teachers(teachers)?) };
    Ok(noise.event(ratio.effective(teachers)?)?.with_sampler(sharers, drawing, queries.saturating_mul(classes))?)
}

/// Returns the charge for a row's answers to `queries` queries with `classes` classes.
///
/// # Errors
/// If the noise cannot be drawn or accounted for.
pub(crate) fn planned_charge(
    config: &Config,
    row: &RowConfig,
    queries: usize,
    classes: usize,
) -> Result<QueryBatch, ExperimentError> {
    Ok(QueryBatch::new(event(config, row, queries, classes)?, classes, queries))
}

/// Returns the ledger's own budget, which is unlimited because the limit belongs to the config, which may change.
pub(super) fn record(config: &Config) -> Budget {
    Budget { epsilon: None, delta: config.privacy.delta }
}

/// Returns the config's limit for all charges in the ledger.
pub(crate) fn limit(config: &Config) -> Option<Budget> {
    config.privacy.budget.map(|epsilon| Budget { epsilon: Some(epsilon), ..record(config) })
}
