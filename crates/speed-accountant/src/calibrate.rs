//! Calibration: the noise needed for a target, and the number of queries allowed by a budget. Both are monotone
//! searches on certified data-independent bounds.
//!
//! The data-independent epsilon grows with gamma, falls with sigma and grows with the number of queries. The searches
//! return the last value that was **evaluated** and found good enough, so a search that stops early is safe.

use serde::{Deserialize, Serialize};
use speed_mechanism::{BinomialShare, HonestRatio, InverseScale, Mechanism, MechanismKind, NoiseCoins, NoiseDeviation};

use crate::composition::MAX_QUERIES;
use crate::three_answers::MIN_SCALE_OF_THREE_ANSWERS;

use crate::account::Account;
use crate::accountant::Accountant;
use crate::assumption::{Adversary, Bound};
use crate::checks::Checks;
use crate::delta::Delta;
use crate::error::AccountError;
use crate::event::PrivacyEvent;

/// Width of the interval, in the logarithm of the scale, at which a search stops.
const PRECISION: f64 = 1e-6;
/// The number of coins of all teachers at which a search begins.
const FIRST_COINS: u64 = 256;

/// A privacy target for queries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Target {
    /// Epsilon for all queries together.
    pub epsilon: f64,
    /// Delta for all queries together.
    pub delta: Delta,
    /// Ratio of the teachers whose noise is present and secret.
    pub tau: HonestRatio,
    /// The adversary, which also determines how the others' noise is treated. It is part of the claim; bounds without
    /// votes hold regardless of it.
    pub adversary: Adversary,
    /// The formulas used.
    pub bound: Bound,
    /// Number of classes; `None` for any number.
    pub classes: Option<usize>,
    /// The number of noisy votes that an answer needs, if not all queries are answered.
    pub threshold: Option<f64>,
    /// Checks before the answers, whose noise is given: the noise that is found is that of the answers.
    pub checks: Option<Checks>,
}

/// The result of a search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Calibration {
    /// Gamma, sigma, or the number of coins of all teachers.
    pub scale: f64,
    /// Number of queries.
    pub queries: usize,
    /// The cost of these queries with this noise: at most the target.
    pub account: Account,
}

impl Target {
    /// Accounts for queries; returns `None` if no finite epsilon is known.
    fn account(&self, mechanism: Mechanism, queries: usize) -> Result<Option<Account>, AccountError> {
        let event = PrivacyEvent::new(mechanism, self.tau);
        let event = self.threshold.map_or(Ok(event), |threshold| event.with_threshold(threshold))?;
        let accountant = Accountant::new(event, self.delta).with_adversary(self.adversary).with_bound(self.bound);
        let accountant = self.classes.map_or(accountant, |classes| accountant.with_classes(classes));
        let accountant = self.checks.map_or(accountant, |checks| accountant.after(checks));
        match accountant.account_queries(queries) {
            Ok(account) => Ok(Some(account)),
            Err(AccountError::NotFinite { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the logarithm of the ratio of an account's epsilon to the target; `None` for an epsilon of 0.
    fn excess(&self, account: &Account) -> Option<f64> {
        let excess = (account.epsilon / self.epsilon).ln();
        excess.is_finite().then_some(excess)
    }

    fn is_met(&self, account: &Account) -> bool {
        account.epsilon <= self.epsilon
    }

    /// Returns the error for noise whose widest scale costs `least`; `None` if that is not finite.
    fn not_enough(&self, queries: usize, kind: MechanismKind, widest: f64, least: Option<f64>) -> AccountError {
        let (epsilon, parameter, least) = (self.epsilon, kind.parameter(), or_infinite(least));
        AccountError::Unreachable(format!(
            "epsilon {epsilon:?} for {queries} queries cannot be reached: with the widest noise that can be drawn, {parameter} \
             {widest}, it is {least}; ask for fewer queries or a larger epsilon"
        ))
    }

    fn check(&self) -> Result<(), AccountError> {
        if self.epsilon > 0.0 && self.epsilon.is_finite() {
            Ok(())
        } else {
            Err(AccountError::Invalid(format!(
                "epsilon {:?} cannot be reached: the target must be a finite number greater than 0",
                self.epsilon
            )))
        }
    }
}

/// Finds the least noise with which `queries` queries meet the target: the largest gamma or the smallest sigma, to one
/// part in a million. The range is that of [`InverseScale`] and [`NoiseDeviation`], so a run can use this noise, except
/// Gaussian noise, which is only accounted for. For binomial noise see [`calibrate_coins_of_teacher`].
///
/// # Errors
/// [`AccountError::Unreachable`] if no supported scale is enough, [`AccountError::Invalid`] for binomial noise, and the errors
/// of [`Accountant::account_queries`].
pub fn calibrate_noise(kind: MechanismKind, queries: usize, target: &Target) -> Result<Calibration, AccountError> {
    target.check()?;
    if kind == MechanismKind::Binomial {
        let text = "binomial noise depends on the number of teachers: call calibrate_coins_of_teacher";
        return Err(AccountError::Invalid(text.to_owned()));
    }
    let (min, max) = range(kind);
    let at = |scale: f64| Ok::<_, AccountError>((scale, target.account(kind.with_scale(scale)?, queries)?));
    let good = |at: &(f64, Option<Account>)| at.1.as_ref().is_some_and(|account| target.is_met(account));
    let (mut widest, mut narrowest) = if kind.is_inverse() { (min, max) } else { (max, min) };
    // Wide noise has a looser bound, so epsilon drops once, at that scale, as the noise gets narrower. The search
    // therefore tries the side of narrow noise first.
    let mut found = None;
    if kind == MechanismKind::DiscreteLaplace {
        found = Some(at(MIN_SCALE_OF_THREE_ANSWERS)?).filter(good);
        let end = if found.is_some() { &mut widest } else { &mut narrowest };
        *end = MIN_SCALE_OF_THREE_ANSWERS;
    }
    let (mut scale, mut account) = match found.map_or_else(|| at(widest), Ok)? {
        (scale, Some(account)) if target.is_met(&account) => (scale, account),
        (widest, account) => {
            let least = account.map(|account| account.epsilon);
            return Err(target.not_enough(queries, kind, widest, least));
        }
    };
    let mut bracket = Bracket::new(widest.ln(), target.excess(&account), narrowest.ln());
    while bracket.width() > PRECISION {
        let place = bracket.next(0.45 * PRECISION);
        match at(place.exp().clamp(min, max))? {
            (candidate, Some(cost)) if target.is_met(&cost) => {
                bracket.enough(place, target.excess(&cost));
                (scale, account) = (candidate, cost);
            }
            (_, cost) => bracket.too_much(place, cost.and_then(|cost| target.excess(&cost))),
        }
    }
    Ok(Calibration { scale, queries, account })
}

/// Finds the least binomial noise that meets the target and whose coins `teachers` teachers share evenly. With a threshold,
/// each teacher's coins are even. Epsilon is nearly an inverse square root of the coins, so each account predicts their number.
///
/// # Errors
/// [`AccountError::Unreachable`] if the coins that these teachers can toss are not enough, [`AccountError::Mechanism`] if
/// they cannot toss any, and the errors of [`Accountant::account_queries`].
pub fn calibrate_coins_of_teacher(
    teachers: usize,
    queries: usize,
    target: &Target,
) -> Result<Calibration, AccountError> {
    target.check()?;
    let step = NoiseCoins::step(target.threshold.is_some());
    let sharers = teachers as u64;
    // Numbers of steps of one teacher.
    BinomialShare::new(NoiseCoins::new(sharers.saturating_mul(step))?, teachers)?;
    let most = (NoiseCoins::MAX / sharers).min(u64::from(BinomialShare::MAX_COINS)) / step;
    let (mut few, mut enough, mut found) = (0, most + 1, None);
    let mut next = (FIRST_COINS / sharers).div_ceil(step).clamp(1, most);
    let mut least = None;
    for round in 1_u32.. {
        let coins = NoiseCoins::new(next * step * sharers)?;
        let account = target.account(Mechanism::binomial(coins), queries)?;
        let epsilon = account.as_ref().map(|account| account.epsilon);
        match account.filter(|account| target.is_met(account)) {
            Some(account) => (enough, found) = (next, Some((coins, account))),
            None => (few, least) = (next, epsilon),
        }
        if enough - few <= 1 {
            break;
        }
        let predicted = epsilon.map_or(4.0, |epsilon| (epsilon / target.epsilon).powi(2)) * next as f64;
        let middle = (few.max(1) as f64 * enough as f64).sqrt().round() as u64;
        next = if round.is_multiple_of(3) { middle } else { predicted.ceil() as u64 }.clamp(few + 1, enough - 1);
    }
    match found {
        Some((coins, account)) => Ok(Calibration { scale: coins.get() as f64, queries, account }),
        None => {
            let (kind, widest) = (MechanismKind::Binomial, (most * step * sharers) as f64);
            Err(target.not_enough(queries, kind, widest, least))
        }
    }
}

fn or_infinite(epsilon: Option<f64>) -> String {
    epsilon.map_or_else(|| "not finite".to_owned(), |epsilon| epsilon.to_string())
}

fn range(kind: MechanismKind) -> (f64, f64) {
    if kind.is_inverse() { (InverseScale::MIN, InverseScale::MAX) } else { (NoiseDeviation::MIN, NoiseDeviation::MAX) }
}

/// Finds the largest number of queries with this noise, up to a million, that meets the target.
///
/// # Errors
/// [`AccountError::Unreachable`] if not even one query meets it, and the errors of [`Accountant::account_queries`].
pub fn calibrate_queries(mechanism: Mechanism, target: &Target) -> Result<Calibration, AccountError> {
    target.check()?;
    let scale = mechanism.scale();
    let (mut good, mut account) = match target.account(mechanism, 1)? {
        Some(account) if target.is_met(&account) => (1, account),
        account => {
            let (epsilon, least) = (target.epsilon, or_infinite(account.map(|account| account.epsilon)));
            let text = format!("epsilon {epsilon:?} cannot be reached: for one query it is {least}");
            return Err(AccountError::Unreachable(text));
        }
    };
    let mut bad = MAX_QUERIES + 1;
    let mut bracket = Bracket::new(0.0, target.excess(&account), (bad as f64).ln());
    while bad - good > 1 {
        // Rounded down: the bracket's estimate of the largest number, or the next number if that one was tried already.
        let queries = (bracket.next(0.0).exp() as usize).clamp(good + 1, bad - 1);
        let place = (queries as f64).ln();
        match target.account(mechanism, queries)? {
            Some(cost) if target.is_met(&cost) => {
                bracket.enough(place, target.excess(&cost));
                (good, account) = (queries, cost);
            }
            cost => {
                bracket.too_much(place, cost.and_then(|cost| target.excess(&cost)));
                bad = queries;
            }
        }
    }
    Ok(Calibration { scale, queries: good, account })
}

/// Two positions, in logarithms, between which a rising epsilon passes its target: `good` is enough, `bad` is too much.
/// Either may be the larger.
///
/// An epsilon is nearly a power of the scale or of the number of queries, so linear interpolation between two
/// logarithms ends the search after a few steps. Every third step bisects the bracket, and an end that does not move
/// loses weight (the Illinois rule).
struct Bracket {
    good: f64,
    bad: f64,
    /// Logarithms of epsilon over the target, reduced for an end that does not move; `None` if epsilon is not known or
    /// not finite.
    below: Option<f64>,
    above: Option<f64>,
    steps: usize,
    /// Whether the end that moved last was `good`.
    moved_good: Option<bool>,
}

impl Bracket {
    fn new(good: f64, below: Option<f64>, bad: f64) -> Self {
        Self { good, bad, below, above: None, steps: 0, moved_good: None }
    }

    fn width(&self) -> f64 {
        (self.good - self.bad).abs()
    }

    /// Returns the next position to try, at least `margin` away from both ends.
    fn next(&mut self, margin: f64) -> f64 {
        self.steps += 1;
        let halved = 0.5 * (self.good + self.bad);
        let place = match (self.below, self.above) {
            _ if self.steps.is_multiple_of(3) => halved,
            (Some(below), Some(above)) => self.good + (self.bad - self.good) * (below / (below - above)),
            // The other end has no known epsilon: extrapolate as if epsilon were proportional.
            (Some(below), None) if self.above.is_none() && self.moved_good != Some(false) => {
                self.good - below * (self.bad - self.good).signum()
            }
            _ => halved,
        };
        let (low, high) = (self.good.min(self.bad) + margin, self.good.max(self.bad) - margin);
        if place.is_nan() || low > high { halved } else { place.clamp(low, high) }
    }

    fn enough(&mut self, place: f64, excess: Option<f64>) {
        (self.good, self.below) = (place, excess);
        if self.moved_good == Some(true) {
            self.above = self.above.map(|above| 0.5 * above);
        }
        self.moved_good = Some(true);
    }

    fn too_much(&mut self, place: f64, excess: Option<f64>) {
        (self.bad, self.above) = (place, excess);
        if self.moved_good == Some(false) {
            self.below = self.below.map(|below| 0.5 * below);
        }
        self.moved_good = Some(false);
    }
}
