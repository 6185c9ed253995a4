//! Delta and limit of the privacy cost: `[privacy]`.

use serde::{Deserialize, Serialize};
use speed_accountant::Delta;

use super::fault::{Fault, refuse};
use super::noise::is_unset;

/// `[privacy]` as written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "documented in configs/default.toml")]
pub struct RawPrivacy {
    pub delta: f64,
    #[serde(default, skip_serializing_if = "is_unset")]
    pub budget: f64,
}

/// Delta and limit of the privacy cost, checked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PrivacyConfig {
    /// The delta of every bound.
    pub delta: Delta,
    /// The largest data-independent epsilon of all answers in the experiment's ledger.
    pub budget: Option<f64>,
}

impl RawPrivacy {
    /// Checks the section.
    pub(super) fn check(&self) -> Result<PrivacyConfig, Fault> {
        let delta = Delta::new(self.delta).map_err(|error| Fault::new("privacy.delta", error))?;
        if !(self.budget >= 0.0 && self.budget.is_finite()) {
            return refuse("privacy.budget", format!("found {:?}, expected a number of at least 0", self.budget));
        }
        let budget = Some(self.budget).filter(|&budget| budget > 0.0);
        Ok(PrivacyConfig { delta, budget })
    }
}

impl From<&PrivacyConfig> for RawPrivacy {
    fn from(privacy: &PrivacyConfig) -> Self {
        Self { delta: privacy.delta.get(), budget: privacy.budget.unwrap_or(0.0) }
    }
}
