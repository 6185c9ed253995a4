//! Comparison of a claim with the truth.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use speed_accountant::{Account, AccountError, Delta, EventAccountant, PrivacyFilter, QueryBatch};

use crate::oracle::case::Case;
use crate::oracle::excess::Excess;
use crate::oracle::truth;

/// Margin for rounding, relative and absolute.
const ROUNDING: (f64, f64) = (1e-9, 1e-12);

/// The result of a case.
#[derive(Default)]
pub(crate) struct Report {
    pub(crate) failures: Vec<String>,
    pub(crate) refused: Vec<String>,
    /// `(claim - truth) / truth` of each claim, if the truth is not next to 0.
    pub(crate) margins: Vec<f64>,
    /// The claim at these votes.
    pub(crate) excess: Option<Excess>,
    /// Seconds taken by the truth, and by the claims.
    pub(crate) truth_seconds: f64,
    pub(crate) seconds: f64,
}

/// A claim, and the method that gave it.
type Claim = (f64, String);

/// A threshold that every noisy count reaches, so that it changes nothing.
const REACHED: f64 = -1e9;

/// Computes the truth, and checks claims against it: at these votes, for any votes between the same number of classes,
/// of an accountant of events, and of a ledger.
pub(crate) fn check(case: &Case) -> Report {
    let mut report = Report::default();
    let start = Instant::now();
    let least = truth::least_epsilon(case);
    report.truth_seconds = start.elapsed().as_secs_f64();
    if !(least >= 0.0 && least.is_finite()) {
        report.failures.push(format!("the truth is {least}: {case}"));
        return report;
    }
    let rows = case.rows();
    let in_words = |account: Account| (account.epsilon, format!("{:?}: {}", account.composition, account.claim));
    let with_votes = timed(&mut report, || case.accountant()?.account(&rows, case.teachers as usize).map(in_words));
    let claim = judge(&mut report, case, "at these votes", least, with_votes);
    report.excess = claim.map(|claim| Excess {
        noise: case.noise,
        bound: case.bound,
        claim,
        truth: least,
        is_tight: case.is_tight(),
    });
    let data_independent = timed(&mut report, || {
        case.accountant()?.with_classes(case.classes()).account_queries(case.queries()).map(in_words)
    });
    judge(&mut report, case, "for any votes", least, data_independent);
    let events = timed(&mut report, || of_events(case));
    judge(&mut report, case, "of events", least, events);
    if case.event().is_ok_and(|event| event.mechanism().gamma().is_some()) {
        let kinds = timed(&mut report, || of_two_kinds(case));
        judge(&mut report, case, "of two kinds of events", least, kinds);
        let ledger = timed(&mut report, || in_a_ledger(case));
        judge(&mut report, case, "in a ledger", least, ledger);
    }
    report
}

/// Composes the runs one by one, as queries of one kind.
fn of_events(case: &Case) -> Result<Claim, AccountError> {
    let mut accountant = EventAccountant::new();
    for (row, times) in &case.runs {
        accountant.compose_batch(QueryBatch::new(case.event()?, row.len(), *times));
    }
    Ok((accountant.epsilon(Delta::new(case.delta)?)?, format!("{accountant:?}")))
}

/// Composes half of the queries without a stated number of classes and, unless the case has a threshold, the others
/// with one that changes nothing, so that they count as another kind.
fn of_two_kinds(case: &Case) -> Result<Claim, AccountError> {
    let (event, half) = (case.event()?, case.queries() / 2);
    let other = if event.threshold().is_none() { event.with_threshold(REACHED)? } else { event };
    let mut accountant = EventAccountant::new();
    accountant.compose(event, half);
    accountant.compose_batch(QueryBatch::new(other, case.classes(), case.queries() - half));
    Ok((accountant.epsilon(Delta::new(case.delta)?)?, format!("{accountant:?}")))
}

/// Returns the least budget that allows the queries, and its rule.
fn in_a_ledger(case: &Case) -> Result<Claim, AccountError> {
    let batch = QueryBatch::new(case.event()?, case.classes(), case.queries());
    let spent = PrivacyFilter::least_budget(Delta::new(case.delta)?, &[batch])?;
    Ok((spent.epsilon, format!("{:?}", spent.rule)))
}

/// Returns the answer and records its time; `None` if there was a panic.
pub(crate) fn timed<T>(report: &mut Report, ask: impl FnOnce() -> T) -> Option<T> {
    let start = Instant::now();
    let answer = catch_unwind(AssertUnwindSafe(ask)).ok();
    report.seconds += start.elapsed().as_secs_f64();
    answer
}

fn judge(
    report: &mut Report,
    case: &Case,
    what: &str,
    least: f64,
    answer: Option<Result<Claim, AccountError>>,
) -> Option<f64> {
    let (claim, how) = match answer {
        None => {
            report.failures.push(format!("a panic {what}: {case}"));
            return None;
        }
        Some(Err(error)) => {
            report.refused.push(error_name(&error));
            return None;
        }
        Some(Ok(claim)) => claim,
    };
    let enough = claim >= least * (1.0 - ROUNDING.0) - ROUNDING.1;
    if !(enough && claim.is_finite()) {
        report.failures.push(format!(
            "claimed {claim:?} {what}, the truth is at least {least:?} ({:+.3e}): {case}\n    {how}",
            claim / least - 1.0
        ));
    }
    if least > 1e-9 {
        report.margins.push((claim - least) / least);
    }
    Some(claim)
}

/// Returns the name of an error's variant.
pub(crate) fn error_name(error: &AccountError) -> String {
    let debug = format!("{error:?}");
    debug.split([' ', '(', '{']).next().unwrap_or_default().to_owned()
}
