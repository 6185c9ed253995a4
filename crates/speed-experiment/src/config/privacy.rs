//! Delta and limit of the privacy cost: `[privacy]`.

use serde::{Deserialize, Serialize};
use speed_accountant::Delta;

use super::fault::{Fault, refuse};

/// Delta and limit of the privacy cost: `[privacy]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "documented in configs/default.toml")]
pub struct PrivacyConfig {
    pub delta: f64,
    #[serde(default, skip_serializing_if = "speed_core::is_default")]
    pub budget: f64,
}

impl PrivacyConfig {
    pub(super) fn check(&self) -> Result<Delta, Fault> {
        let delta = Delta::new(self.delta).map_err(|error| Fault::new("privacy.delta", error))?;
        if !(self.budget >= 0.0 && self.budget.is_finite()) {
            return refuse("privacy.budget", format!("found {:?}, expected a number of at least 0", self.budget));
        }
        Ok(delta)
    }
}
