//! A claim against the truth.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use speed_accountant::{Account, AccountError};

use crate::case::Case;
use crate::truth;

/// Margin for rounding, relative and absolute.
const ROUNDING: (f64, f64) = (1e-9, 1e-12);

/// Result of a case.
#[derive(Default)]
pub(crate) struct Report {
    pub(crate) failures: Vec<String>,
    pub(crate) refused: Vec<String>,
    /// `(claim - truth) / truth` of each claim, if the truth is not next to nothing.
    pub(crate) margins: Vec<f64>,
    /// Of a claim that ought to be tight.
    pub(crate) excess: Option<f64>,
    /// Time that the truth took, and the claims.
    pub(crate) truth_seconds: f64,
    pub(crate) seconds: f64,
}

/// Computes the truth and asks for the claim at these votes and for that of any votes.
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
    let with_votes = timed(&mut report, || case.accountant()?.account(&rows));
    if let (Some(claim), true) = (judge(&mut report, case, "at these votes", least, with_votes), case.is_tight()) {
        report.excess = (least > 1e-3).then_some(claim / least - 1.0);
    }
    let any_votes = timed(&mut report, || case.accountant()?.account_queries(case.queries()));
    judge(&mut report, case, "for any votes", least, any_votes);
    report
}

/// The answer, or none if there was a panic.
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
    answer: Option<Result<Account, AccountError>>,
) -> Option<f64> {
    let account = match answer {
        None => {
            report.failures.push(format!("a panic {what}: {case}"));
            return None;
        }
        Some(Err(error)) => {
            report.refused.push(error_name(&error));
            return None;
        }
        Some(Ok(account)) => account,
    };
    let claim = account.epsilon;
    let enough = claim >= least * (1.0 - ROUNDING.0) - ROUNDING.1;
    if !(enough && claim.is_finite()) {
        report.failures.push(format!(
            "claimed {claim:?} {what}, the truth is at least {least:?} ({:+.3e}): {case}\n    {:?}: {}",
            claim / least - 1.0,
            account.composition,
            account.claim
        ));
    }
    if least > 1e-9 {
        report.margins.push((claim - least) / least);
    }
    Some(claim)
}

/// The variant of an error.
pub(crate) fn error_name(error: &AccountError) -> String {
    let debug = format!("{error:?}");
    debug.split([' ', '(', '{']).next().unwrap_or_default().to_owned()
}
