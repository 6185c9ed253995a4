//! The privacy target: `[privacy]`.

use serde::{Deserialize, Serialize};
use speed_accountant::forecast::Agreement;
use speed_accountant::{Delta, PriceLimit};
use speed_core::VoteShape;

use super::fault::{Fault, refuse};
use super::noise::is_unset;

/// `[privacy]` as written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "documented in configs/default.toml")]
pub struct RawPrivacy {
    pub delta: f64,
    // The default values are not written, so configs that do not set these keys keep their run ids.
    #[serde(default, skip_serializing_if = "is_unset")]
    pub budget: f64,
    #[serde(default, skip_serializing_if = "is_unset")]
    pub max_epsilon: f64,
    #[serde(default, skip_serializing_if = "is_unset")]
    pub target: f64,
    #[serde(default, skip_serializing_if = "is_unset")]
    pub agreement: f64,
    #[serde(default, skip_serializing_if = "is_unset")]
    pub classes: usize,
    #[serde(default, skip_serializing_if = "is_unset")]
    pub chosen: bool,
}

/// The privacy target, checked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PrivacyConfig {
    /// The delta of every bound.
    pub delta: Delta,
    /// The largest data-independent epsilon of all answers in the experiment's ledger.
    pub budget: Option<f64>,
    /// The limit on the price of a run's answers.
    pub limit: PriceLimit,
    /// The largest data-independent epsilon of each row, for which queries and coins are chosen.
    pub target: Option<f64>,
    /// The expected share of the teachers that vote for the right class.
    pub agreement: Option<Agreement>,
    /// The number of classes, if nothing else in the config determines it.
    pub classes: Option<usize>,
    /// Whether queries and coins were chosen for the target.
    pub is_chosen: bool,
}

impl RawPrivacy {
    /// Checks the section.
    pub(super) fn check(&self) -> Result<PrivacyConfig, Fault> {
        let delta = Delta::new(self.delta).map_err(|error| Fault::new("privacy.delta", error))?;
        if !(self.budget >= 0.0 && self.budget.is_finite()) {
            return refuse("privacy.budget", format!("found {:?}, expected a number of at least 0", self.budget));
        }
        let most = Some(self.max_epsilon).filter(|most| *most != 0.0);
        let limit = PriceLimit::new(most).map_err(|error| Fault::new("privacy.max_epsilon", error))?;
        let budget = Some(self.budget).filter(|&budget| budget > 0.0);
        let (target, agreement) = self.check_target()?;
        let classes = match self.classes {
            0 => None,
            _ if target.is_none() => return refuse("privacy.classes", "is read only with privacy.target"),
            found if !(2..=VoteShape::MAX_CLASSES).contains(&found) => {
                return refuse("privacy.classes", format!("found {found}, expected 2 to {}", VoteShape::MAX_CLASSES));
            }
            found => Some(found),
        };
        Ok(PrivacyConfig { delta, limit, budget, target, agreement, classes, is_chosen: self.chosen })
    }

    /// Checks the target epsilon and the agreement.
    fn check_target(&self) -> Result<(Option<f64>, Option<Agreement>), Fault> {
        if !(self.target >= 0.0 && self.target.is_finite()) {
            return refuse("privacy.target", format!("found {:?}, expected a number of at least 0", self.target));
        }
        let agreement = match self.agreement {
            0.0 => None,
            share => Some(Agreement::new(share).map_err(|error| Fault::new("privacy.agreement", error))?),
        };
        let target = Some(self.target).filter(|&target| target > 0.0);
        if target.is_some() && agreement.is_none() {
            return refuse(
                "privacy.agreement",
                "missing: privacy.target needs the expected share of the teachers that vote for the right class, for example 0.9",
            );
        }
        if self.chosen && target.is_none() {
            return refuse("privacy.chosen", "is read only with privacy.target");
        }
        Ok((target, agreement))
    }
}

impl From<&PrivacyConfig> for RawPrivacy {
    fn from(privacy: &PrivacyConfig) -> Self {
        Self {
            delta: privacy.delta.get(),
            budget: privacy.budget.unwrap_or(0.0),
            max_epsilon: privacy.limit.most().unwrap_or(0.0),
            target: privacy.target.unwrap_or(0.0),
            agreement: privacy.agreement.map_or(0.0, Agreement::get),
            classes: privacy.classes.unwrap_or(0),
            chosen: privacy.is_chosen,
        }
    }
}
