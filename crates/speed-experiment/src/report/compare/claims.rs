//! Differences between the claims of two epsilons.

use serde::Serialize;
use serde_json::Value;
use speed_accountant::Account;

/// Fields of a claim that determine the meaning of epsilon: no difference is computed if one of them differs.
const MEANING: [&str; 6] = ["delta", "assume", "extent", "directions", "bound", "publishable"];
/// Fields that are shown with the difference.
const SETTING: [&str; 8] = ["tau", "noise", "gamma", "sigma", "coins", "threshold", "queries", "checks"];

/// A field of a claim that differs between runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ClaimDifference {
    /// The field, as in reports.
    pub field: &'static str,
    /// Its value in each run; `None` if the run has no such claim.
    pub values: Vec<Option<Value>>,
    /// Whether it changes the meaning of epsilon, so that no difference is computed.
    pub changes_meaning: bool,
}

/// Returns the fields in which claims differ.
pub(super) fn differences(accounts: &[Option<&Account>]) -> Vec<ClaimDifference> {
    let claims: Vec<Option<Value>> =
        accounts.iter().map(|account| account.and_then(|account| serde_json::to_value(account).ok())).collect();
    let fields = MEANING.map(|field| (field, true)).into_iter().chain(SETTING.map(|field| (field, false)));
    let difference = |(field, changes_meaning): (&'static str, bool)| {
        let values: Vec<Option<Value>> = claims.iter().map(|claim| Some(claim.as_ref()?[field].clone())).collect();
        let mut known = values.iter().flatten();
        let first = known.next()?;
        known.any(|value| value != first).then_some(ClaimDifference { field, values, changes_meaning })
    };
    fields.filter_map(difference).collect()
}

/// Returns whether the claim at `index` means something else than the first run's.
pub(super) fn is_other_claim(differences: &[ClaimDifference], index: usize) -> bool {
    differences.iter().any(|difference| difference.changes_meaning && difference.values[index] != difference.values[0])
}
