//! Noise that a target needs, and queries that a budget allows: monotone searches on certified bounds that look at
//! no votes.
//!
//! Epsilon whatever the votes are grows with gamma, falls with sigma and grows with the number of queries. The searches
//! return the last value that was **evaluated** and found good enough, so a search that stops early is safe.

use serde::{Deserialize, Serialize};
use speed_mechanism::{HonestRatio, InverseScale, Mechanism, MechanismKind, NoiseDeviation};

use crate::composition::MAX_QUERIES;
use crate::three_answers::MIN_SCALE_OF_THREE_ANSWERS;

use crate::account::Account;
use crate::accountant::Accountant;
use crate::assumption::{Adversary, Bound};
use crate::delta::Delta;
use crate::error::AccountError;
use crate::event::PrivacyEvent;

/// A target for queries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Target {
    /// Epsilon for all queries together.
    pub epsilon: f64,
    /// Delta for all queries together.
    pub delta: Delta,
    /// Ratio of the teachers whose noise is present and secret.
    pub tau: HonestRatio,
    /// Adversary, and with it the others' noise; goes into the claim, bounds without votes hold either way.
    pub adversary: Adversary,
    /// Set of formulas.
    pub bound: Bound,
    /// Number of classes; none for any.
    pub classes: Option<usize>,
    /// The noisy votes that an answer needs, if not all queries are answered.
    pub threshold: Option<f64>,
}

/// Result of a search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Gamma or sigma.
    pub scale: f64,
    /// Number of queries.
    pub queries: usize,
    /// Their cost with it: at most the target.
    pub account: Account,
}

impl Target {
    /// Accounts for queries; nothing where no finite epsilon is known.
    fn account(&self, mechanism: Mechanism, queries: usize) -> Result<Option<Account>, AccountError> {
        let event = PrivacyEvent::new(mechanism, self.tau);
        let event = self.threshold.map_or(Ok(event), |threshold| event.with_threshold(threshold))?;
        let accountant = Accountant::new(event, self.delta).with_adversary(self.adversary).with_bound(self.bound);
        let accountant = self.classes.map_or(accountant, |classes| accountant.with_classes(classes));
        match accountant.account_queries(queries) {
            Ok(account) => Ok(Some(account)),
            Err(AccountError::NotFinite { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn is_met(&self, account: &Account) -> bool {
        account.epsilon <= self.epsilon
    }

    fn check(&self) -> Result<(), AccountError> {
        if self.epsilon > 0.0 && self.epsilon.is_finite() {
            Ok(())
        } else {
            Err(AccountError::Target { found: self.epsilon })
        }
    }
}

/// Finds the least noise with which `queries` queries meet the target: the largest gamma or the smallest sigma, to one part
/// in a million.
///
/// # Errors
/// [`AccountError::NotEnoughNoise`] if no supported scale is enough, and those of [`Accountant::account_queries`].
pub fn calibrate_noise(kind: MechanismKind, queries: usize, target: &Target) -> Result<Calibration, AccountError> {
    target.check()?;
    let at = |privacy: f64| {
        let scale = if kind.is_inverse() { 1.0 / privacy } else { privacy };
        Ok::<_, AccountError>((scale, target.account(kind.with_scale(scale)?, queries)?))
    };
    let good = |at: &(f64, Option<Account>)| at.1.as_ref().is_some_and(|account| target.is_met(account));
    // In units in which more is more private.
    let (mut min, mut max) =
        if kind.is_inverse() { (1.0 / InverseScale::MAX, 1.0 / 1e-4) } else { (NoiseDeviation::MIN, 1e5) };
    // Wide noise has a looser bound, so epsilon falls once at that place as noise gets narrower: look on the side of narrow
    // noise first.
    let mut found = at(max)?;
    if kind.is_inverse() {
        let narrow = at(1.0 / MIN_SCALE_OF_THREE_ANSWERS)?;
        if good(&narrow) {
            (max, found) = (1.0 / MIN_SCALE_OF_THREE_ANSWERS, narrow);
        } else {
            min = 1.0 / MIN_SCALE_OF_THREE_ANSWERS;
        }
    }
    let (mut scale, mut account) = match found {
        (scale, Some(account)) if target.is_met(&account) => (scale, account),
        (_, account) => {
            let least = account.map(|account| account.epsilon);
            return Err(AccountError::NotEnoughNoise { epsilon: target.epsilon, queries, least });
        }
    };
    let (mut low, mut high) = (min.ln(), max.ln());
    while high - low > 1e-6 {
        let middle = 0.5 * (low + high);
        match at(middle.exp())? {
            (candidate, Some(cost)) if target.is_met(&cost) => {
                high = middle;
                (scale, account) = (candidate, cost);
            }
            _ => low = middle,
        }
    }
    Ok(Calibration { scale, queries, account })
}

/// Finds the largest number of queries with this noise that meets the target, up to a million.
///
/// # Errors
/// [`AccountError::NoQueryAllowed`] if not even one query does, and those of [`Accountant::account_queries`].
pub fn calibrate_queries(mechanism: Mechanism, target: &Target) -> Result<Calibration, AccountError> {
    target.check()?;
    let scale = mechanism.scale();
    let met = |queries: usize| -> Result<Option<Account>, AccountError> {
        Ok(target.account(mechanism, queries)?.filter(|account| target.is_met(account)))
    };
    let Some(mut account) = met(1)? else {
        let least = target.account(mechanism, 1)?.map(|account| account.epsilon);
        return Err(AccountError::NoQueryAllowed { epsilon: target.epsilon, least });
    };
    let (mut good, mut bad) = (1, 2);
    while bad <= MAX_QUERIES {
        let Some(cost) = met(bad)? else { break };
        (good, account) = (bad, cost);
        bad *= 2;
    }
    bad = bad.min(MAX_QUERIES + 1);
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        match met(middle)? {
            Some(cost) => (good, account) = (middle, cost),
            None => bad = middle,
        }
    }
    Ok(Calibration { scale, queries: good, account })
}
