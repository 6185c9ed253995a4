//! The price of a row's answers, and the limits of a config.

use speed_accountant::{Budget, PrivacyEvent, QueryBatch};

use crate::config::{Config, QueryNoise, RowConfig};
use crate::error::ExperimentError;

/// Returns a row's query with this noise, including the sampler: the noise of its answers or of its checks.
pub(crate) fn event(
    config: &Config,
    row: &RowConfig,
    noise: &QueryNoise,
    queries: usize,
    classes: usize,
) -> Result<PrivacyEvent, ExperimentError> {
    let (teachers, ratio) = (config.ensemble.teachers, row.honest_ratio);
    // The server draws all noise at once; each teacher draws a share.
    let (sharers, drawing) = if noise.is_central() { (1, 1) } else { (teachers, ratio.noisy_teachers(teachers)?) };
    Ok(noise.event(ratio.effective(teachers)?)?.with_sampler(
        sharers,
        drawing,
        queries.saturating_mul(noise.draws(classes)),
    )?)
}

/// Returns the charge for a row's queries with this noise: its answers or its checks.
pub(crate) fn planned_charge(
    config: &Config,
    row: &RowConfig,
    noise: &QueryNoise,
    queries: usize,
    classes: usize,
) -> Result<QueryBatch, ExperimentError> {
    Ok(QueryBatch::new(event(config, row, noise, queries, classes)?, classes, queries))
}

/// Returns the ledger's own budget, which is unlimited because the limit belongs to the config, which may change.
pub(super) fn record(config: &Config) -> Budget {
    Budget { epsilon: None, delta: config.delta }
}

pub(crate) fn limit(config: &Config) -> Option<Budget> {
    config.budget().map(|epsilon| Budget { epsilon: Some(epsilon), ..record(config) })
}
