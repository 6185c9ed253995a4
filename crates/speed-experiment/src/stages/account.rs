//! What a row's answered queries cost in privacy.

use serde::{Deserialize, Serialize};
use serde_json::json;
use speed_accountant::{Account, AccountError, Accountant, Assume, Delta, Extent, Noise, PrivacyEvent};
use speed_mechanism::{HonestRatio, InverseScale};

use super::{Context, slug};
use crate::ExperimentError;
use crate::config::{AggregationKind, RowConfig};

const CODE_VERSION: u32 = 4;

/// The bounds of one row. A bound that has no value says why in `without_value`, and ends nothing.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Accounts {
    /// The tightest valid claim at these votes for the integer noise that was added, in both directions: dropout of up to
    /// as many teachers as the ratio leaves out, or for a trusted aggregator central noise.
    pub(crate) tight: Option<Account>,
    /// The same where the adversary may know those teachers' noise.
    pub(crate) collusion: Option<Account>,
    /// The tightest claim for any votes: valid in both directions, under collusion, and fit to be published.
    pub(crate) data_independent: Option<Account>,
    /// Algorithm 1 with the paper's formulas for continuous Laplace noise, at these votes: comparable with its tables.
    pub(crate) paper_formulas: Option<Account>,
    /// What has no value, and why.
    pub(crate) without_value: Vec<String>,
}

impl Accounts {
    /// A bound, unless no finite one is known or the sampler's distance is too much for it.
    fn value(
        &mut self,
        name: &str,
        account: Result<Account, AccountError>,
    ) -> Result<Option<Account>, ExperimentError> {
        match account {
            Ok(account) => Ok(Some(account)),
            Err(error @ (AccountError::DeltaUsedUp { .. } | AccountError::NotFinite { .. })) => {
                self.without_value.push(format!("{name}: {error}"));
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }
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
        let classes = counts.first().map_or(0, Vec::len);
        let integer = super::ledger::event(config, row, counts.len(), classes)?;
        let (gamma, tau) = (InverseScale::new(config.noise.gamma)?, integer.tau());
        let delta = Delta::new(config.privacy.delta)?;
        let trusted = row.aggregation == AggregationKind::Trusted && tau.get() == 1.0;
        let tight = Accountant::new(integer, delta).with_extent(Extent::UpTo);
        let tight = tight.with_assume(if trusted { Assume::Central } else { Assume::Dropout });
        let paper = Accountant::paper(PrivacyEvent::new(Noise::laplace(gamma), tau), delta);
        let mut accounts = Accounts::default();
        accounts.tight = accounts.value("ε", tight.account(counts))?;
        accounts.collusion = accounts.value("ε collusion", tight.with_assume(Assume::Collusion).account(counts))?;
        accounts.data_independent = accounts.value("ε any votes", tight.account_queries(counts.len()))?;
        accounts.paper_formulas = accounts.value("ε formulas", paper.account(counts))?;
        folder.write_json("account.json", &accounts)?;
        Ok(vec!["account.json".into()])
    })?;
    stage.read_json("account.json").map(Some)
}
