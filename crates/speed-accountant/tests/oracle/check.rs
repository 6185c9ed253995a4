//! Comparison of a claim with the truth.

use std::panic::{AssertUnwindSafe, catch_unwind};

use speed_accountant::{Account, AccountError, Budget, Delta, PrivacyFilter, QueryBatch};

use crate::oracle::case::Case;
use crate::oracle::truth;

/// Margin for rounding, relative and absolute.
const ROUNDING: (f64, f64) = (1e-9, 1e-12);
/// The excess is not counted if the true epsilon is at most this.
const NEXT_TO_NOTHING: f64 = 1e-3;

/// The result of a case.
#[derive(Default)]
pub(crate) struct Report {
    pub(crate) failures: Vec<String>,
    pub(crate) refused: Vec<String>,
    /// `(claim - truth) / truth` of the claim at these votes, if it is expected to be tight and the truth is not next to 0.
    pub(crate) excess: Option<f64>,
}

/// A claim, and the method that gave it.
type Claim = (f64, String);

/// A threshold that every noisy count reaches, so that it changes nothing.
const REACHED: f64 = -1e9;

/// Computes the truth, and checks claims against it: at these votes, for any votes between the same number of classes,
/// and of a ledger.
pub(crate) fn check(case: &Case) -> Report {
    let mut report = Report::default();
    let least = truth::least_epsilon(case);
    if !(least >= 0.0 && least.is_finite()) {
        report.failures.push(format!("the truth is {least}: {case:?}"));
        return report;
    }
    let rows = case.rows();
    let in_words = |account: Account| (account.epsilon, format!("{:?}: {}", account.composition, account.claim));
    let mut judge = |what, ask: &dyn Fn() -> Result<Claim, AccountError>| judge(&mut report, case, what, least, ask);
    let claim = judge("at these votes", &|| case.accountant()?.account(&rows, case.teachers as usize).map(in_words));
    judge("for any votes", &|| {
        case.accountant()?.with_classes(case.classes()).account_queries(case.queries()).map(in_words)
    });
    judge("fixed beforehand", &|| {
        let batches = case.runs.iter().map(|(row, times)| Ok(QueryBatch::new(case.event()?, row.len(), *times)));
        fixed(case, &batches.collect::<Result<Vec<_>, AccountError>>()?)
    });
    if case.event().is_ok_and(|event| event.mechanism().gamma().is_some()) {
        judge("of two kinds", &|| of_two_kinds(case));
        judge("in a ledger", &|| in_a_ledger(case));
    }
    report.excess = claim.filter(|_| case.is_tight() && least > NEXT_TO_NOTHING).map(|claim| claim / least - 1.0);
    report
}

/// Composes queries whose numbers and kinds are fixed before the first answer.
fn fixed(case: &Case, batches: &[QueryBatch]) -> Result<Claim, AccountError> {
    let mut filter = PrivacyFilter::new(Budget { epsilon: None, delta: Delta::new(case.delta)? });
    filter.try_compose(batches)?;
    match filter.fixed_epsilon() {
        found if found.is_infinite() => Err(AccountError::NotFinite { found }),
        epsilon => Ok((epsilon, format!("{filter:?}"))),
    }
}

/// Composes half of the queries without a stated number of classes and, unless the case has a threshold, the others
/// with one that changes nothing, so that they count as another kind.
fn of_two_kinds(case: &Case) -> Result<Claim, AccountError> {
    let (event, half) = (case.event()?, case.queries() / 2);
    let other = if event.threshold().is_none() { event.with_threshold(REACHED)? } else { event };
    let batches = [QueryBatch::new(event, None, half), QueryBatch::new(other, case.classes(), case.queries() - half)];
    fixed(case, &batches)
}

/// Returns the least budget that allows the queries, and its rule.
fn in_a_ledger(case: &Case) -> Result<Claim, AccountError> {
    let batch = QueryBatch::new(case.event()?, case.classes(), case.queries());
    let spent = PrivacyFilter::least_budget(Delta::new(case.delta)?, &[batch])?;
    Ok((spent.epsilon, format!("{:?}", spent.rule)))
}

/// Compares a claim with the truth, and returns it.
fn judge(
    report: &mut Report,
    case: &Case,
    what: &str,
    least: f64,
    ask: &dyn Fn() -> Result<Claim, AccountError>,
) -> Option<f64> {
    match catch_unwind(AssertUnwindSafe(ask)) {
        Err(_) => report.failures.push(format!("a panic {what}: {case:?}")),
        Ok(Err(error)) => {
            let debug = format!("{error:?}");
            report.refused.push(debug.split([' ', '(', '{']).next().unwrap_or_default().to_owned());
        }
        Ok(Ok((claim, how))) => {
            let enough = claim >= least * (1.0 - ROUNDING.0) - ROUNDING.1;
            if !(enough && claim.is_finite()) {
                let off = claim / least - 1.0;
                report.failures.push(format!(
                    "claimed {claim:?} {what}, the truth is at least {least:?} ({off:+.3e}): {case:?}\n    {how}"
                ));
            }
            return Some(claim);
        }
    }
    None
}
