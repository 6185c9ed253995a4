//! What a row's answered queries cost in privacy.

use serde::{Deserialize, Serialize};
use serde_json::json;
use speed_accountant::{Account, AccountError, Accountant, Adversary, Delta, Extent, PrivacyEvent};
use speed_mechanism::{HonestRatio, InverseScale, Mechanism};

use super::{Context, stage_of_row};
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
    let stage = context.stage(&stage_of_row("account", config, row), CODE_VERSION, &inputs, |folder| {
        let classes = counts.first().map_or(0, Vec::len);
        let integer = super::ledger::event(config, row, counts.len(), classes)?;
        let (gamma, tau) = (InverseScale::new(config.noise.gamma)?, integer.tau());
        let delta = Delta::new(config.privacy.delta)?;
        let trusted = row.aggregation == AggregationKind::Trusted && tau.get() == 1.0;
        let tight = Accountant::new(integer, delta).with_extent(Extent::UpTo);
        let tight =
            tight.with_adversary(if trusted { Adversary::ExternalWithCentral } else { Adversary::ExternalWithDropout });
        let paper = Accountant::paper(PrivacyEvent::new(Mechanism::laplace(gamma), tau), delta);
        let mut accounts = Accounts::default();
        accounts.tight = accounts.value("ε", tight.account(counts))?;
        accounts.collusion =
            accounts.value("ε collusion", tight.with_adversary(Adversary::Colluding).account(counts))?;
        accounts.data_independent = accounts.value("ε any votes", tight.account_queries(counts.len()))?;
        accounts.paper_formulas = accounts.value("ε formulas", paper.account(counts))?;
        folder.write_json("account.json", &accounts)?;
        Ok(vec!["account.json".into()])
    })?;
    stage.read_json("account.json").map(Some)
}

#[cfg(test)]
mod tests {
    use speed_mechanism::NoiseShare;

    use super::*;

    #[test]
    fn a_claim_without_a_value_says_why_and_ends_nothing() {
        // So little noise that a hundred queries of any votes cost more than the sampler's distance allows: the claim at
        // these votes is not held to that.
        let (gamma, teachers) = (InverseScale::new(0.7).expect("a scale"), 250);
        let counts = vec![vec![230, 12, 8]; 100];
        let distance = NoiseShare::new(gamma, teachers).expect("a table").total_variation_of_draws(250 * 100 * 3);
        let event = PrivacyEvent::new(Mechanism::discrete_laplace(gamma), HonestRatio::ALL);
        let event = event.with_sampling_total_variation(distance).expect("a distance");
        let accountant = Accountant::new(event, Delta::new(1e-5).expect("a delta"));
        let mut accounts = Accounts::default();
        let tight = accounts.value("tight", accountant.account(&counts)).expect("a value");
        assert!(tight.is_some_and(|account| account.epsilon < 1.0) && accounts.without_value.is_empty());
        let any = accounts.value("any", accountant.account_queries(100)).expect("no failure");
        assert!(any.is_none() && accounts.without_value[0].contains("any: sampler"), "{:?}", accounts.without_value);
        assert!(accounts.value("bad", accountant.account(&[])).is_err());
    }
}
