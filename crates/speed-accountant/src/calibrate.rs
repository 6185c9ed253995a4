//! How much noise a target needs, and how many queries a budget allows: monotone searches on certified bounds that look at
//! no votes.
//!
//! Epsilon whatever the votes are grows with gamma, falls with sigma and grows with the number of queries. The searches
//! return the last value that was **evaluated** and found good enough, so a search that stops early is safe.

use serde::{Deserialize, Serialize};
use speed_mechanism::{HonestRatio, InverseScale, NoiseDeviation};

use crate::three_answers::SMALLEST_SCALE_OF_THREE_ANSWERS;
use crate::{Account, AccountError, Accountant, Assume, Bound, Delta, Noise, PrivacyEvent};

/// What is to be reached.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Target {
    /// Epsilon for all queries together.
    pub epsilon: f64,
    /// Delta for all queries together.
    pub delta: Delta,
    /// Ratio of the teachers whose noise is present and secret.
    pub tau: HonestRatio,
    /// What became of the others' noise; goes into the claim, bounds without votes hold either way.
    pub assume: Assume,
    /// Which formulas.
    pub bound: Bound,
}

/// A kind of noise whose scale is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoiseKind {
    /// Continuous Laplace noise.
    Laplace,
    /// Integer (discrete Laplace) noise.
    DiscreteLaplace,
    /// Gaussian noise.
    Gaussian,
    /// Integer (Skellam) noise.
    Skellam,
}

impl std::fmt::Display for NoiseKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Laplace => "laplace",
            Self::DiscreteLaplace => "discrete-laplace",
            Self::Gaussian => "gaussian",
            Self::Skellam => "skellam",
        })
    }
}

impl std::str::FromStr for NoiseKind {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        [Self::Laplace, Self::DiscreteLaplace, Self::Gaussian, Self::Skellam]
            .into_iter()
            .find(|kind| kind.to_string() == name)
            .ok_or_else(|| format!("expected laplace, discrete-laplace, gaussian or skellam, found {name:?}"))
    }
}

impl NoiseKind {
    /// The noise with this gamma or sigma.
    ///
    /// # Errors
    /// If the scale is out of range.
    pub fn with_scale(self, scale: f64) -> Result<Noise, speed_mechanism::MechanismError> {
        Ok(match self {
            Self::Laplace => Noise::laplace(InverseScale::new(scale)?),
            Self::DiscreteLaplace => Noise::discrete_laplace(InverseScale::new(scale)?),
            Self::Gaussian => Noise::gaussian(NoiseDeviation::new(scale)?),
            Self::Skellam => Noise::skellam(NoiseDeviation::new(scale)?),
        })
    }

    /// Whether the scale is an inverse one, so that a larger one is less noise.
    #[must_use]
    pub fn is_inverse(self) -> bool {
        matches!(self, Self::Laplace | Self::DiscreteLaplace)
    }
}

/// What a search found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Gamma or sigma.
    pub scale: f64,
    /// How many queries.
    pub queries: usize,
    /// What they cost with it: at most the target.
    pub account: Account,
}

impl Target {
    /// What queries cost, and whether that meets the target; nothing where no finite epsilon is known.
    fn account(&self, noise: Noise, queries: usize) -> Result<Option<Account>, AccountError> {
        let event = PrivacyEvent::new(noise, self.tau);
        let accountant = Accountant::new(event, self.delta).with_assume(self.assume).with_bound(self.bound);
        match accountant.account_queries(queries) {
            Ok(account) => Ok(Some(account)),
            Err(AccountError::NotFinite { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn is_met(&self, account: &Account) -> bool {
        account.epsilon <= self.epsilon
    }

    fn unreachable(&self, what: String, with: &str, account: Option<&Account>) -> AccountError {
        let epsilon = account.map_or_else(|| "not finite".to_owned(), |account| account.epsilon.to_string());
        AccountError::Unreachable { what, why: format!("{with} it is {epsilon}") }
    }

    fn check(&self) -> Result<(), AccountError> {
        if self.epsilon > 0.0 && self.epsilon.is_finite() {
            Ok(())
        } else {
            Err(AccountError::Unreachable {
                what: format!("epsilon {:?}", self.epsilon),
                why: "the target must be a finite number greater than 0".into(),
            })
        }
    }
}

/// The least noise with which `queries` queries meet the target: the largest gamma or the smallest sigma, to one part in
/// a million.
///
/// # Errors
/// [`AccountError::Unreachable`] if no supported scale is enough, and those of [`Accountant::account_queries`].
pub fn calibrate_noise(kind: NoiseKind, queries: usize, target: &Target) -> Result<Calibration, AccountError> {
    target.check()?;
    // In units in which more is more private.
    let (least, most) =
        if kind.is_inverse() { (1.0 / InverseScale::LARGEST, 1.0 / 1e-4) } else { (NoiseDeviation::SMALLEST, 1e5) };
    let at = |privacy: f64| {
        let scale = if kind.is_inverse() { 1.0 / privacy } else { privacy };
        let noise = kind
            .with_scale(scale)
            .map_err(|error| AccountError::Unreachable { what: format!("scale {scale}"), why: error.to_string() })?;
        Ok::<_, AccountError>((scale, target.account(noise, queries)?))
    };
    let good = |at: &(f64, Option<Account>)| at.1.as_ref().is_some_and(|account| target.is_met(account));
    // Wide noise has a looser bound, so epsilon falls once at that place as noise gets narrower: look on the side of narrow
    // noise first.
    let (mut least, mut most) = (least, most);
    let mut found = at(most)?;
    if kind.is_inverse() {
        let narrow = at(1.0 / SMALLEST_SCALE_OF_THREE_ANSWERS)?;
        if good(&narrow) {
            (most, found) = (1.0 / SMALLEST_SCALE_OF_THREE_ANSWERS, narrow);
        } else {
            least = 1.0 / SMALLEST_SCALE_OF_THREE_ANSWERS;
        }
    }
    let (mut scale, account) = match found {
        (scale, Some(account)) if target.is_met(&account) => (scale, account),
        (_, account) => {
            let what = format!("epsilon {:?} for {queries} queries", target.epsilon);
            return Err(target.unreachable(what, "with the widest noise supported", account.as_ref()));
        }
    };
    let mut account = account;
    let (mut low, mut high) = (least.ln(), most.ln());
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

/// The largest number of queries with this noise that meets the target, up to a million.
///
/// # Errors
/// [`AccountError::Unreachable`] if not even one query does, and those of [`Accountant::account_queries`].
pub fn calibrate_queries(noise: Noise, target: &Target) -> Result<Calibration, AccountError> {
    const MOST: usize = 1_000_000;
    target.check()?;
    let scale = match noise {
        Noise::Laplace { gamma } | Noise::DiscreteLaplace { gamma } => gamma.get(),
        Noise::Gaussian { sigma } | Noise::Skellam { sigma } => sigma.get(),
    };
    let met = |queries: usize| Ok(target.account(noise, queries)?.filter(|account| target.is_met(account)));
    let Some(mut account) = met(1)? else {
        let cost = target.account(noise, 1)?;
        return Err(target.unreachable(format!("epsilon {:?}", target.epsilon), "for one query", cost.as_ref()));
    };
    let (mut good, mut bad) = (1, 2);
    while bad <= MOST {
        let Some(cost) = met(bad)? else { break };
        (good, account) = (bad, cost);
        bad *= 2;
    }
    bad = bad.min(MOST + 1);
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        match met(middle)? {
            Some(cost) => (good, account) = (middle, cost),
            None => bad = middle,
        }
    }
    Ok(Calibration { scale, queries: good, account })
}
