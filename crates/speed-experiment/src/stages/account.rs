//! What a row's answered queries cost in privacy.

use serde::{Deserialize, Serialize};
use serde_json::json;
use speed_accountant::{Account, Delta, Noise, PrivacyEvent, account as compose, account_data_independent};
use speed_mechanism::{HonestRatio, InverseScale, NoiseShare};

use super::{Context, slug};
use crate::ExperimentError;
use crate::config::{AggregationKind, RowConfig};

const CODE_VERSION: u32 = 1;

/// The bounds of one row.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Accounts {
    /// Algorithm 1 for the integer noise that was added, at these votes.
    pub(crate) integer: Account,
    /// The same for any votes: valid in both directions and fit to be published.
    pub(crate) data_independent: Account,
    /// Algorithm 1 with the paper's formulas for continuous Laplace noise, at these votes: comparable with its tables.
    pub(crate) paper_formulas: Account,
}

/// Accounts for the queries of `row`; nothing where no noise is added.
pub(crate) fn account(
    context: &Context<'_>,
    row: &RowConfig,
    counts: &[Vec<u32>],
) -> Result<Option<Accounts>, ExperimentError> {
    if row.aggregation == AggregationKind::NonPrivate {
        return Ok(None);
    }
    let config = context.config;
    let teachers = config.ensemble.teachers;
    let noisy = HonestRatio::new(row.honest_ratio)?.noisy_teachers(teachers)?;
    let inputs = json!({
        "counts": counts,
        "gamma": config.noise.gamma,
        "delta": config.privacy.delta,
        "noisy_teachers": noisy,
        "teachers": teachers,
    });
    let stage = context.stage(&format!("account-{}", slug(&row.name)), CODE_VERSION, &inputs, |folder| {
        let gamma = InverseScale::new(config.noise.gamma)?;
        let tau = HonestRatio::new(row.honest_ratio)?.effective(teachers)?;
        let delta = Delta::new(config.privacy.delta)?;
        let classes = counts.first().map_or(0, Vec::len);
        let draws = (noisy * counts.len() * classes) as u64;
        let sampling = NoiseShare::new(gamma, teachers)?.distance_of_draws(draws);
        let integer = PrivacyEvent::new(Noise::discrete_laplace(gamma), tau).with_sampling_distance(sampling)?;
        let accounts = Accounts {
            integer: compose(counts, integer, delta)?,
            data_independent: account_data_independent(counts.len(), integer, delta)?,
            paper_formulas: compose(counts, PrivacyEvent::new(Noise::laplace(gamma), tau), delta)?,
        };
        folder.write_json("account.json", &accounts)?;
        Ok(vec!["account.json".into()])
    })?;
    stage.read_json("account.json").map(Some)
}
