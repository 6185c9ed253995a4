//! The noise and the number of queries that a budget allows, found with the filter that checks charges.

use speed_mechanism::{BinomialShare, InverseScale, Mechanism, MechanismKind, NoiseCoins, NoiseDeviation};

use crate::composition::MAX_QUERIES;
use crate::{AccountError, Budget, PrivacyFilter, QueryBatch, Spent};

const DIGITS: i32 = 6;
/// Relative difference below which two scales count as equal.
const CLOSE: f64 = 2e-6;
/// Scale below which noise is composed by looser bounds, so epsilon jumps there.
const LOOSER_BELOW: f64 = 0.01;

/// The room in a ledger at one moment: its budget and the caller's limit, less all charges so far.
///
/// It charges nothing, and a later charge of another process reduces the actual room.
#[derive(Clone, Debug)]
pub struct Room {
    /// Each filter must allow a charge.
    filters: Vec<PrivacyFilter>,
    /// Scales of the noise of earlier charges. Queries of the same kind are composed by a better rule.
    scales: Vec<Mechanism>,
}

/// Queries that fit into a budget.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    /// The queries.
    pub batch: QueryBatch,
    /// The budget that is used up the most.
    pub budget: Budget,
    /// The part of the budget that is spent, including the queries.
    pub spent: Spent,
}

impl Room {
    /// Returns the room in an unspent budget.
    pub fn of_new(budget: Budget) -> Self {
        Self::new(vec![PrivacyFilter::new(budget)], Vec::new())
    }

    pub(crate) fn new(filters: Vec<PrivacyFilter>, mut scales: Vec<Mechanism>) -> Self {
        // The smallest noise of each kind first.
        let width = |mechanism: &Mechanism| {
            if mechanism.kind().is_inverse() { -mechanism.scale() } else { mechanism.scale() }
        };
        scales.sort_by(|a, b| width(a).total_cmp(&width(b)));
        scales.dedup();
        Self { filters, scales }
    }

    /// Checks that a charge of these queries would be accepted.
    ///
    /// # Errors
    /// [`AccountError::OverBudget`] if it would not be accepted, [`AccountError::Queries`] for too many queries.
    pub fn fit(&self, batch: QueryBatch) -> Result<Fit, AccountError> {
        let mut most: Option<Fit> = None;
        for filter in &self.filters {
            let mut filter = filter.clone();
            filter.try_compose(&[batch])?;
            let fit = Fit { batch, budget: filter.budget, spent: filter.spent() };
            let part = |fit: &Fit| fit.spent.epsilon / fit.budget.epsilon.unwrap_or(f64::INFINITY);
            if most.as_ref().is_none_or(|most| part(&fit) > part(most)) {
                most = Some(fit);
            }
        }
        most.ok_or(AccountError::NoQueries)
    }

    /// Finds the smallest noise with which a charge would be accepted: gamma or sigma to six digits, or the number of
    /// coins that `teachers` teachers share evenly, a multiple of `step` each ([`NoiseCoins::step`]). `batch_of` creates
    /// the queries for a mechanism.
    ///
    /// # Errors
    /// The errors of [`Self::fit`] for the widest noise that can be drawn, and the errors of `batch_of`.
    pub fn noise<E: From<AccountError>>(
        &self,
        kind: MechanismKind,
        teachers: usize,
        step: u64,
        batch_of: impl Fn(Mechanism) -> Result<QueryBatch, E>,
    ) -> Result<Fit, E> {
        let at = |scale: f64| -> Tried<E> {
            let mechanism = kind.with_scale(scale).map_err(AccountError::from)?;
            Ok(self.fit(batch_of(mechanism)?))
        };
        let best = match kind {
            MechanismKind::Laplace | MechanismKind::DiscreteLaplace => largest_gamma(at)?,
            MechanismKind::Gaussian | MechanismKind::Skellam => least_sigma(at)?,
            MechanismKind::Binomial => least_coins(teachers, step, at)?,
        };
        let found = best.batch.event.mechanism().scale();
        // The exact noise of an earlier charge may be allowed even if slightly different noise is not.
        let is_possible = |earlier: &Mechanism| match *earlier {
            other if other.kind() != kind => false,
            Mechanism::Binomial { coins } => {
                let share = BinomialShare::new(coins, teachers);
                earlier.scale() < found && share.is_ok_and(|share| u64::from(share.coins()).is_multiple_of(step))
            }
            _ if kind.is_inverse() => earlier.scale() > found,
            _ => earlier.scale() < found,
        };
        for mechanism in self.scales.iter().filter(|earlier| is_possible(earlier)) {
            if let Ok(fit) = at(mechanism.scale())? {
                return Ok(fit);
            }
        }
        Ok(best)
    }

    /// Finds the largest number of queries whose charge would be accepted. `batch_of` creates a given number of
    /// queries.
    ///
    /// # Errors
    /// The errors of [`Self::fit`] for one query, and the errors of `batch_of`.
    pub fn queries<E: From<AccountError>>(&self, batch_of: impl Fn(usize) -> Result<QueryBatch, E>) -> Result<Fit, E> {
        let charged = self.filters.iter().map(PrivacyFilter::queries).max().unwrap_or(0);
        let most = MAX_QUERIES.saturating_sub(charged);
        let at = |queries: usize| -> Tried<E> { Ok(self.fit(batch_of(queries)?)) };
        let mut best = at(1)??;
        let (mut good, mut bad) = (1, most + 1);
        let mut next = 2;
        while bad - good > 1 {
            match at(next)? {
                Ok(fit) => (good, best) = (next, fit),
                Err(_) => bad = next,
            }
            next = if bad > most { (2 * good).min(most) } else { good.midpoint(bad) };
        }
        Ok(best)
    }
}

/// The answer for a scale: a fit or the refusal, unless the queries cannot be created.
type Tried<E> = Result<Result<Fit, AccountError>, E>;

fn largest_gamma<E: From<AccountError>>(at: impl Fn(f64) -> Tried<E>) -> Result<Fit, E> {
    match at(LOOSER_BELOW)? {
        Ok(fit) => narrowed(LOOSER_BELOW, InverseScale::MAX, fit, at),
        Err(_) => narrowed(InverseScale::MIN, LOOSER_BELOW, at(InverseScale::MIN)??, at),
    }
}

/// Finds the least sigma with which a charge would be accepted. It is doubled first, because wide noise takes longer.
fn least_sigma<E: From<AccountError>>(at: impl Fn(f64) -> Tried<E>) -> Result<Fit, E> {
    let (mut low, mut high) = (NoiseDeviation::MIN, 1.0);
    loop {
        match at(high)? {
            Ok(fit) => return narrowed(high, low, fit, at),
            Err(error) if high >= NoiseDeviation::MAX => return Err(error.into()),
            Err(_) => (low, high) = (high, (2.0 * high).min(NoiseDeviation::MAX)),
        }
    }
}

/// Moves the scale `fits`, of the fit `best`, towards the scale `fails`, until they are close.
fn narrowed<E>(mut fits: f64, mut fails: f64, mut best: Fit, at: impl Fn(f64) -> Tried<E>) -> Result<Fit, E> {
    while fits.max(fails) / fits.min(fails) > 1.0 + CLOSE {
        let middle = fits.ln().midpoint(fails.ln()).exp();
        let middle = if fits < fails { rounded_down(middle) } else { rounded_up(middle) };
        let is_passed = if fits < fails { middle <= fits } else { middle >= fits };
        if is_passed {
            break;
        }
        match at(middle)? {
            Ok(fit) => (fits, best) = (middle, fit),
            Err(_) => fails = middle,
        }
    }
    Ok(best)
}

/// Finds the least number of coins that `teachers` teachers share evenly, a multiple of `step` each, and with which a
/// charge would be accepted.
fn least_coins<E: From<AccountError>>(teachers: usize, step: u64, at: impl Fn(f64) -> Tried<E>) -> Result<Fit, E> {
    let teachers = teachers.max(1) as u64;
    // The search counts in steps.
    let most = ((NoiseCoins::MAX / teachers).min(u64::from(BinomialShare::MAX_COINS)) / step).max(1);
    let with = |steps: u64| at((steps * step * teachers) as f64);
    let (mut low, mut high) = (0, 1);
    let mut best = loop {
        match with(high)? {
            Ok(fit) => break fit,
            Err(error) if high >= most => return Err(error.into()),
            Err(_) => (low, high) = (high, (2 * high).min(most)),
        }
    };
    while high - low > 1 {
        let middle = low.midpoint(high);
        match with(middle)? {
            Ok(fit) => (high, best) = (middle, fit),
            Err(_) => low = middle,
        }
    }
    Ok(best)
}

/// Rounds a scale down to a few digits, so the printed decimal number is exactly the tested one.
fn rounded_down(scale: f64) -> f64 {
    let unit = unit(scale);
    // Division by a power of ten gives the double nearest to the decimal number; multiplication may not.
    let down = (scale * unit).floor() / unit;
    if down <= scale { down } else { scale }
}

fn rounded_up(scale: f64) -> f64 {
    let unit = unit(scale);
    let up = (scale * unit).ceil() / unit;
    if up >= scale { up } else { scale }
}

/// Returns the power of ten that makes the kept digits of a scale an integer.
fn unit(scale: f64) -> f64 {
    #[expect(clippy::cast_possible_truncation, reason = "from -5 to 6")]
    let magnitude = scale.log10().floor() as i32;
    10f64.powi(DIGITS - 1 - magnitude)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_have_few_digits() {
        for scale in [0.093_735_589_7, 0.01, 1.0, 123_456.789, 9.999_999_9e-4, 1e-3, 7.0e-4] {
            let (down, up) = (rounded_down(scale), rounded_up(scale));
            assert!(down <= scale && down > scale * (1.0 - 1e-5), "{scale}: {down}");
            assert!(up >= scale && up < scale * (1.0 + 1e-5), "{scale}: {up}");
            assert!(down.to_string().trim_start_matches("0.").trim_start_matches('0').len() <= 7, "{down}");
        }
    }
}
